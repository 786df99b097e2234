/* Bounds staleness in asynchronous training, where devices update without waiting for one
 * another. Floor 4. A device (worker) is only a number; knows no clock and no gradient.
 *
 * Updates are numbered in the order in which all replicas apply them. A gradient whose
 * computation began when its replica had the first `base` updates, and which becomes update
 * number n + 1, has staleness n - base. The caller holds a lock round these functions.
 * source: Ho et al. 2013, More Effective Distributed ML via a Stale Synchronous Parallel
 * Parameter Server */
#ifndef LK_MIRROR_STALENESS_H
#define LK_MIRROR_STALENESS_H

#include <lockstep/status.h>
#include <stdbool.h>
#include <stdint.h>

enum { LK_MOST_STALENESS = 255, LK_MOST_STALE_WORKERS = 64 };

/* Callers read `most`, `updates` and `counts` alone. "Work" is a gradient being computed. */
struct lk_staleness {
    int most, workers;
    int64_t updates;                        /* made so far */
    int64_t counts[LK_MOST_STALENESS + 1];  /* [0 to most]: updates of that staleness */
    int64_t bases[LK_MOST_STALE_WORKERS];   /* of each worker's work, while is_working */
    bool is_working[LK_MOST_STALE_WORKERS]; /* the worker computes a gradient */
};

/* most: the largest staleness allowed, 0 (one worker at a time) to LK_MOST_STALENESS. updates:
 * how many updates were made before. fails: LK_E_ARGUMENT */
LK_MUST_CHECK enum lk_status lk_staleness_init(struct lk_staleness *staleness, int64_t most,
                                               int workers, int64_t updates);

/* Whether work may begin on a replica that has the first `base` updates: all work in progress
 * and this one can then still become updates in some order with none staler than `most`. */
bool lk_staleness_may_begin(const struct lk_staleness *staleness, int64_t base);
void lk_staleness_begin(struct lk_staleness *staleness, int worker, int64_t base);

/* Whether the worker's gradient may be the next update: all others could still follow within
 * the bound. Always true for the work with the lowest base, so that no worker waits for ever.
 */
bool lk_staleness_may_apply(const struct lk_staleness *staleness, int worker);

/* Makes the worker's gradient the next update and counts its staleness. Only after
 * lk_staleness_may_apply() was true, with no other call in between. */
void lk_staleness_apply(struct lk_staleness *staleness, int worker);

/* Drops the worker's work, which does not become an update. */
void lk_staleness_abandon(struct lk_staleness *staleness, int worker);

#endif
