/* The fixed binary tree over shard numbers, ((0+1)+(2+3))+..., and its subtrees. Floor 4.
 * Knows no device. */
#ifndef LK_MIRROR_TREE_H
#define LK_MIRROR_TREE_H

#include <stdbool.h>

enum { LK_MOST_SHARDS = 256, LK_MOST_SUBTREES = 16 };

/* Shards first to first + count - 1: count is a power of two and divides first. */
struct lk_subtree {
    int first, count;
};

/* Cuts the shards first to first + count - 1, below LK_MOST_SHARDS, into the fewest subtrees,
 * in ascending order; returns how many. */
int lk_subtrees_of(int first, int count, struct lk_subtree subtrees[LK_MOST_SUBTREES]);

/* Whether a and b are siblings, the lower and the higher half of one subtree. */
bool lk_subtrees_join(struct lk_subtree a, struct lk_subtree b);

/* A term of a larger sum: the sum over a subtree, reals in host memory. */
struct lk_term {
    struct lk_subtree subtree;
    const void *values;
};

#endif
