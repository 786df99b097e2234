/* Weights that a new run begins with: of another program, or of another run. */
#include "train/trainer_internal.h"

#include "base/fail.h"
#include "model/foreign/weights.h"

enum lk_status lk_trainer_open_weights(struct lk_trainer *trainer)
{
    const struct lk_settings *s = trainer->settings;
    const struct lk_foreign_options options = {
        .weights = s->weights,
        .init_from = *s->init_from ? s->init_from : NULL,
        .skips_mismatch = s->skip_mismatch,
        .may_lack_head = true,
        .real = LK_F32,
    };
    if (*s->weights && *s->init_from)
        return lk_fail(LK_E_ARGUMENT, "--weights '%s' and --init-from '%s' exclude one another",
                       s->weights, s->init_from);
    if (s->skip_mismatch && !*s->weights && !*s->init_from)
        return lk_fail(LK_E_ARGUMENT, "--skip-mismatch is for --weights and --init-from");
    if (trainer->checkpoint || lk_world_rank(trainer->world) > 0 ||
        (!*s->weights && !*s->init_from))
        return LK_OK;
    LK_TRY(lk_foreign_open(trainer->model, &options, &trainer->weights));
    lk_model_warn_of_images(trainer->model, &trainer->pipeline,
                            *s->weights ? s->weights : s->init_from, trainer->weights);
    return LK_OK;
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
