/* Whether products of matrices can be left to the matrix units of a GPU:
 * cl/products/gpu/matrix.cl. Floor 4. Private to src/ops. */
#ifndef LK_OPS_GPU_MATRIX_H
#define LK_OPS_GPU_MATRIX_H

#include "ops/op.h"

/* As -DMATRIX has it. What is emulated is for tests. */
enum { LK_GPU_MATRIX_NONE, LK_GPU_MATRIX_PTX, LK_GPU_MATRIX_EMULATED };

/* The algorithm of conv2d that does so. */
#define LK_GPU_MATRIX_NAME "gemm-tf32"

/* Which units the setup's device has, where LK_MATH_FAST allows their products. The first time
 * a small convolution, forward and both gradients, tries them: what does not build or is not
 * about what full precision gives is never used. $LOCKSTEP_MATRIX=0 or emulated: none, or what
 * needs none. Waits. */
int lk_gpu_matrix(const struct lk_op_setup *setup);

#endif
