/* Devices that train one model together, in lockstep. Floor 7.
 *
 * Each has a replica and a host thread. A step's batch is cut into shards, every device
 * computes a run of them, the host adds their sums along the fixed tree and every device
 * updates by the same sum. A device that fails is left behind: its step is computed again by
 * the others from the same parameters, so that nothing is lost or counted twice. A device that
 * is alone from the start needs no host for its sums. One thread calls these functions. */
#ifndef LK_TEAM_TEAM_H
#define LK_TEAM_TEAM_H

#include "mirror/staleness.h"
#include "team/workers/call.h"

struct lk_profile;

/* How many shards a device computes at a time where it has room: twice its equal share, so that
 * a fast one can take more, and all where one device of two is left; a power of two. */
int lk_team_most_shards(int shards, int devices);

/* Likewise the devices of a group, of so many places and groups, before anything is measured:
 * the longer they wait for one another (lk_group_wait()), the fewer. Of stages in a row so few
 * that the share of a group are four micro-batches for each device; of branches, that do not
 * wait, all of its share. */
int lk_team_most_of_group(int shards, int places, int groups, double wait);

/* How many micro-batches are on their way through a group where it has room: `wanted`, or for 0
 * one for each place and one that is ready when a device would wait for another one. A lone
 * device has one. */
int lk_team_in_flight(int wanted, int places);

/* Opens the devices and plans; what a device cannot hold is computed in several micro-batches.
 * A device that fails is left out with a warning. fails: LK_E_ARGUMENT for more devices than
 * shards; as the last device where none is left: then *team tells which have failed, and is to
 * be destroyed */
LK_MUST_CHECK enum lk_status lk_team_create(const struct lk_team_config *config,
                                            struct lk_team **team);

/* Builds kernels and allocates, on all devices at once; weights are set from the seed. */
LK_MUST_CHECK enum lk_status lk_team_build(struct lk_team *team);
void lk_team_destroy(struct lk_team *team);

/* What steps read from now on; must outlive the team's threads, so destroy it after the team.
 */
void lk_team_set_batches(struct lk_team *team, struct lk_batches *batches);

/* Sets a function that describes a step by its number. It is asked when a device that went on
 * alone is lost: the others then do again steps that were ended long before. Without the
 * function no device goes on alone. */
void lk_team_set_steps(struct lk_team *team,
                       void (*describe)(void *context, int64_t number,
                                        struct lk_team_step *step),
                       void *context);

/* Traces the devices and what the host does; NULL: does not. */
LK_MUST_CHECK enum lk_status lk_team_set_profile(struct lk_team *team,
                                                 struct lk_profile *profile);

/* Calls call(context, worker) on the thread of the first device that is left and waits; where
 * the device fails, again on the next one. No step may be on its way.
 * fails: LK_E_DEVICE where none is left; otherwise as the call does */
LK_MUST_CHECK enum lk_status lk_team_call(struct lk_team *team,
                                          enum lk_status (*call)(void *, struct lk_worker *),
                                          void *context);

/* Compares what every device was sent in the last step, and repairs a replica that is wrong.
 * Each step does this for the one before; call it before saving, when no step follows. No step
 * may be on its way.
 * fails: LK_E_DEVICE where none is right */
LK_MUST_CHECK enum lk_status lk_team_verify_replicas(struct lk_team *team);

/* Whether another step should be begun before the oldest one is ended. In lockstep two may be
 * begun. Without lockstep LK_MOST_BEGUN may, and the call waits until devices want more work or
 * the oldest step is done.
 * fails: LK_E_DEVICE where no device is left */
LK_MUST_CHECK enum lk_status lk_team_wants(struct lk_team *team, bool *wants);

/* Announces the next step, which may begin at once. */
LK_MUST_CHECK enum lk_status lk_team_begin(struct lk_team *team,
                                           const struct lk_team_step *step);

/* Waits until the oldest step that was begun is committed: all shards have arrived once, and
 * the update is on its way everywhere. All ranks learn in the same step that one of them
 * wants to stop. fails: LK_E_DEVICE where no device is left; as another rank has failed */
LK_MUST_CHECK enum lk_status lk_team_end(struct lk_team *team, bool wants_stop,
                                         struct lk_team_result *result);

/* The copy of the state after `step`, which copies_state of it asked for, once a later step is
 * ended; stays until the next but one is begun. NULL: there is none, as its device is lost or
 * there was no memory. */
const struct lk_state_copy *lk_team_take_copy(struct lk_team *team, int64_t step);

/* Updates that a full batch makes: 1 in lockstep. */
int lk_team_updates_each(const struct lk_team *team);

/* Updates that were made without lockstep, and their staleness; NULL in lockstep. A run that
 * goes on sets the number of those before, while no step is on its way. */
const struct lk_staleness *lk_team_staleness(const struct lk_team *team);
LK_MUST_CHECK enum lk_status lk_team_set_updates(struct lk_team *team, int64_t updates);

/* Events since the start, for reports. */
struct lk_team_counts lk_team_counts(const struct lk_team *team);

#endif
