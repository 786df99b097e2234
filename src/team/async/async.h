/* Training without lockstep. Floor 7.
 *
 * A step's batch is cut into groups of shards that lie in one queue; whichever device is free
 * takes the next. Its gradient becomes an entry of a log at once. All replicas apply all
 * entries in the log's order, each before its next group, so that they stay the same function
 * of the number of updates; mirror/staleness.h bounds how far they drift apart meanwhile. */
#ifndef LK_TEAM_ASYNC_ASYNC_H
#define LK_TEAM_ASYNC_ASYNC_H

#include "mirror/staleness.h"
#include "team/workers/internal.h"

/* Reads the team's configuration. fails: LK_E_ARGUMENT, LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_async_create(struct lk_team *team, struct lk_async **async);
void lk_async_destroy(struct lk_async *async);

/* Allocates the log; call it after the steppers are built. fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_async_build(struct lk_team *team);

/* Sets how many updates were made before, for a run that goes on. No step may be running.
 * fails: LK_E_ARGUMENT */
LK_MUST_CHECK enum lk_status lk_async_set_updates(struct lk_team *team, int64_t updates);

/* The number of groups, and so of updates, of a full batch. */
int lk_async_groups(const struct lk_async *async);
const struct lk_staleness *lk_async_staleness(const struct lk_async *async);

/* As lk_team_begin(), lk_team_wants() and lk_team_end(), with the team's mutex held. A step is
 * over when all its groups are in the log; where none is begun behind it, when all replicas
 * have applied them and were compared. */
LK_MUST_CHECK enum lk_status lk_async_begin(struct lk_team *team,
                                            const struct lk_team_step *step);
LK_MUST_CHECK enum lk_status lk_async_wants(struct lk_team *team, bool *wants);
LK_MUST_CHECK enum lk_status lk_async_end(struct lk_team *team, struct lk_team_result *result);

/* Training has failed or is given up: all threads leave their work. The mutex is held. */
void lk_async_stop(struct lk_team *team);

/* On the worker's thread: takes groups and applies updates until there is nothing left to do.
 */
LK_MUST_CHECK enum lk_status lk_async_work(struct lk_worker *worker,
                                           const struct lk_command *command);

#endif
