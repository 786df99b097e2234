/* Direct sums of the GPU class, as products of matrices whose columns are pixels times lanes,
 * by its matrix units or without. Floor 3. Private to src/products. */
#ifndef LK_PRODUCTS_GPU_H
#define LK_PRODUCTS_GPU_H

#include "products/kernel/kernel.h"

/* Whether its blocks have enough to do with a product of matrices, in all three passes. A pure
 * function of shape and device. */
bool lk_gpu_takes_matrix(const struct lk_product_setup *setup,
                         const struct lk_product_shape *shape);

#endif
