/* Runs of a batch's shards, and the sums over subtrees of the fixed tree that are held while
 * one is computed. Floor 4. Knows no device. */
#ifndef LK_MIRROR_TERMS_H
#define LK_MIRROR_TERMS_H

#include "mirror/tree.h"

/* A run of neighbouring shards of a batch. A device computes at most `most` of them at a time,
 * in micro-batches that end at multiples of `most`. */
struct lk_shard_run {
    int first, count;
};

/* The shards of the micro-batch that begins with shard `first` of a run. */
struct lk_shard_run lk_shard_run_at_once(struct lk_shard_run run, int first, int most);

/* How many sums over subtrees, each as long as the gradient, a device holds at once while it
 * computes a run, `most` of its shards at a time: a subtree is added to its other half where
 * that is there, and takes no memory of its own. And the most for any run of a batch of
 * `shards` shards. */
int lk_terms_held(struct lk_shard_run run, int most);
int lk_terms_held_most(int shards, int most);

/* `open` are subtrees whose other halves are not there yet. Puts one behind them and, as long
 * as the last two are the halves of a larger subtree, joins these. Returns how often it joined.
 */
int lk_terms_push(struct lk_subtree *open, int *count, struct lk_subtree next);

#endif
