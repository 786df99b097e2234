/* Saves a trainer's state. */
#include "train/saving.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/parallel.h"
#include "io/file.h"
#include "model/checkpoint/checkpoint.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEPT_CHECKPOINTS = 3 }; /* where no callback says how many */

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
    char text[1024];    /* of its failure */
    char warning[1024]; /* of files that are not on disk; "": none */
    atomic_bool is_over;
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

static void write_now(struct lk_writing *w)
{
    w->status = write_files(w);
    if (w->status != LK_OK)
        snprintf(w->text, sizeof w->text, "%s", lk_error_text());
    lk_error_clear();
    w->ended = lk_seconds();
    atomic_store(&w->is_over, true);
}

/* A CPU that trains has no core to spare for it. */
static void *write_on_thread(void *context)
{
    lk_thread_give_way();
    write_now(context);
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
        write_now(w);
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
    return lk_callbacks_saved(trainer->callbacks, step, w->path);
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

/* Waits until the checkpoint that is on its way is written, and tells of it. may_miss: a disk
 * that takes none is no failure; one of a program that hears of it is. */
static enum lk_status end_writing(struct lk_trainer *trainer, bool may_miss)
{
    struct lk_writing *w = trainer->writing;
    if (!w)
        return LK_OK;
    if (w->is_alone)
        pthread_join(w->thread, NULL);
    trainer->writing = NULL;
    const int64_t step = lk_snapshot_step(w->snapshot);
    enum lk_status status = settle(trainer, w);
    if (status == LK_OK) {
        status = lk_trainer_report(
            trainer,
            (struct lk_event){.kind = LK_EVENT_CHECKPOINT, .step = step, .file = w->path});
    } else if (status == LK_E_IO && may_miss) {
        miss(trainer, step);
        status = LK_OK;
    }
    free(w);
    return status;
}

enum lk_status lk_trainer_settle(struct lk_trainer *trainer)
{
    return end_writing(trainer, true);
}

enum lk_status lk_trainer_settle_if_over(struct lk_trainer *trainer)
{
    const struct lk_writing *w = trainer->writing;
    return w && atomic_load(&w->is_over) ? lk_trainer_settle(trainer) : LK_OK;
}

void lk_trainer_forget_state(struct lk_trainer *trainer)
{
    if (trainer->writing && trainer->writing->is_alone)
        pthread_join(trainer->writing->thread, NULL);
    free(trainer->writing);
    lk_saved_destroy(trainer->state);
    lk_trainer_drop_copy(trainer);
    trainer->writing = NULL;
    trainer->state = NULL;
}

/* People tidy up while a training runs. A disk that takes no file that tells of the run may
 * still take a checkpoint. */
static enum lk_status find_folder(struct lk_trainer *trainer)
{
    struct lk_setting_changes changes = {0};
    bool is_bare = false;
    LK_TRY(lk_run_folder_find(trainer->folder, &is_bare));
    lk_callbacks_find(trainer->callbacks);
    enum lk_status status = /* as of one that is finished: config.yaml may be there */
        is_bare ? lk_trainer_describe(trainer, LK_RUN_IS_FINISHED, &changes) : LK_OK;
    lk_setting_changes_clear(&changes);
    if (status == LK_E_IO) {
        if (!trainer->has_missed_files)
            lk_log(LK_LOG_WARNING, "%s; checkpoints are written without it", lk_error_text());
        lk_error_clear();
        trainer->has_missed_files = true;
        status = LK_OK;
    }
    return status;
}

static enum lk_status begin(struct lk_trainer *trainer, bool is_alone, double start)
{
    LK_TRY(find_folder(trainer));
    LK_TRY(begin_writing(trainer, is_alone));
    lk_profile_span(trainer->profile, "trainer", "checkpoint",
                    lk_snapshot_step(trainer->state->snapshot), start, lk_seconds());
    return LK_OK;
}

static enum lk_status save(struct lk_trainer *trainer, bool is_alone)
{
    const double start = lk_seconds();
    trainer->saves_late = false;
    if (!*lk_run_folder_checkpoints(trainer->folder)) {
        trainer->saved = trainer->done;
        return LK_OK;
    }
    LK_TRY(lk_trainer_take_snapshot(trainer));
    return begin(trainer, is_alone, start);
}

enum lk_status lk_trainer_save(struct lk_trainer *trainer)
{
    LK_TRY(save(trainer, false));
    return end_writing(trainer, false);
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

enum lk_status lk_trainer_save_copy(struct lk_trainer *trainer)
{
    const double start = lk_seconds();
    bool is_taken = false;
    LK_TRY(lk_trainer_take_copy(trainer, &is_taken));
    const enum lk_status status = is_taken ? begin(trainer, true, start) : LK_OK;
    if (status != LK_E_IO)
        return status;
    miss(trainer, lk_snapshot_step(trainer->state->snapshot));
    return LK_OK;
}

enum lk_status lk_trainer_save_snapshot(struct lk_trainer *trainer)
{
    LK_TRY(lk_trainer_settle(trainer));
    if (!trainer->state)
        return LK_OK;
    trainer->done = lk_snapshot_step(trainer->state->snapshot);
    LK_TRY(find_folder(trainer));
    LK_TRY(begin_writing(trainer, false));
    return end_writing(trainer, false);
}
