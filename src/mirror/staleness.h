/* How far devices that update without waiting for one another may drift apart. Floor 4. Knows
 * no device but by its number, no clock and no gradient.
 *
 * Updates are numbered in the order in which all replicas apply them. Work that began when a
 * replica had the first `base` updates and becomes update number n + 1 has staleness n - base.
 * Whoever holds a lock calls these functions.
 * source: Ho et al. 2013, More Effective Distributed ML via a Stale Synchronous Parallel
 * Parameter Server */
#ifndef LK_MIRROR_STALENESS_H
#define LK_MIRROR_STALENESS_H

#include <lockstep/status.h>
#include <stdbool.h>
#include <stdint.h>

enum { LK_MOST_STALENESS = 255, LK_MOST_STALE_WORKERS = 64 };

/* Read `most`, `updates` and `counts`, leave the rest alone. */
struct lk_staleness {
    int most, workers;
    int64_t updates;                        /* made so far */
    int64_t counts[LK_MOST_STALENESS + 1];  /* [0 to most]: updates of that staleness */
    int64_t bases[LK_MOST_STALE_WORKERS];   /* of the work on its way, */
    bool is_working[LK_MOST_STALE_WORKERS]; /* where there is any */
};

/* most: 0 (one works at a time) to LK_MOST_STALENESS; updates: to go on from.
 * fails: LK_E_ARGUMENT */
LK_MUST_CHECK enum lk_status lk_staleness_init(struct lk_staleness *staleness, int64_t most,
                                               int workers, int64_t updates);

/* Whether work that begins with the first `base` updates, and all that is on its way, can
 * still become updates in some order without one being staler than `most`. */
bool lk_staleness_may_begin(const struct lk_staleness *staleness, int64_t base);
void lk_staleness_begin(struct lk_staleness *staleness, int worker, int64_t base);

/* Whether the worker's work may be the next update: the others' still could follow. It always
 * may where no other's base is lower, so that nobody waits for ever. */
bool lk_staleness_may_apply(const struct lk_staleness *staleness, int worker);

/* Makes it the next update and counts it, where it may; nothing may begin in between. */
void lk_staleness_apply(struct lk_staleness *staleness, int worker);

/* The worker's work comes to nothing. */
void lk_staleness_abandon(struct lk_staleness *staleness, int worker);

#endif
