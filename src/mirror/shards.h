/* Sums over the shards of a batch on one device, along the fixed tree of mirror/tree.h.
 * Floor 4. Knows no optimizer, no graph, no other device. */
#ifndef LK_MIRROR_SHARDS_H
#define LK_MIRROR_SHARDS_H

#include "mirror/tree.h"
#include "tensor/tensor.h"

/* The default number of shards of a batch: the largest power of two, at most 8, with at least
 * 32 samples in each shard; at least 1. Eighths are fine enough to divide work among unequal
 * devices, and each shard takes memory for one set of gradients. */
int lk_shards_choose(int64_t batch);

struct lk_shard_sum;

/* Makes sums over tiling->shards shards, a power of two, of `real` (LK_F32, LK_F64). With
 * `parts` also sums over smaller subtrees, to be joined later, and checksums: for devices that
 * share a batch. Kernels can run after lk_device_build(). fails: LK_E_ARGUMENT, LK_E_MEMORY,
 * LK_E_DEVICE_MEMORY */
LK_MUST_CHECK enum lk_status lk_shard_sum_create(struct lk_device *device,
                                                 const struct lk_tiling *tiling,
                                                 enum lk_dtype real, bool parts,
                                                 struct lk_shard_sum **sum);
void lk_shard_sum_destroy(struct lk_shard_sum *sum);

/* A slice of an array [shards][stride]: reals first to first + count - 1 of each shard. stride
 * and first are multiples of LK_PAD. */
struct lk_shard_slice {
    const struct lk_buffer *x;
    int64_t stride, first, count;
};

/* Where a sum goes: y[first + i], a multiple of LK_PAD. With `adds` y has the sum over the
 * sibling to the left, to which it is added: y[first + i] + sum[i], the sum over both. */
struct lk_shard_target {
    struct lk_buffer *y;
    int64_t first;
    bool adds;
};

/* sum[i] = ((x[0][i] + x[1][i]) + (x[2][i] + x[3][i])) + ... for all i of the slice, over the
 * shards of `subtree`, whose numbers count from the first shard in x. Padded to LK_PAD.
 * Enqueues. fails: LK_E_ARGUMENT slices or buffers that do not fit */
LK_MUST_CHECK enum lk_status lk_shard_sum_enqueue(struct lk_shard_sum *sum,
                                                  struct lk_subtree subtree,
                                                  const struct lk_shard_slice *slice,
                                                  const struct lk_shard_target *to);

/* y[lower + i] += y[higher + i], i < count: joins the sums over two sibling subtrees to that of
 * their parent. lower, higher: multiples of LK_PAD. Enqueues. */
LK_MUST_CHECK enum lk_status lk_shard_sum_enqueue_join(struct lk_shard_sum *sum,
                                                       struct lk_buffer *y, int64_t lower,
                                                       int64_t higher, int64_t count);

/* An array x [..][stride] of shards from number `shift` on, of which those from `first` on,
 * `count` of them, are to be placed among the `shards` shards of a batch. */
struct lk_shard_places {
    const struct lk_buffer *x;
    int64_t stride; /* a multiple of LK_PAD */
    int shift, first, count, shards;
};

/* sum[s stride + i] = x[(s - shift) stride + i] for the shards that are placed, else 0, of all
 * s < shards and i < stride: what a subtree adds to a sum in which each shard has a place of
 * its own (tensor/row_list.h). Needs `parts`. Enqueues. fails: LK_E_ARGUMENT */
LK_MUST_CHECK enum lk_status lk_shard_sum_enqueue_place(struct lk_shard_sum *sum,
                                                        const struct lk_shard_places *places,
                                                        const struct lk_shard_target *to);

/* Adds the two values that a loss gives for each sample (loss, 1 if correct) over the samples
 * of each shard: over tiles in ascending order, then over lanes by a tree. x: real
 * [tiles][2][lanes] of the first `shards` shards. *slice: the sums, valid until the next call,
 * to be given to lk_shard_sum_enqueue(). Enqueues. fails: as above */
LK_MUST_CHECK enum lk_status lk_shard_sum_enqueue_metrics(struct lk_shard_sum *sum,
                                                          const struct lk_buffer *x, int shards,
                                                          struct lk_shard_slice *slice);

/* What lk_shard_sum_enqueue_metrics() writes for shard s stands from element s LK_PAD on; of
 * the LK_PAD elements its sums are the first two. The others are 0 and are added as well: a
 * caller may put numbers there. */
enum { LK_METRIC_LOSS, LK_METRIC_CORRECT, LK_METRIC_PENALTY };
struct lk_buffer *lk_shard_sum_metrics(struct lk_shard_sum *sum);

/* y[at] = sum over i of word[i] * (2 i + 1) mod 2^32 over the 32-bit words of x's reals first
 * to first + count - 1, count a multiple of LK_PAD: a checksum that changes with any single
 * word. Enqueues. */
LK_MUST_CHECK enum lk_status lk_shard_sum_enqueue_checksum(struct lk_shard_sum *sum,
                                                           const struct lk_buffer *x,
                                                           int64_t first, int64_t count,
                                                           struct lk_buffer *y, int64_t at);

#endif
