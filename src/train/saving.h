/* Saves a trainer's state, and goes on: from a saved one, or on the devices that are left.
 * Floor 8. */
#ifndef LK_TRAIN_SAVING_H
#define LK_TRAIN_SAVING_H

#include "model/checkpoint/checkpoint.h"
#include "train/trainer_internal.h"

/* A state in host memory. */
struct lk_saved {
    struct lk_checkpoint about;
    struct lk_snapshot *snapshot;        /* NULL: the devices' part is still to come */
    char *choices, *plateau, *callbacks; /* which both borrow */
    struct lk_team_counts counts;        /* while it is still to come */
};
void lk_saved_destroy(struct lk_saved *saved);

/* Keeps the state after trainer->done steps in host memory, where there is a run directory. No
 * step may be on its way, here and below. */
LK_MUST_CHECK enum lk_status lk_trainer_take_snapshot(struct lk_trainer *trainer);

/* Writes a checkpoint of the state after trainer->done steps and reports it. fails: LK_E_IO */
LK_MUST_CHECK enum lk_status lk_trainer_save(struct lk_trainer *trainer);

/* Begins to write it, on a thread, while training goes on. Where it cannot be written this is
 * said, and the ones before stay. */
LK_MUST_CHECK enum lk_status lk_trainer_begin_to_save(struct lk_trainer *trainer);

/* --- in passing: the state is copied on its way, while the next step runs already ------- */

/* Whether steps after which nothing but a checkpoint is due are begun with copies_state. */
bool lk_trainer_saves_in_passing(const struct lk_trainer *trainer);

/* After such a step: notes what belongs to its state beside what is on the device. */
LK_MUST_CHECK enum lk_status lk_trainer_note_copy(struct lk_trainer *trainer);

/* After each step: where the copy is there by now, it becomes the state in host memory; save
 * begins to write it as well. Where it is lost, trainer->saves_late. */
LK_MUST_CHECK enum lk_status lk_trainer_take_copy(struct lk_trainer *trainer, bool *is_taken);
LK_MUST_CHECK enum lk_status lk_trainer_save_copy(struct lk_trainer *trainer);

/* Forgets what was noted: no later step is begun. */
void lk_trainer_drop_copy(struct lk_trainer *trainer);

/* As lk_trainer_settle() if that does not wait. */
LK_MUST_CHECK enum lk_status lk_trainer_settle_if_over(struct lk_trainer *trainer);

/* --- all of them ------------------------------------------------------------------------ */

/* Waits until that is done, and reports it. Call it before anything reads or removes files of
 * checkpoints. */
LK_MUST_CHECK enum lk_status lk_trainer_settle(struct lk_trainer *trainer);

/* Waits likewise and frees the state; reports nothing. */
void lk_trainer_forget_state(struct lk_trainer *trainer);

/* Where no device is left: writes the state that was kept last, unless it is saved already. */
LK_MUST_CHECK enum lk_status lk_trainer_save_snapshot(struct lk_trainer *trainer);

/* Sets all devices to the state of the run's checkpoint of that step. fails: LK_E_IO, LK_E_DATA
 */
LK_MUST_CHECK enum lk_status lk_trainer_restore(struct lk_trainer *trainer, int64_t step);

/* Opens the run directory's newest checkpoint, where there is one, if it belongs to this model
 * and these settings. fails: LK_E_ARGUMENT, naming what differs */
LK_MUST_CHECK enum lk_status lk_trainer_check_resume(struct lk_trainer *trainer);

/* Goes on from the checkpoint that is open, and closes it: weights, optimizer, step, position
 * in the data. fails: LK_E_ARGUMENT for other data, as lk_checkpoint_read() */
LK_MUST_CHECK enum lk_status lk_trainer_resume(struct lk_trainer *trainer);

/* One try to create a trainer. *again: it has failed, and can be tried with the devices that
 * `settings` has then: where a divided model has lost some of its own. */
LK_MUST_CHECK enum lk_status
lk_trainer_create_with(struct lk_settings *settings,
                       void (*handler)(void *, const struct lk_event *), void *context,
                       struct lk_trainer **trainer, bool *again);

/* Whether devices are left on which its model can be placed: sets these and the place in
 * `settings`. */
bool lk_trainer_take_left(const struct lk_trainer *trainer, struct lk_settings *settings);

#endif
