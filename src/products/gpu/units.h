/* Whether products of matrices can be left to the matrix units of a GPU:
 * cl/products/gpu/matrix.cl. Floor 3. Private to src/products. */
#ifndef LK_PRODUCTS_UNITS_H
#define LK_PRODUCTS_UNITS_H

#include "products/kernel/kernel.h"

/* As -DMATRIX has it. What is emulated is for tests. */
enum { LK_GPU_MATRIX_NONE, LK_GPU_MATRIX_PTX, LK_GPU_MATRIX_EMULATED };

/* The products that do so. */
#define LK_GPU_MATRIX_NAME "gemm-tf32"

/* Which units the setup's device has, where LK_MATH_FAST allows their products. The first time
 * a small convolution, forward and both gradients, tries them: what does not build or is not
 * about what full precision gives is never used. $LOCKSTEP_MATRIX=0 or emulated: none, or what
 * needs none. Waits. */
int lk_gpu_matrix(const struct lk_product_setup *setup);

#endif
