/* What follows from evaluations, and what callbacks wish of a trainer. Floor 8. */
#ifndef LK_TRAIN_FOLLOW_H
#define LK_TRAIN_FOLLOW_H

#include "train/trainer_internal.h"

/* Whether schedule or callbacks make something of an evaluation now: only where one is due,
 * since a run that was stopped elsewhere is to go on as if it had not been. */
bool lk_trainer_follows(const struct lk_trainer *trainer);

/* Makes of an evaluation (NULL: there is none) what follows; all ranks learn the learning rate.
 */
LK_MUST_CHECK enum lk_status lk_trainer_follow(struct lk_trainer *trainer,
                                               const struct lk_evaluation *found);

/* Creates the callbacks, once the data is there, and opens their files behind what the run has
 * written. fails: LK_E_ARGUMENT: what does not fit the training; LK_E_IO */
LK_MUST_CHECK enum lk_status lk_trainer_create_callbacks(struct lk_trainer *trainer);
LK_MUST_CHECK enum lk_status lk_trainer_open_callbacks(struct lk_trainer *trainer);

/* Between steps: does what callbacks wish; `saves`: a checkpoint follows. Where all ranks pause
 * (is_agreed) the run may end here, with the state of an earlier step. fails: LK_E_DATA where a
 * callback wants that */
LK_MUST_CHECK enum lk_status lk_trainer_obey(struct lk_trainer *trainer, bool is_agreed,
                                             bool saves, bool *wants_checkpoint);

/* What a step is, by its number. */
void lk_trainer_describe_step(void *trainer, int64_t number, struct lk_team_step *step);

/* Says with which operation it began that numbers of `step`, one of the last, are not finite;
 * "": that is not known. No step may be on its way, and none may follow: the devices' state is
 * that of another step then. */
LK_MUST_CHECK enum lk_status lk_trainer_find_origin(void *trainer, int64_t step, char *text,
                                                    size_t bytes);

#endif
