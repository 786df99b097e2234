/* Shards: the parts of a batch whose sums stay apart until the fixed tree adds them. Floor 4.
 * Knows no optimizer, no graph, no other device. */
#ifndef LK_MIRROR_SHARDS_H
#define LK_MIRROR_SHARDS_H

#include "mirror/tree.h"
#include "tensor/tensor.h"

/* The standard number of shards of a batch: the largest power of two, at most 8, that leaves
 * each 32 samples; at least 1. Eighths are fine enough to share work between unequal devices;
 * each shard costs one set of gradients. */
int lk_shards_choose(int64_t batch);

struct lk_shard_sum;

/* Sums over tiling->shards shards, a power of two, of `real` (LK_F32, LK_F64), or with `parts`
 * also over fewer, of parts that come one by one, and checksums; its kernels run after
 * lk_device_build(). fails: LK_E_ARGUMENT, LK_E_MEMORY, LK_E_DEVICE_MEMORY */
LK_MUST_CHECK enum lk_status lk_shard_sum_create(struct lk_device *device,
                                                 const struct lk_tiling *tiling,
                                                 enum lk_dtype real, bool parts,
                                                 struct lk_shard_sum **sum);
void lk_shard_sum_destroy(struct lk_shard_sum *sum);

/* A part of an array [shards][stride]: reals first to first + count - 1 of each shard. All but
 * count are multiples of LK_PAD. */
struct lk_shard_slice {
    const struct lk_buffer *x;
    int64_t stride, first, count;
};

/* y[y_first + i] = ((x[0][i] + x[1][i]) + (x[2][i] + x[3][i])) + ... over the shards of
 * `subtree`, counted from x's first one, i in the slice; padded to LK_PAD. y_first: a multiple
 * of LK_PAD. Enqueues. fails: LK_E_ARGUMENT for slices or buffers that do not fit */
LK_MUST_CHECK enum lk_status lk_shard_sum_enqueue(struct lk_shard_sum *sum,
                                                  struct lk_subtree subtree,
                                                  const struct lk_shard_slice *slice,
                                                  struct lk_buffer *y, int64_t y_first);

/* y[lower + i] += y[higher + i], i < count: the sums over two siblings become that over both.
 * lower, higher: multiples of LK_PAD. Enqueues. */
LK_MUST_CHECK enum lk_status lk_shard_sum_enqueue_join(struct lk_shard_sum *sum,
                                                       struct lk_buffer *y, int64_t lower,
                                                       int64_t higher, int64_t count);

/* Sums of each shard over the two values a loss gives for each sample, x: real
 * [tiles][2][lanes] of the first `shards` shards: tiles ascending, then the lanes' tree.
 * *slice: where they are, until the next call, to be summed over subtrees. Enqueues. fails: as
 * above */
LK_MUST_CHECK enum lk_status lk_shard_sum_enqueue_metrics(struct lk_shard_sum *sum,
                                                          const struct lk_buffer *x, int shards,
                                                          struct lk_shard_slice *slice);

/* y[at] = sum over i of word[i] * (2 i + 1) mod 2^32 over the 32-bit words of x's reals first
 * to first + count - 1, count a multiple of LK_PAD: tells a changed word from the right one.
 * Enqueues. */
LK_MUST_CHECK enum lk_status lk_shard_sum_enqueue_checksum(struct lk_shard_sum *sum,
                                                           const struct lk_buffer *x,
                                                           int64_t first, int64_t count,
                                                           struct lk_buffer *y, int64_t at);

#endif
