/* The weight gradient of the GPU class, by matrix units or without. Floor 3. Private to
 * src/products/gpu. */
#ifndef LK_PRODUCTS_GPU_WEIGHTS_H
#define LK_PRODUCTS_GPU_WEIGHTS_H

#include "products/gpu/tile.h"
#include "products/kernel/partial_sums.h"

struct lk_gpu_weights {
    struct lk_gpu_tile tile;
    struct lk_kernel *kernel;
    int64_t part_pixels;
    struct lk_partial_sums parts; /* of a shard, which are then added in order */
};

/* Of all parts and shards. matrix: as in lk_gpu_product. */
struct lk_gpu_product lk_gpu_weights_product(const struct lk_product_setup *setup,
                                             const struct lk_product_shape *shape, int matrix);

/* fails: LK_E_UNSUPPORTED no tile fits the device; LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_gpu_weights_prepare(const struct lk_product_setup *setup,
                                                    struct lk_product_job *job, int matrix,
                                                    struct lk_gpu_weights *weights);
LK_MUST_CHECK enum lk_status lk_gpu_weights_enqueue(const struct lk_product_setup *setup,
                                                    const struct lk_product_shape *shape,
                                                    const struct lk_gpu_weights *weights,
                                                    const struct lk_product_run *run);

#endif
