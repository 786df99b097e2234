/* What direct sums of the GPU class are as products of matrices, and what they cost. Floor 3.
 * Private to src/products/gpu. */
#ifndef LK_PRODUCTS_GPU_COST_H
#define LK_PRODUCTS_GPU_COST_H

#include "products/gpu/tile.h"

/* Of the setup's batch, or parts and shards. matrix: as in the result. */
struct lk_gpu_product lk_gpu_product(const struct lk_product_setup *setup,
                                     const struct lk_product_job *job, int matrix);

/* As in struct lk_product_verbs, of what fits. */
double lk_gpu_cost(const struct lk_product_setup *setup, const struct lk_product_job *job,
                   int matrix);

#endif
