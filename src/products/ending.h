/* What comes behind the sums of a layer over batch tiles outside training: a batch
 * normalization by moving averages, the sum with another image, a function. Kernels of sums
 * that can (LK_FINISHES of kernel/rows.h) do it while the sums are in registers; behind any
 * other one a kernel goes over its outputs. Both give the bits of the operations that they
 * stand for, so it changes no result whether a graph has them taken over. Floor 3. Private to
 * src/products. */
#ifndef LK_PRODUCTS_ENDING_H
#define LK_PRODUCTS_ENDING_H

#include "products/kernel/finish.h"

struct lk_ending {
    struct lk_product_shape shape;    /* with all that comes behind the sums */
    struct lk_kernel *norms, *finish; /* NULL: not needed */
};

/* Reals at the beginning of what is packed that it takes. */
int64_t lk_ending_reals(const struct lk_product_setup *setup,
                        const struct lk_product_shape *shape);

/* Announces kernels, behind sums that are made by such a row. fails: LK_E_BUILD */
LK_MUST_CHECK enum lk_status lk_ending_prepare(const struct lk_product_setup *setup,
                                               const struct lk_product *row,
                                               struct lk_ending *ending);

/* Before the sums: makes run->norms in run->packed, where norm is new. Enqueues. */
LK_MUST_CHECK enum lk_status lk_ending_begin(const struct lk_product_setup *setup,
                                             const struct lk_ending *ending,
                                             const struct lk_product_run *run);
/* Behind them. Enqueues. */
LK_MUST_CHECK enum lk_status lk_ending_finish(const struct lk_product_setup *setup,
                                              const struct lk_ending *ending,
                                              const struct lk_product_run *run);

#endif
