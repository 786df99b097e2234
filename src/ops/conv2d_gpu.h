/* The weight gradient of the GPU class, for its algorithms. Floor 4. Private to
 * src/ops/conv2d_gpu*.c. */
#ifndef LK_OPS_CONV2D_GPU_H
#define LK_OPS_CONV2D_GPU_H

#include "ops/conv2d.h"
#include "ops/conv2d_parts.h"
#include "ops/gpu_tile.h"

struct lk_conv2d_gpu_weights {
    struct lk_gpu_tile tile;
    struct lk_kernel *kernel;
    int64_t part_pixels;
    struct lk_conv2d_parts parts; /* of a shard, which are then added in order */
};

/* Of all parts and shards. matrix: as in lk_gpu_product. */
struct lk_gpu_product lk_conv2d_gpu_weights_product(const struct lk_op_setup *setup,
                                                    const struct lk_conv2d_shape *shape,
                                                    int matrix);

/* fails: LK_E_UNSUPPORTED no tile fits the device; LK_E_MEMORY */
LK_MUST_CHECK enum lk_status
lk_conv2d_gpu_weights_prepare(struct lk_op_setup *setup, struct lk_conv2d_job *job, int matrix,
                              struct lk_conv2d_gpu_weights *weights);
LK_MUST_CHECK enum lk_status lk_conv2d_gpu_weights_enqueue(
    const struct lk_op_setup *setup, const struct lk_conv2d_shape *shape,
    const struct lk_conv2d_gpu_weights *weights, const struct lk_conv2d_operands *run);
void lk_conv2d_gpu_weights_release(struct lk_conv2d_gpu_weights *weights);

#endif
