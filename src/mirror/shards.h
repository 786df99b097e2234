/* Shards: the parts of a batch whose sums stay apart until the fixed tree adds them. Floor 3.
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

/* Sums over tiling->shards shards, a power of two, of `real` (LK_F32, LK_F64); its kernels run
 * after lk_device_build(). fails: LK_E_ARGUMENT, LK_E_MEMORY, LK_E_DEVICE_MEMORY */
LK_MUST_CHECK enum lk_status lk_shard_sum_create(struct lk_device *device,
                                                 const struct lk_tiling *tiling,
                                                 enum lk_dtype real, struct lk_shard_sum **sum);
void lk_shard_sum_destroy(struct lk_shard_sum *sum);

/* y[i] = ((x[0][i] + x[1][i]) + (x[2][i] + x[3][i])) + ... over shards. x: [shards][stride],
 * y: [count], padded to a multiple of 32 as stride is; they do not overlap. Enqueues.
 * fails: LK_E_ARGUMENT for a stride or buffers that do not fit */
LK_MUST_CHECK enum lk_status lk_shard_sum_enqueue(struct lk_shard_sum *sum,
                                                  const struct lk_buffer *x, int64_t stride,
                                                  int64_t count, struct lk_buffer *y);

/* y[0], y[1]: sums over all samples of the two values a loss gives for each, x: real
 * [tiles][2][lanes]. In a shard: tiles ascending, then the lanes' tree; then the shards' tree.
 * y: padded to 32. Enqueues. fails: as above */
LK_MUST_CHECK enum lk_status lk_shard_sum_enqueue_metrics(struct lk_shard_sum *sum,
                                                          const struct lk_buffer *x,
                                                          struct lk_buffer *y);

#endif
