/* Watches what a replica computes for numbers that are not finite, to tell where they begin.
 * Floor 5. The host waits for every operation, so this is for a step that went wrong. */
#ifndef LK_GRAPH_WATCH_H
#define LK_GRAPH_WATCH_H

#include "graph/replica.h"

/* The first scheduled operation, in the order in which they run, of whose values or, where
 * those of all are finite, gradients some are not. {0}: none yet. */
struct lk_watch {
    const struct lk_node *node; /* NULL: none */
    bool is_gradient;
    int64_t wrong, all; /* how many are not finite, of how many */
};

/* From now on each forward and backward looks at what it computes; NULL: no longer. `watch`
 * goes on from what was found before, on any replica of the same graph. */
void lk_replica_watch(struct lk_replica *replica, struct lk_watch *watch);

/* Whether `a` was found before `b` in the order of the graph. */
bool lk_watch_is_before(const struct lk_watch *a, const struct lk_watch *b);

/* For graph/run.c: looks at the value of operation i, or at the gradients of what it reads, of
 * which dx are those of its inputs. */
struct lk_op_run;
LK_MUST_CHECK enum lk_status lk_watch_value(const struct lk_replica *replica, int i,
                                            const struct lk_op_run *run);
LK_MUST_CHECK enum lk_status lk_watch_gradients(const struct lk_replica *replica, int i,
                                                const struct lk_op_run *run);

#endif
