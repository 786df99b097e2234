/* Steps that the devices of a team share in lockstep, for the files that make them up and for
 * the team above. Floor 7. */
#ifndef LK_TEAM_LOCKSTEP_LOCKSTEP_H
#define LK_TEAM_LOCKSTEP_LOCKSTEP_H

#include "team/workers/parts.h"

/* Announces the next step; the mutex is held. fails: LK_E_ARGUMENT where two are begun */
LK_MUST_CHECK enum lk_status lk_lockstep_begin(struct lk_team *team,
                                               const struct lk_team_step *step);

/* Reads the policy. fails: LK_E_ARGUMENT */
LK_MUST_CHECK enum lk_status lk_team_init_deal(struct lk_team *team);

/* The shards of this rank. */
struct lk_shard_run lk_team_run(const struct lk_team *team);

/* Gives every device of this rank that is left its run of them. */
void lk_team_deal(struct lk_team *team);

/* Learns from a step that counts how fast the devices of all ranks are, and which were lost;
 * the next one may be dealt otherwise. The mutex is held. fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status
lk_team_measure(struct lk_team *team, const struct lk_team_result *result, double step_seconds);

/* Lets the device go on alone, if it can; the others become idle. The mutex is not held, here
 * and in what follows. */
void lk_team_go_alone(struct lk_team *team, struct lk_worker *worker);

/* Behind lk_team_keep_state(), where one is alone and it is time: takes all back to work for
 * another trial. */
LK_MUST_CHECK enum lk_status lk_team_try_again(struct lk_team *team);

/* Keeps the state of the one that is alone, so that little is done again where it fails. */
LK_MUST_CHECK enum lk_status lk_team_keep_state(struct lk_team *team);

/* Takes all that are idle back to work, after the one that was alone is lost: they end all
 * steps that it has ended, and have begun those that it had begun. fails: LK_E_DEVICE where
 * none of them can */
LK_MUST_CHECK enum lk_status lk_team_call_back(struct lk_team *team,
                                               struct lk_team_result *last);

/* Does steps again that were ended before; those that are begun are begun anew. *result: of
 * the last one. */
LK_MUST_CHECK enum lk_status lk_team_redo(struct lk_team *team, int64_t first, int64_t last,
                                          struct lk_team_result *result);

/* Steps of one that is alone; the mutex is held. */
void lk_team_order_alone(struct lk_team *team, enum lk_order_kind kind,
                         const struct lk_team_step *step);
LK_MUST_CHECK enum lk_status lk_team_end_alone(struct lk_team *team,
                                               struct lk_team_result *result);

/* Ends the oldest step, which several devices share; the mutex is held. */
LK_MUST_CHECK enum lk_status lk_team_end_shared(struct lk_team *team,
                                                struct lk_team_result *result);

/* Adds up all that the devices bring for the oldest step, for every device that is left, and
 * the metrics. False in *is_whole: the step has to be computed again. The mutex is held, but
 * not while adding. */
LK_MUST_CHECK enum lk_status lk_team_collect(struct lk_team *team, void *metrics,
                                             bool *is_whole);

/* Of this rank's devices, in the step at work. */
void lk_team_fill_times(const struct lk_team *team, struct lk_device_times *times);

#endif
