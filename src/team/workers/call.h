/* Calls of functions on the threads of a team's devices, and which devices can be called.
 * Floor 7. Only the trainer's thread calls these functions. */
#ifndef LK_TEAM_WORKERS_CALL_H
#define LK_TEAM_WORKERS_CALL_H

#include "team/workers/config.h"
#include "team/workers/worker.h"

/* Devices at the start, and those that are left. */
int lk_team_devices(const struct lk_team *team);
int lk_team_devices_of_all(const struct lk_team *team); /* of all ranks */
int lk_team_left(const struct lk_team *team);

/* The first device that is left. Its replica and optimizer may be used in lk_team_call()
 * alone, but for what they know without asking the device. */
const struct lk_worker *lk_team_lead(const struct lk_team *team);
const struct lk_worker *lk_team_worker(const struct lk_team *team, int position);

/* Calls on that device alone, if it is left; where it fails it is lost, and that is all.
 * fails: as the call does for another reason */
LK_MUST_CHECK enum lk_status
lk_team_call_other(struct lk_team *team, int position,
                   enum lk_status (*call)(void *, struct lk_worker *), void *context);

/* Calls on every device that is left: one after another, or on all at once. A device in trouble
 * is lost. fails: as the first call that does, but for a lost device where others are left */
LK_MUST_CHECK enum lk_status
lk_team_call_each(struct lk_team *team, enum lk_status (*call)(void *, struct lk_worker *),
                  void *context, bool at_once);

/* Copies parameters and optimizer state of rank 0's first device to all ranks' devices. All
 * ranks call it. */
LK_MUST_CHECK enum lk_status lk_team_broadcast_state(struct lk_team *team);

#endif
