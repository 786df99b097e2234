/* The inner loop of reduce.h: terms added along the tree over shards, a range of the values at
 * a time. Floor 4. Knows no threads and checks nothing. */
#ifndef LK_MIRROR_TREE_SUM_H
#define LK_MIRROR_TREE_SUM_H

#include "mirror/tree.h"
#include <stddef.h>
#include <stdint.h>

/* What is found out about values on the way; w: their 32-bit words. */
struct lk_checks {
    uint32_t *terms;  /* of each term: += w[i] * (2 i + 1) over the range, modulo 2^32 */
    uint32_t sum;     /* of the sum: the same */
    bool is_infinite; /* set where a value of the sum is infinite or NaN */
};

/* One subtree and the terms that it is made of. */
struct lk_tree_sum {
    const struct lk_term *terms; /* ascending; they are the whole subtree */
    int term_count;
    const uint8_t *joins; /* of each term: how many subtrees become whole with it */
    void *const *copies;  /* [copy_count]: where the sum goes; may be the terms' own values */
    int copy_count;
    bool is_double, is_streamed; /* streamed: written past the caches where this can be done */
};

/* Sums the `bytes` bytes that begin `first` bytes into each term; first: a multiple of the
 * granule. Adds to *checks; NULL: none. */
enum { LK_TREE_SUM_GRANULE = 128 };
void lk_tree_sum(const struct lk_tree_sum *sum, size_t first, size_t bytes,
                 struct lk_checks *checks);

/* To be called after the last one, before another thread or a device is told: streamed values
 * are in memory then. */
void lk_tree_sum_flush(void);

#endif
