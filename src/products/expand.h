/* dz of dy behind a relu or a 2x2 max-pool, and the bias gradient, by one kernel. Floor 3.
 * Private to src/products and src/ops. */
#ifndef LK_PRODUCTS_EXPAND_H
#define LK_PRODUCTS_EXPAND_H

#include "products/kernel/partial_sums.h"

/* The caller fills the first part. */
struct lk_expand {
    int64_t filters, height, width; /* of dz, all groups together; in plane tiles without a pool
                                     * a column of vectors */
    bool masks, pools;              /* dz = dy where y > 0; dy at the place that won its pool */
    bool makes_dz, makes_db;

    int64_t dz_first; /* in the workspace, in stored numbers */
    int64_t run_pixels, part_pixels;
    struct lk_partial_sums parts;
    struct lk_kernel *kernel; /* NULL: there is nothing to make */
};

/* y: of what masks; at: u8, which won its pool; db: arrays [shards][dw_stride], NULL: not
 * wanted. */
struct lk_expand_run {
    const struct lk_buffer *dy, *y, *at;
    struct lk_buffer *workspace, *db;
    int64_t dw_stride;
    bool wants_dz;
};

/* Announces kernels. *reals: of the workspace, taken so far. fails: LK_E_BUILD */
LK_MUST_CHECK enum lk_status lk_expand_prepare(const struct lk_product_setup *setup,
                                               struct lk_expand *expand, int64_t *reals);

/* Enqueue only. */
LK_MUST_CHECK enum lk_status lk_expand_enqueue(const struct lk_product_setup *setup,
                                               const struct lk_expand *expand,
                                               const struct lk_expand_run *run);

#endif
