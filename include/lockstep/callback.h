/* Callbacks of programs: called for every event of a training, able to end it, to change the
 * learning rate and to add figures. Floor 8. */
#ifndef LOCKSTEP_CALLBACK_H
#define LOCKSTEP_CALLBACK_H

#include <lockstep/settings.h>
#include <lockstep/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct lk_event;

/* What a callback wants to happen; valid during the call. */
struct lk_callback_reply;

struct lk_callback {
    const char *name; /* one that no other has; messages mention it */
    void *context;
    /* Called on the thread of lk_trainer_create() or lk_trainer_run(), before the event is
     * written and shown. A failure ends the training with it. */
    enum lk_status (*call)(void *context, const struct lk_event *event,
                           struct lk_callback_reply *reply);
};

/* Adds a callback to the trainings that are created with these settings; in a job of several
 * ranks that of rank 0 is called. It is copied, its name and context must live as long as the
 * trainer. fails: LK_E_ARGUMENT: no name, one that is taken, more than 8 */
LK_API LK_MUST_CHECK enum lk_status
lk_settings_add_callback(struct lk_settings *settings, const struct lk_callback *callback);

/* Ends the training: after the step of the event where no step is on its way, else after the
 * next one; said before the first step, after the second. The run is then finished, as one is
 * that early_stopping has ended. */
LK_API void lk_callback_stop(struct lk_callback_reply *reply);

/* From the next step that is not begun yet the learning rate is `lr`, whatever the schedule
 * says; 0: as the schedule says. A run that goes on from a checkpoint keeps it. Several ranks:
 * at evaluations alone, and not where these come by minutes. fails: LK_E_ARGUMENT: below 0 or
 * not finite; elsewhere */
LK_API LK_MUST_CHECK enum lk_status lk_callback_set_lr(struct lk_callback_reply *reply,
                                                       double lr);

/* Adds a figure to a step or an evaluation: the event has it, metrics.jsonl, and of an
 * evaluation csv_log and tensorboard; callbacks can monitor it.
 * fails: LK_E_ARGUMENT another event, more than 32, a name of more than 63 characters, of the
 * training's own figures (loss, val_loss, seconds), with quotes or control characters, or not
 * UTF-8 */
LK_API LK_MUST_CHECK enum lk_status lk_callback_add_figure(struct lk_callback_reply *reply,
                                                           const char *name, double value);

#ifdef __cplusplus
}
#endif
#endif
