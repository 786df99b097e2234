/* Products of matrices on batch tiles, y[k, n] = sum of w[c, k] x[c, n] over c, n counting the
 * lanes of all tiles: kernels for what is no large convolution of single pixels. Gradients take
 * dz turned: for each panel of units, [n][units of the panel]. Floor 3. Private to
 * src/products. */
#ifndef LK_PRODUCTS_MATRIX_H
#define LK_PRODUCTS_MATRIX_H

#include "products/kernel/kernel.h"

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
