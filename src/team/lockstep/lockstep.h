/* Steps in lockstep, for the files that make them up and for the team above. Floor 7.
 *
 * The trainer's thread sends commands, collects and commits; what the devices' threads do is a
 * table of functions, struct lk_team_acts. A device that is alone is the only sharer of a step.
 *
 * step.c leads a step through the other files: deal.c, collect.c, trial.c and recall.c, which
 * comes back to step.c to repeat steps. Where there are several ranks, deal.c and collect.c go
 * on through ranks.c, and that through tell.c. */
#ifndef LK_TEAM_LOCKSTEP_LOCKSTEP_H
#define LK_TEAM_LOCKSTEP_LOCKSTEP_H

#include "team/workers/internal.h"

/* --- steps: the mutex is held, but for lk_lockstep_redo() -------------------------------- */

/* Announces the next step. fails: LK_E_ARGUMENT where two are begun */
LK_MUST_CHECK enum lk_status lk_lockstep_begin(struct lk_team *team,
                                               const struct lk_team_step *step);

/* Ends the oldest step, whatever devices fail meanwhile; fails as lk_team_end(). */
LK_MUST_CHECK enum lk_status lk_lockstep_end(struct lk_team *team,
                                             struct lk_team_result *result);

/* Repeats steps that had ended, on devices that were called back because the device that was
 * alone is lost. Steps that were begun are begun anew, and shared. */
LK_MUST_CHECK enum lk_status lk_lockstep_redo(struct lk_team *team, int64_t first,
                                              int64_t last);

/* Waits for all that the devices bring for the oldest step, and adds it up for every device
 * that is left, and the metrics. False in *is_whole: the step has to be computed again. The
 * mutex is released while adding. */
LK_MUST_CHECK enum lk_status lk_team_collect(struct lk_team *team, void *metrics,
                                             bool *is_whole);

/* Tells a device to end the oldest step. */
void lk_team_send_end(struct lk_team *team, struct lk_worker *worker, bool weights);

/* Fills in the times of this rank's devices in the step at work. */
void lk_team_fill_times(const struct lk_team *team, struct lk_device_times *times);

/* --- who computes what ------------------------------------------------------------------- */

/* Reads how shards are to be divided (`--split`). fails: LK_E_ARGUMENT */
LK_MUST_CHECK enum lk_status lk_team_init_split(struct lk_team *team);

/* The shards of this rank. */
struct lk_shard_run lk_team_own_shards(const struct lk_team *team);

/* Gives every device of this rank that is left its share of them. */
void lk_team_assign_shards(struct lk_team *team);

/* Learns from a committed step how fast the devices of all ranks are and which were lost; the
 * shards of the next step may be divided otherwise. The mutex is held. fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status
lk_team_measure(struct lk_team *team, const struct lk_team_result *result, double step_seconds);

/* Counts a step in the trial that is under way, if one is; call it behind lk_team_measure().
 * has_changed: the shares were changed there. */
void lk_team_try_step(struct lk_team *team, double seconds, bool has_changed);

/* --- one alone: the mutex is not held ---------------------------------------------------- */

/* The one device that is at work; any one, if a call has lost that. */
struct lk_worker *lk_team_only(struct lk_team *team);

/* Lets the device go on alone, if it has memory for that; the others rest. */
void lk_team_go_alone(struct lk_team *team, struct lk_worker *worker);

/* Copies the state of the device that is alone to the host, so that few steps have to be
 * repeated where it fails. */
LK_MUST_CHECK enum lk_status lk_team_keep_state(struct lk_team *team);

/* Takes all devices back to work for another trial, if it is time; call it behind
 * lk_team_keep_state(). */
LK_MUST_CHECK enum lk_status lk_team_try_again(struct lk_team *team);

/* Takes all that rest back to work, after the one that was alone is lost or is in doubt: they
 * end all steps that it has ended, and have begun those that it had begun. fails: LK_E_DEVICE
 * where none of them can */
LK_MUST_CHECK enum lk_status lk_team_call_back(struct lk_team *team, struct lk_worker *doubted);

/* --- acts of a device's thread ------------------------------------------------------------ */

LK_MUST_CHECK enum lk_status lk_share_begin(struct lk_worker *worker,
                                            const struct lk_command *command);
LK_MUST_CHECK enum lk_status lk_share_end(struct lk_worker *worker,
                                          const struct lk_command *command);
LK_MUST_CHECK enum lk_status lk_alone_begin(struct lk_worker *worker,
                                            const struct lk_command *command);
LK_MUST_CHECK enum lk_status lk_alone_end(struct lk_worker *worker,
                                          const struct lk_command *command);
LK_MUST_CHECK enum lk_status lk_alone_change(void *context, struct lk_worker *worker);

#endif
