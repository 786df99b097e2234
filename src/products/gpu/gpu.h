/* Direct sums of the GPU class, as products of matrices whose columns are pixels times lanes,
 * by its matrix units or without. Floor 3. Private to src/products. */
#ifndef LK_PRODUCTS_GPU_H
#define LK_PRODUCTS_GPU_H

#include "products/kernel/kernel.h"

extern const struct lk_product_verbs lk_gpu_gemm, lk_gpu_matrix_gemm;

#endif
