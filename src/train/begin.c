/* Weights that a new run begins with: of another program, or of another run. */
#include "train/trainer_internal.h"

#include "base/fail.h"
#include "data/stages/normalize.h"
#include "model/foreign/weights.h"

/* Rank 0's pipelines, which only it may have changed, become those of all. */
static enum lk_status share_pipelines(struct lk_trainer *trainer)
{
    LK_TRY(lk_world_broadcast(trainer->world, sizeof trainer->pipeline, &trainer->pipeline));
    LK_TRY(lk_world_broadcast(trainer->world, sizeof trainer->eval_pipeline,
                              &trainer->eval_pipeline));
    return lk_trainer_use_pipelines(trainer);
}

static enum lk_status open_weights(struct lk_trainer *trainer)
{
    const struct lk_settings *s = trainer->settings;
    const char *whose = *s->weights ? s->weights : s->init_from;
    const struct lk_foreign_options options = {
        .weights = s->weights,
        .init_from = *s->init_from ? s->init_from : NULL,
        .skips_mismatch = s->skip_mismatch,
        .may_lack_head = true,
        .real = LK_F32,
    };
    LK_TRY(lk_foreign_open(trainer->model, &options, &trainer->weights));
    lk_model_take_images(trainer->model, whose, trainer->weights, &trainer->pipeline,
                         &trainer->eval_pipeline);
    lk_model_warn_of_images(trainer->model, &trainer->pipeline, whose, trainer->weights);
    return LK_OK;
}

enum lk_status lk_trainer_take_normalization(struct lk_trainer *trainer, const char *there)
{
    const struct lk_settings *s = trainer->settings;
    const struct lk_node *images = lk_model_images(trainer->model);
    struct lk_pipeline *p = &trainer->pipeline, *eval = &trainer->eval_pipeline;
    if ((!*s->weights && !*s->init_from) || !there)
        return LK_OK;
    if (lk_standardize_adopt_from(there, p) + lk_standardize_adopt_from(there, eval) > 0)
        LK_TRY(lk_trainer_use_pipelines(trainer));
    if (!images || p->values || eval->values)
        return LK_OK;
    const int channels = (int)images->shapes.y.dim[0];
    return lk_normalize_adopt_from(there, channels, p) &&
                   lk_normalize_adopt_from(there, channels, eval)
               ? lk_trainer_use_pipelines(trainer)
               : LK_OK;
}

enum lk_status lk_trainer_open_weights(struct lk_trainer *trainer)
{
    const struct lk_settings *s = trainer->settings;
    if (*s->weights && *s->init_from)
        return lk_fail(LK_E_ARGUMENT, "--weights '%s' and --init-from '%s' exclude one another",
                       s->weights, s->init_from);
    if (s->skip_mismatch && !*s->weights && !*s->init_from)
        return lk_fail(LK_E_ARGUMENT, "--skip-mismatch is for --weights and --init-from");
    if ((*s->weights || *s->init_from) && !trainer->checkpoint &&
        lk_world_rank(trainer->world) == 0)
        LK_TRY(open_weights(trainer));
    return share_pipelines(trainer);
}

static enum lk_status put(void *context, struct lk_worker *worker)
{
    const struct lk_trainer *trainer = context;
    return lk_foreign_put(trainer->weights, lk_stepper_replica(worker->stepper));
}

enum lk_status lk_trainer_put_weights(struct lk_trainer *trainer)
{
    if (!trainer->weights)
        return LK_OK;
    LK_TRY(lk_team_call_each(trainer->team, put, trainer, false));
    lk_foreign_close(trainer->weights);
    trainer->weights = NULL;
    return LK_OK;
}
