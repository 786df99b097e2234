/* Blocks of filters of a weight gradient that is a product of matrices. Floor 3. Private to
 * src/products/direct. */
#ifndef LK_PRODUCTS_FILTER_BLOCKS_H
#define LK_PRODUCTS_FILTER_BLOCKS_H

#include "products/direct/direct.h"

enum { LK_FILTER_SUMS_BYTES = 256 << 10 };

struct lk_filter_blocks {
    struct lk_product_block block; /* channels x vectors of filters */
    int64_t wide, blocks; /* of filters: `wide` of block.columns vectors, then of two */
    int64_t blocks_each, group_channels; /* of a work-group */
    int64_t areas_each;                  /* of a part */
    struct lk_partial_sums parts;
};

/* Enough channels and filters, and local memory for their sums. */
bool lk_filter_blocks_fit(const struct lk_product_setup *setup,
                          const struct lk_product_shape *shape);

/* block, wide, blocks. */
void lk_filter_blocks_choose(const struct lk_product_setup *setup,
                             const struct lk_product_shape *shape, bool are_points,
                             struct lk_filter_blocks *blocks);

/* areas_each and parts, once work-groups are chosen. */
void lk_filter_blocks_cut(const struct lk_product_setup *setup,
                          const struct lk_product_shape *shape, int64_t areas_of_image,
                          struct lk_filter_blocks *blocks);

/* As kernels take them. */
struct lk_filter_cut lk_filter_blocks_args(const struct lk_filter_blocks *blocks);

/* Of the launch: runs of blocks of filters, runs of channels, parts. */
struct lk_grid lk_filter_blocks_grid(const struct lk_product_setup *setup,
                                     const struct lk_product_shape *shape,
                                     const struct lk_filter_blocks *blocks);

#endif
