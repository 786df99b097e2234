/* The inner loop of reduce.c: adds a range of the terms' values along the tree over shards.
 * Floor 4. Private to reduce.c. Knows no threads and does not check its arguments. */
#ifndef LK_MIRROR_TREE_SUM_H
#define LK_MIRROR_TREE_SUM_H

#include "mirror/tree.h"
#include <stddef.h>
#include <stdint.h>

/* Checksums and checks that are made while adding; w: the values as 32-bit words. */
struct lk_checks {
    uint32_t *terms;  /* of each term: += w[i] * (2 i + 1) over the range, modulo 2^32 */
    uint32_t sum;     /* of the sum: the same */
    bool is_infinite; /* set if a value of the sum is infinite or NaN */
};

/* The sum over one subtree, and the terms that add up to it. */
struct lk_tree_sum {
    const struct lk_term *terms; /* in ascending order; together the whole subtree */
    int term_count;
    const uint8_t *joins; /* of each term: how many additions of siblings follow it */
    void *const *copies;  /* [copy_count]: where the sum is written; may be a term's memory */
    int copy_count;
    bool is_double, is_streamed; /* is_streamed: written past the caches, if the CPU can */
};

/* Adds bytes first to first + bytes - 1 of each term; first: a multiple of the granule. Adds
 * what it finds to *checks; NULL: makes no checks. */
enum { LK_TREE_SUM_GRANULE = 128 };
void lk_tree_sum(const struct lk_tree_sum *sum, size_t first, size_t bytes,
                 struct lk_checks *checks);

/* To be called after the last lk_tree_sum() of a thread, before others read the sums: streamed
 * values are in memory then. */
void lk_tree_sum_flush(void);

#endif
