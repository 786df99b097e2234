/* A trainer's state in host memory: read while no step is on its way, or copied in passing. */
#include "train/saving.h"

#include "base/clock.h"
#include "base/fail.h"
#include "device/staging.h"
#include <stdlib.h>
#include <string.h>

/* Between two of which one is free again when a step that is to be copied is begun. */
enum { LEAST_INTERVAL = 3 };

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

void lk_saved_destroy(struct lk_saved *saved)
{
    if (!saved)
        return;
    lk_snapshot_destroy(saved->snapshot);
    free(saved->choices);
    free(saved->plateau);
    free(saved->callbacks);
    free(saved);
}

/* Says what belongs to the state beside what is on the device. */
static enum lk_status describe(const struct lk_trainer *trainer, const struct lk_worker *worker,
                               struct lk_saved *saved)
{
    const struct lk_staleness *staleness = lk_team_staleness(trainer->team);
    const struct lk_batches_position position =
        lk_batches_position(trainer->batches, trainer->done);
    LK_TRY(lk_choices_print(trainer->choices, &saved->choices));
    LK_TRY(print_plateau(trainer, &saved->plateau));
    LK_TRY(print_callbacks(trainer, &saved->callbacks));
    saved->about = (struct lk_checkpoint){
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
        .planes = trainer->asks_planes,
        .drop_remainder = trainer->settings->drop_remainder,
        .bucket = trainer->settings->bucket,
        .mixed = trainer->settings->precision == LK_PRECISION_MIXED,
        .versions = trainer->features.draws ? trainer->features.versions : 0,
        .owes_evaluation = trainer->owes_evaluation,
        .updates = staleness ? staleness->updates : trainer->done,
    };
    return LK_OK;
}

/* With what is on the device, which waits, or `there`. */
static enum lk_status take(const struct lk_worker *worker, const struct lk_host_state *there,
                           struct lk_saved *saved)
{
    return lk_snapshot_take(&saved->about, lk_stepper_replica(worker->stepper),
                            lk_optimizer_info(lk_stepper_optimizer(worker->stepper)), there,
                            &saved->snapshot);
}

/* Of the state that is written no other one takes the place before it is settled. */
static enum lk_status take_snapshot(void *context, struct lk_worker *worker)
{
    struct lk_trainer *trainer = context;
    struct lk_saved *saved = calloc(1, sizeof *saved);
    if (!saved)
        return lk_fail_memory("a state", sizeof *saved);
    enum lk_status status = describe(trainer, worker, saved);
    if (status == LK_OK)
        status = take(worker, NULL, saved);
    if (status != LK_OK) {
        lk_saved_destroy(saved);
        return status;
    }
    lk_saved_destroy(trainer->state);
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

/* --- in passing ----------------------------------------------------------------------- */

bool lk_trainer_saves_in_passing(const struct lk_trainer *trainer)
{
    const int64_t every =
        lk_callbacks_save_every(trainer->callbacks, trainer->settings->checkpoint_every);
    return *lk_run_folder_checkpoints(trainer->folder) && every >= LEAST_INTERVAL &&
           trainer->settings->mode != LK_TRAIN_ASYNC && !trainer->has_no_copies &&
           !lk_callbacks_pause_to_save(trainer->callbacks);
}

enum lk_status lk_trainer_note_copy(struct lk_trainer *trainer)
{
    struct lk_saved *saved = calloc(1, sizeof *saved);
    if (!saved)
        return lk_fail_memory("a state", sizeof *saved);
    lk_saved_destroy(trainer->passing);
    trainer->passing = saved;
    saved->counts = lk_team_counts(trainer->team);
    return describe(trainer, lk_team_lead(trainer->team), saved);
}

/* Whether nothing has happened to the devices since; otherwise the copy may be that of one that
 * was wrong, or a step that was repeated has changed it. */
static bool is_undisturbed(const struct lk_team_counts *was, const struct lk_team_counts *is)
{
    return was->lost == is->lost && was->repaired == is->repaired &&
           was->repeated_steps == is->repeated_steps;
}

static enum lk_status adopt(struct lk_trainer *trainer, const struct lk_state_copy *copy)
{
    struct lk_saved *saved = trainer->passing;
    struct lk_host_state there = {0};
    for (int i = 0; i < LK_MOST_PLACES && copy->state[i]; i++) {
        there.weights[i] = lk_staging_memory(copy->weights[i]);
        there.state[i] = lk_staging_memory(copy->state[i]);
    }
    LK_TRY(take(lk_team_lead(trainer->team), &there, saved));
    LK_TRY(lk_trainer_settle(trainer));
    lk_saved_destroy(trainer->state);
    trainer->state = saved;
    trainer->passing = NULL;
    return LK_OK;
}

enum lk_status lk_trainer_take_copy(struct lk_trainer *trainer, bool *is_taken)
{
    const struct lk_saved *saved = trainer->passing;
    if (!saved || saved->about.step >= trainer->done)
        return LK_OK;
    const struct lk_team_counts counts = lk_team_counts(trainer->team);
    const bool is_right = is_undisturbed(&saved->counts, &counts);
    const struct lk_state_copy *copy =
        is_right ? lk_team_take_copy(trainer->team, saved->about.step) : NULL;
    if (copy) {
        *is_taken = true;
        return adopt(trainer, copy);
    }
    trainer->has_no_copies = is_right;
    trainer->saves_late = true;
    lk_trainer_drop_copy(trainer);
    return LK_OK;
}

void lk_trainer_drop_copy(struct lk_trainer *trainer)
{
    lk_saved_destroy(trainer->passing);
    trainer->passing = NULL;
}
