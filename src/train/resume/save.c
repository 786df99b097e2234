/* Saves a trainer's state. */
#include "train/saving.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/log.h"
#include "io/file.h"
#include "model/checkpoint/checkpoint.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEPT_CHECKPOINTS = 3 }; /* where no callback says how many */

/* *text stays NULL where the schedule has no state; the caller frees it. */
static enum lk_status print_plateau(const struct lk_trainer *trainer, char **text)
{
    char printed[LK_PLATEAU_TEXT];
    if (trainer->schedule.kind != LK_LR_SCHEDULE_PLATEAU)
        return LK_OK;
    lk_plateau_print(&trainer->plateau, printed);
    *text = strdup(printed);
    return *text ? LK_OK : lk_fail_memory("the state of a schedule", sizeof printed);
}

/* Likewise, of callbacks. */
static enum lk_status print_callbacks(const struct lk_trainer *trainer, char **text)
{
    return lk_callbacks_follow(trainer->callbacks)
               ? lk_callbacks_print(trainer->callbacks, text)
               : LK_OK;
}

/* --- a state in host memory --------------------------------------------------------------- */

struct lk_saved {
    struct lk_snapshot *snapshot;
    char *choices, *plateau, *callbacks; /* which it borrows */
};

static void destroy_saved(struct lk_saved *saved)
{
    if (!saved)
        return;
    lk_snapshot_destroy(saved->snapshot);
    free(saved->choices);
    free(saved->plateau);
    free(saved->callbacks);
    free(saved);
}

static enum lk_status take(struct lk_trainer *trainer, struct lk_worker *worker,
                           struct lk_saved *saved)
{
    const struct lk_staleness *staleness = lk_team_staleness(trainer->team);
    const struct lk_batches_position position =
        lk_batches_position(trainer->batches, trainer->done);
    LK_TRY(lk_choices_print(trainer->choices, &saved->choices));
    LK_TRY(print_plateau(trainer, &saved->plateau));
    LK_TRY(print_callbacks(trainer, &saved->callbacks));
    const struct lk_checkpoint about = {
        .choices = saved->choices,
        .plateau = saved->plateau,
        .callbacks = saved->callbacks,
        .classes = trainer->classes_text,
        .vocabulary = lk_data_vocabulary(trainer->load.train),
        .model = lk_model_name(trainer->model),
        .model_text = lk_model_text(trainer->model),
        .data = trainer->settings->data,
        .validation = trainer->settings->validation,
        .pipeline = trainer->settings->pipeline,
        .eval_pipeline = trainer->eval_text,
        .max_bad = trainer->settings->max_bad,
        .data_sum = trainer->data_sum,
        .device = lk_device_info(worker->device)->name,
        .step = trainer->done,
        .epoch = position.epoch,
        .index = position.index,
        .seed = trainer->settings->seed,
        .batch = trainer->settings->batch_size,
        .shuffle = trainer->settings->shuffle,
        .shards = trainer->shards,
        .drop_remainder = trainer->settings->drop_remainder,
        .bucket = trainer->settings->bucket,
        .mixed = trainer->settings->precision == LK_PRECISION_MIXED,
        .versions = trainer->features.draws ? trainer->features.versions : 0,
        .owes_evaluation = trainer->owes_evaluation,
        .updates = staleness ? staleness->updates : trainer->done,
    };
    return lk_snapshot_take(&about, lk_stepper_replica(worker->stepper),
                            lk_optimizer_info(lk_stepper_optimizer(worker->stepper)),
                            &saved->snapshot);
}

/* Of the state that is written no other one takes the place before it is settled. */
static enum lk_status take_snapshot(void *context, struct lk_worker *worker)
{
    struct lk_trainer *trainer = context;
    struct lk_saved *saved = calloc(1, sizeof *saved);
    if (!saved)
        return lk_fail_memory("a state", sizeof *saved);
    const enum lk_status status = take(trainer, worker, saved);
    if (status != LK_OK) {
        destroy_saved(saved);
        return status;
    }
    destroy_saved(trainer->state);
    trainer->state = saved;
    return LK_OK;
}

enum lk_status lk_trainer_take_snapshot(struct lk_trainer *trainer)
{
    trainer->snapshot_at = lk_seconds();
    if (!*lk_run_folder_checkpoints(trainer->folder))
        return LK_OK;
    LK_TRY(lk_trainer_settle(trainer));
    return lk_team_call(trainer->team, take_snapshot, trainer);
}

/* --- writing it --------------------------------------------------------------------------- */

/* A checkpoint on its way to disk, on a thread of its own while training goes on. */
struct lk_writing {
    struct lk_trainer *trainer;
    struct lk_snapshot *snapshot; /* the trainer's state */
    char folder[1024], path[1024];
    int64_t kept[LK_MOST_KEPT];
    int kept_count, newest;
    bool is_alone; /* on a thread */
    pthread_t thread;
    enum lk_status status;
    char text[1024];     /* of its failure */
    char warning[1024];  /* of files that are not on disk; "": none */
    double began, ended; /* lk_seconds() */
};

/* Nothing of the trainer is used but files, whose descriptors stay open. */
static enum lk_status write_files(struct lk_writing *w)
{
    enum lk_status synced = lk_run_folder_sync(w->trainer->folder);
    if (synced == LK_OK)
        synced = lk_callbacks_sync(w->trainer->callbacks);
    if (synced != LK_OK) /* a log that is not on disk is no reason not to save the state */
        snprintf(w->warning, sizeof w->warning, "%s", lk_error_text());
    lk_error_clear();
    LK_TRY(lk_snapshot_write(w->snapshot, w->path));
    return lk_checkpoint_prune(w->folder, w->newest, w->kept, w->kept_count);
}

static void *write_on_thread(void *context)
{
    struct lk_writing *w = context;
    w->status = write_files(w);
    if (w->status != LK_OK)
        snprintf(w->text, sizeof w->text, "%s", lk_error_text());
    lk_error_clear();
    w->ended = lk_seconds();
    return NULL;
}

/* Begins to write the trainer's state; is_alone: on a thread, where there is one to be had. */
static enum lk_status begin_writing(struct lk_trainer *trainer, bool is_alone)
{
    struct lk_writing *w = calloc(1, sizeof *w);
    if (!w)
        return lk_fail_memory("a checkpoint", sizeof *w);
    w->trainer = trainer;
    w->snapshot = trainer->state->snapshot;
    w->newest = KEPT_CHECKPOINTS;
    w->kept_count = lk_callbacks_keep(trainer->callbacks, w->kept, &w->newest);
    w->began = lk_seconds();
    snprintf(w->folder, sizeof w->folder, "%s", lk_run_folder_checkpoints(trainer->folder));
    enum lk_status status =
        lk_checkpoint_path(w->folder, lk_snapshot_step(w->snapshot), w->path, sizeof w->path);
    if (status == LK_OK)
        status = lk_run_folder_flush(trainer->folder, false);
    if (status == LK_OK)
        status = lk_callbacks_flush(trainer->callbacks, false);
    if (status != LK_OK) {
        free(w);
        return status;
    }
    trainer->writing = w;
    w->is_alone = is_alone && pthread_create(&w->thread, NULL, write_on_thread, w) == 0;
    if (!w->is_alone)
        write_on_thread(w);
    return LK_OK;
}

static enum lk_status settle(struct lk_trainer *trainer, const struct lk_writing *w)
{
    const int64_t step = lk_snapshot_step(w->snapshot);
    lk_profile_span(trainer->profile, "checkpoint", "write", step, w->began, w->ended);
    if (*w->warning && !trainer->has_missed_logs)
        lk_log(LK_LOG_WARNING, "%s; the checkpoint of step %lld is written without it",
               w->warning, (long long)step);
    trainer->has_missed_logs = *w->warning != '\0';
    if (w->status != LK_OK)
        return lk_fail(w->status, "%s", w->text);
    trainer->saved = step;
    if (trainer->unsaved > 0)
        lk_log(LK_LOG_WARNING, "checkpoints are saved again from step %lld on; %lld were not",
               (long long)step, (long long)trainer->unsaved);
    trainer->unsaved = 0;
    LK_TRY(lk_callbacks_saved(trainer->callbacks, step, w->path));
    return lk_trainer_report(
        trainer, (struct lk_event){.kind = LK_EVENT_CHECKPOINT, .step = step, .file = w->path});
}

/* Waits until the checkpoint that is on its way is written, and tells of it. */
static enum lk_status end_writing(struct lk_trainer *trainer)
{
    struct lk_writing *w = trainer->writing;
    if (!w)
        return LK_OK;
    if (w->is_alone)
        pthread_join(w->thread, NULL);
    trainer->writing = NULL;
    const enum lk_status status = settle(trainer, w);
    free(w);
    return status;
}

/* A disk that stays full is told of once; what follows is counted. */
static void miss(struct lk_trainer *trainer, int64_t step)
{
    if (trainer->unsaved++ == 0)
        lk_log(LK_LOG_WARNING,
               "the checkpoint of step %lld could not be saved, training goes on; the newest "
               "one is of step %lld: %s",
               (long long)step, (long long)trainer->saved, lk_error_text());
    lk_error_clear();
}

enum lk_status lk_trainer_settle(struct lk_trainer *trainer)
{
    const int64_t step = trainer->writing ? lk_snapshot_step(trainer->writing->snapshot) : 0;
    const enum lk_status status = end_writing(trainer);
    if (status != LK_E_IO)
        return status;
    miss(trainer, step);
    return LK_OK;
}

void lk_trainer_forget_state(struct lk_trainer *trainer)
{
    if (trainer->writing && trainer->writing->is_alone)
        pthread_join(trainer->writing->thread, NULL);
    free(trainer->writing);
    destroy_saved(trainer->state);
    trainer->writing = NULL;
    trainer->state = NULL;
}

/* People tidy up while a training runs. */
static enum lk_status find_folder(struct lk_trainer *trainer)
{
    struct lk_setting_changes changes = {0};
    bool is_new = false;
    LK_TRY(lk_run_folder_find(trainer->folder, &is_new));
    const enum lk_status status = is_new ? lk_trainer_begin_folder(trainer, &changes) : LK_OK;
    lk_setting_changes_clear(&changes);
    return status;
}

static enum lk_status save(struct lk_trainer *trainer, bool is_alone)
{
    const double start = lk_seconds();
    if (!*lk_run_folder_checkpoints(trainer->folder)) {
        trainer->saved = trainer->done;
        return LK_OK;
    }
    LK_TRY(lk_trainer_take_snapshot(trainer));
    LK_TRY(find_folder(trainer));
    LK_TRY(begin_writing(trainer, is_alone));
    lk_profile_span(trainer->profile, "trainer", "checkpoint", trainer->done, start,
                    lk_seconds());
    return LK_OK;
}

enum lk_status lk_trainer_save(struct lk_trainer *trainer)
{
    LK_TRY(save(trainer, false));
    return end_writing(trainer);
}

/* A program's callbacks hear of a checkpoint before the next step, and may change that. */
enum lk_status lk_trainer_begin_to_save(struct lk_trainer *trainer)
{
    const bool is_alone = trainer->settings->own_callback_count == 0;
    const enum lk_status status = save(trainer, is_alone);
    if (status == LK_E_IO) {
        miss(trainer, trainer->done);
        return LK_OK;
    }
    return status != LK_OK || is_alone ? status : lk_trainer_settle(trainer);
}

enum lk_status lk_trainer_save_snapshot(struct lk_trainer *trainer)
{
    LK_TRY(lk_trainer_settle(trainer));
    if (!trainer->state)
        return LK_OK;
    trainer->done = lk_snapshot_step(trainer->state->snapshot);
    LK_TRY(begin_writing(trainer, false));
    return end_writing(trainer);
}
