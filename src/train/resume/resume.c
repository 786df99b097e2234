/* Goes on from a checkpoint: compares it with what is asked for, and reads it. */
#include "train/saving.h"

#include "base/build.h"
#include "base/fail.h"
#include "base/log.h"
#include "model/checkpoint/checkpoint.h"
#include "model/classes.h"
#include "model/foreign/weights.h"
#include "train/evaluation/binding.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static enum lk_status differs(const char *what, long long there, long long asked)
{
    return lk_fail(
        LK_E_ARGUMENT,
        "the run directory's checkpoint has %s %lld, asked for is %lld: a run goes on "
        "only with its own; use --fresh to start over, or another directory",
        what, there, asked);
}

static enum lk_status check_same_optimizer(const struct lk_settings *s,
                                           const struct lk_checkpoint *there)
{
    char kind[64];
    const char *options;
    lk_settings_split_optimizer(s, kind, &options);
    if (strcmp(there->optimizer, kind) == 0)
        return LK_OK;
    return lk_fail(LK_E_ARGUMENT,
                   "the run directory's checkpoint has optimizer '%s', asked for is '%s'; use "
                   "--fresh to start over, or another directory",
                   there->optimizer, kind);
}

static enum lk_status check_same_pipeline(const char *asked, const char *there)
{
    if (!there || strcmp(there, asked) == 0)
        return LK_OK;
    return lk_fail(LK_E_ARGUMENT,
                   "the run directory's checkpoint has pipeline '%s', asked for is '%s'; use "
                   "--fresh to start over, or another directory",
                   there, asked);
}

static enum lk_status check_same_model(const struct lk_trainer *trainer,
                                       const struct lk_checkpoint *there)
{
    char what[512];
    const char *asked = lk_model_name(trainer->model);
    LK_TRY(lk_model_differ(trainer->model, there->model_text, what, sizeof what));
    if (!*what)
        return LK_OK;
    if (strcmp(there->model, asked) != 0)
        return lk_fail(LK_E_ARGUMENT,
                       "run directory '%s' holds another model ('%s', asked for is '%s'); use "
                       "--fresh to start over, or another directory",
                       trainer->settings->run, there->model, asked);
    return lk_fail(
        LK_E_ARGUMENT,
        "run directory '%s' holds another model '%s' than the one asked for: %s; use "
        "--fresh to start over, or another directory",
        trainer->settings->run, asked, what);
}

/* Of tiles: auto a run keeps to what it began with. */
static enum lk_status check_same_tiles(struct lk_trainer *trainer,
                                       const struct lk_checkpoint *there)
{
    const int asked = trainer->settings->tiles;
    trainer->asks_planes = there->planes > 0;
    if (asked == LK_TRAIN_TILES_AUTO || (asked == LK_TRAIN_PLANE_TILES) == trainer->asks_planes)
        return LK_OK;
    return lk_fail(LK_E_ARGUMENT,
                   "the run directory's checkpoint has tiles %s, asked for is %s; use "
                   "--fresh to start over, or another directory",
                   there->planes ? "planes" : "batch", there->planes ? "batch" : "planes");
}

static enum lk_status check_same_run(struct lk_trainer *trainer,
                                     const struct lk_checkpoint *there)
{
    const struct lk_settings *s = trainer->settings;
    LK_TRY(check_same_model(trainer, there));
    if (there->batch != s->batch_size)
        return differs("batch size", there->batch, s->batch_size);
    if (there->seed != s->seed)
        return differs("seed", there->seed, s->seed);
    if (s->shards && there->shards != s->shards)
        return differs("shards", there->shards, s->shards);
    if (there->shuffle != s->shuffle)
        return differs("shuffle", there->shuffle, s->shuffle);
    if (there->drop_remainder != s->drop_remainder)
        return differs("drop_remainder", there->drop_remainder, s->drop_remainder);
    if (there->bucket != s->bucket)
        return differs("bucket", there->bucket, s->bucket);
    if (there->mixed != (s->precision == LK_PRECISION_MIXED))
        return lk_fail(LK_E_ARGUMENT,
                       "the run directory's checkpoint has precision %s, asked for is %s; use "
                       "--fresh to start over, or another directory",
                       there->mixed ? "mixed" : "float", there->mixed ? "float" : "mixed");
    LK_TRY(check_same_tiles(trainer, there));
    LK_TRY(lk_trainer_take_normalization(trainer, there->pipeline));
    LK_TRY(check_same_pipeline(s->pipeline, there->pipeline));
    if (lk_checkpoint_has_average(trainer->checkpoint) != (s->ema > 0))
        return lk_fail(LK_E_ARGUMENT,
                       "the run directory's checkpoint has %s moving average of the weights, "
                       "asked for is ema %g; use --fresh to start over, or another directory",
                       s->ema > 0 ? "no" : "a", s->ema);
    return check_same_optimizer(s, there);
}

/* In mode async a batch makes as many updates as there are groups. Warns if that number differs
 * from the one that the run had before. */
static void warn_of_updates(const struct lk_trainer *trainer, const struct lk_checkpoint *there)
{
    const double was = (double)there->updates / (double)there->step;
    const int now = lk_team_updates_each(trainer->team);
    if (there->step > 0 && fabs(was - now) > 0.5)
        lk_log(LK_LOG_WARNING, "the run has made %.1f updates a step so far, now it makes %d",
               was, now);
}

/* Whether the options of the checkpoint are these, printed as they are now: one of an older
 * version says nothing of newer options. */
static bool is_same_optimizer_text(const struct lk_optimizer_info *info, const char *there,
                                   const char *options)
{
    char text[1024] = "";
    void *parsed = calloc(1, info->kind->options_bytes);
    const bool is_known =
        parsed && lk_options_parse(info->kind->options, parsed, there) == LK_OK &&
        lk_options_print(info->kind->options, parsed, true, text, sizeof text);
    free(parsed);
    if (!is_known)
        lk_error_clear();
    return strcmp(is_known ? text : there, options) == 0;
}

/* Epochs that drew anew and epochs that took variants in turns do not mix. */
static enum lk_status check_same_versions(const struct lk_trainer *trainer,
                                          const struct lk_checkpoint *there)
{
    const struct lk_features *features = &trainer->features;
    const int64_t asked = features->draws ? features->versions : 0;
    return there->versions == asked ? LK_OK
                                    : differs("cache_augmentations", there->versions, asked);
}

/* Warns of differences with which the run can go on, but ends with other weights than without
 * the interruption. */
static enum lk_status check_same_bits(const struct lk_trainer *trainer,
                                      const struct lk_checkpoint *there)
{
    const struct lk_worker *lead = lk_team_lead(trainer->team);
    const struct lk_tiling *tiling = lk_replica_tiling(lk_stepper_replica(lead->stepper));
    const struct lk_optimizer_info *o = lk_optimizer_info(lk_stepper_optimizer(lead->stepper));
    char options[1024] = "";
    if (strcmp(there->data_sum, trainer->data_sum) != 0)
        return lk_fail(
            LK_E_ARGUMENT,
            "run directory '%s' was trained on other data ('%s', asked for is '%s'); "
            "use --fresh to start over, or another directory",
            trainer->settings->run, there->data, trainer->settings->data);
    if (there->lanes != tiling->lanes || there->vector != tiling->vector)
        lk_log(LK_LOG_WARNING,
               "the run began with %lld samples a tile in vectors of %lld, this device has %d "
               "and %d: weights will differ in their last bits from one undisturbed run",
               (long long)there->lanes, (long long)there->vector, tiling->lanes,
               tiling->vector);
    if (!there->build || strcmp(there->build, lk_build) != 0)
        lk_log(
            LK_LOG_WARNING,
            "the checkpoint was written by build %s of this version, this is %s: weights may "
            "differ in their last bits from one undisturbed run",
            there->build ? there->build : "unknown", lk_build);
    (void)!lk_options_print(o->kind->options, o->options, true, options, sizeof options);
    if (!is_same_optimizer_text(o, there->optimizer_options, options))
        lk_log(LK_LOG_WARNING, "the run began with the optimizer's options '%s', now '%s'",
               there->optimizer_options, options);
    return LK_OK;
}

enum lk_status lk_trainer_check_resume(struct lk_trainer *trainer)
{
    char path[1024];
    if (!lk_run_folder_path(trainer->folder)[0])
        return LK_OK;
    LK_TRY(lk_checkpoint_newest(lk_run_folder_checkpoints(trainer->folder), path, sizeof path));
    if (!*path)
        return LK_OK;
    LK_TRY(lk_checkpoint_open(path, &trainer->checkpoint));
    const struct lk_checkpoint *there = lk_checkpoint_metadata(trainer->checkpoint);
    LK_TRY(check_same_run(trainer, there));
    trainer->settings->shards = there->shards; /* a run keeps its order of sums */
    return LK_OK;
}

/* Those of the run that another one begins with: as far as model and data have the same. */
static enum lk_status adopt_classes(struct lk_trainer *trainer, const char *text)
{
    const enum lk_status status = lk_model_read_classes(trainer->model, text);
    if (status == LK_E_DATA)
        lk_error_clear();
    else
        LK_TRY(status);
    return lk_binding_keep_classes(trainer->model, trainer->load.train,
                                   trainer->settings->init_from);
}

enum lk_status lk_trainer_read_classes(struct lk_trainer *trainer)
{
    const char *there = NULL;
    if (trainer->checkpoint)
        there = lk_checkpoint_metadata(trainer->checkpoint)->classes;
    else if (trainer->weights)
        there = lk_foreign_classes(trainer->weights);
    char *text = strdup(there ? there : "");
    if (!text)
        return lk_fail_memory("names of classes", there ? strlen(there) : 0);
    bool goes_on = trainer->checkpoint != NULL; /* which rank 0 knows */
    enum lk_status status = lk_trainer_share_text(trainer->world, &text);
    if (status == LK_OK)
        status = lk_world_broadcast(trainer->world, sizeof goes_on, &goes_on);
    if (status == LK_OK)
        status = goes_on ? lk_model_read_classes(trainer->model, text)
                         : adopt_classes(trainer, text);
    free(text);
    return status;
}

/* Reads the checkpoint to a device. A scale of the loss that the settings ask for replaces the
 * one in the checkpoint. */
static enum lk_status read_checkpoint(void *context, struct lk_worker *worker)
{
    const struct lk_trainer *trainer = context;
    const struct lk_optimizer_info *info =
        lk_optimizer_info(lk_stepper_optimizer(worker->stepper));
    const float scale = (float)trainer->settings->loss_scale;
    LK_TRY(lk_checkpoint_read(trainer->checkpoint, lk_stepper_replica(worker->stepper), info));
    return scale > 0 ? lk_buffer_write(info->scaling, LK_LOSS_SCALE_NOW * sizeof scale,
                                       sizeof scale, &scale)
                     : LK_OK;
}

enum lk_status lk_trainer_restore(struct lk_trainer *trainer, int64_t step)
{
    char path[1024];
    LK_TRY(lk_checkpoint_path(lk_run_folder_checkpoints(trainer->folder), step, path,
                              sizeof path));
    LK_TRY(lk_checkpoint_open(path, &trainer->checkpoint));
    const enum lk_status status =
        lk_team_call_each(trainer->team, read_checkpoint, trainer, false);
    lk_checkpoint_close(trainer->checkpoint);
    trainer->checkpoint = NULL;
    return status;
}

enum lk_status lk_trainer_resume(struct lk_trainer *trainer)
{
    const struct lk_checkpoint *about = lk_checkpoint_metadata(trainer->checkpoint);
    const struct lk_batches_position position = {about->epoch, about->index};
    LK_TRY(check_same_bits(trainer, about));
    if (about->plateau && *about->plateau)
        LK_TRY(lk_plateau_parse(about->plateau, &trainer->plateau));
    if (about->callbacks && *about->callbacks)
        LK_TRY(lk_callbacks_parse(trainer->callbacks, about->callbacks));
    LK_TRY(check_same_versions(trainer, about));
    LK_TRY(lk_team_call_each(trainer->team, read_checkpoint, trainer, false));
    LK_TRY(lk_team_set_updates(trainer->team, about->updates));
    warn_of_updates(trainer, about);
    LK_TRY(lk_checkpoint_set_aside(lk_run_folder_checkpoints(trainer->folder), about->step));
    int64_t batch = 0;
    LK_TRY(lk_batches_find(trainer->batches, position, &batch));
    if (batch != about->step)
        return lk_fail(LK_E_DATA,
                       "the run directory's checkpoint is of step %lld but at batch %lld of "
                       "the data",
                       (long long)about->step, (long long)batch);
    trainer->done = trainer->saved = about->step;
    trainer->owes_evaluation = about->owes_evaluation != 0;
    if (lk_callbacks_ended(trainer->callbacks))
        trainer->total_steps = lk_least(trainer->total_steps, trainer->done);
    lk_checkpoint_close(trainer->checkpoint);
    trainer->checkpoint = NULL;
    return LK_OK;
}
