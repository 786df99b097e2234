/* Products of matrices on batch tiles, y[k, n] = sum of w[c, k] x[c, n] over c, n counting the
 * lanes of all tiles: kernels for what is no large convolution of single pixels. Gradients take
 * dz turned: for each panel of units, [n][units of the panel]. Floor 3. Private to
 * src/products. */
#ifndef LK_PRODUCTS_MATRIX_H
#define LK_PRODUCTS_MATRIX_H

#include "products/kernel/kernel.h"

/* As many sums as the registers hold beside the operands: 24 where a vector fills a 64-byte
 * register, else 12, over no more columns than there are. */
struct lk_product_block lk_matrix_block(const struct lk_product_setup *setup, int64_t columns);

/* The chunks that `count` is cut into, of a multiple of `block` each, so that with `groups`
 * groups in other dimensions every compute unit has work. */
int64_t lk_matrix_chunk(const struct lk_product_setup *setup, int64_t count, int64_t block,
                        int64_t groups);

/* Of all products of matrices. */
bool lk_matrix_fits(const struct lk_product_setup *setup, const struct lk_product_job *job);
double lk_matrix_cost(const struct lk_product_setup *setup, const struct lk_product_job *job);

/* Makes dz of dy in the workspace: where it is masked as dy lies, then turned if that is
 * wanted.
 */
struct lk_matrix_transpose {
    int64_t units, panels;
    bool is_masked, turns;
    int64_t kept;  /* reals at the beginning of the workspace that are left alone; a multiple of
                    * 16, and 0 where it is masked */
    int64_t count; /* reals of the workspace, from its beginning */
    struct lk_kernel *kernel;
};

LK_MUST_CHECK enum lk_status lk_matrix_transpose_prepare(const struct lk_product_setup *setup,
                                                         const struct lk_product_shape *shape,
                                                         struct lk_matrix_transpose *turn);
LK_MUST_CHECK enum lk_status lk_matrix_transpose_enqueue(const struct lk_product_setup *setup,
                                                         const struct lk_matrix_transpose *turn,
                                                         const struct lk_buffer *dy,
                                                         const struct lk_buffer *y,
                                                         struct lk_buffer *workspace);

#endif
