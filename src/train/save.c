/* Saving a trainer's state and going on from it. */
#include "base/fail.h"
#include "io/file.h"
#include "model/checkpoint.h"
#include "train/trainer_parts.h"
#include <stdio.h>
#include <string.h>

enum { KEPT_CHECKPOINTS = 3 };

enum lk_status lk_trainer_save(struct lk_trainer *trainer)
{
    char path[1024];
    const char *folder = lk_run_folder_checkpoints(trainer->folder);
    const struct lk_batches_position position = lk_batches_position(trainer->batches);
    const struct lk_checkpoint about = {
        .model = lk_model_name(trainer->model),
        .model_text = lk_model_text(trainer->model),
        .data = trainer->settings->data,
        .device = lk_device_info(trainer->device)->name,
        .step = trainer->done,
        .epoch = position.epoch,
        .index = position.index,
        .seed = trainer->settings->seed,
        .batch = trainer->settings->batch_size,
    };
    if (!*folder)
        return LK_OK;
    LK_TRY(lk_checkpoint_path(folder, trainer->done, path, sizeof path));
    LK_TRY(lk_checkpoint_write(path, &about, lk_stepper_replica(trainer->stepper),
                               lk_optimizer_info(lk_stepper_optimizer(trainer->stepper))));
    LK_TRY(lk_checkpoint_prune(folder, KEPT_CHECKPOINTS));
    return lk_trainer_report(
        trainer, (struct lk_event){.kind = LK_EVENT_CHECKPOINT, .file = path}, NULL);
}

static enum lk_status differs(const char *what, long long there, long long asked)
{
    return lk_fail(
        LK_E_ARGUMENT,
        "the run directory's checkpoint has %s %lld, asked for is %lld: a run goes on "
        "only with its own; use --fresh to start over, or another directory",
        what, there, asked);
}

static enum lk_status check_same_run(const struct lk_trainer *trainer,
                                     const struct lk_checkpoint *there)
{
    const struct lk_settings *s = trainer->settings;
    if (strcmp(there->model_text, lk_model_text(trainer->model)) != 0)
        return lk_fail(LK_E_ARGUMENT,
                       "run directory '%s' holds another model ('%s', asked for is '%s'); use "
                       "--fresh to start over, or another directory",
                       s->run, there->model, lk_model_name(trainer->model));
    if (there->batch != s->batch_size)
        return differs("batch size", there->batch, s->batch_size);
    if (there->seed != s->seed)
        return differs("seed", there->seed, s->seed);
    if (s->shards && there->shards != s->shards)
        return differs("shards", there->shards, s->shards);
    return LK_OK;
}

enum lk_status lk_trainer_check_resume(struct lk_trainer *trainer, char path[1024])
{
    struct lk_checkpoint_file *file = NULL;
    path[0] = '\0';
    if (!lk_run_folder_path(trainer->folder)[0])
        return LK_OK;
    LK_TRY(lk_checkpoint_newest(lk_run_folder_checkpoints(trainer->folder), path, 1024));
    if (!*path)
        return LK_OK;
    LK_TRY(lk_checkpoint_open(path, &file));
    const struct lk_checkpoint *there = lk_checkpoint_about(file);
    const enum lk_status status = check_same_run(trainer, there);
    trainer->settings->shards = there->shards; /* a run keeps its order of sums */
    lk_checkpoint_close(file);
    return status;
}

enum lk_status lk_trainer_resume(struct lk_trainer *trainer, const char *path)
{
    struct lk_checkpoint_file *file = NULL;
    LK_TRY(lk_checkpoint_open(path, &file));
    const struct lk_checkpoint *about = lk_checkpoint_about(file);
    const struct lk_batches_position position = {about->epoch, about->index};
    enum lk_status status =
        lk_checkpoint_read(file, lk_stepper_replica(trainer->stepper),
                           lk_optimizer_info(lk_stepper_optimizer(trainer->stepper)));
    if (status == LK_OK)
        status = lk_batches_seek(trainer->batches, position);
    trainer->done = about->step;
    lk_checkpoint_close(file);
    return status == LK_OK ? LK_OK : lk_fail_within(status, "going on from '%s'", path);
}
