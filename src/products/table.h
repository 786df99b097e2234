/* The table of products: one row for each kernel and pass, and what chooses from it. Floor 3.
 * Knows no operation. */
#ifndef LK_PRODUCTS_TABLE_H
#define LK_PRODUCTS_TABLE_H

#include "products/kernel/kernel.h"

/* In the order in which choices list them; ends with a row without a name. */
extern const struct lk_product lk_products[];

/* Whether the job's pass can be made by the row: its class, what its verbs say, and that no row
 * fits that leaves nothing to others. A pure function of the job's shape and gradient and of
 * the device, whatever the batch. */
bool lk_product_fits(const struct lk_product_setup *setup, const struct lk_product *row,
                     const struct lk_product_job *job);

/* What a pass is made by. */
struct lk_product_selection {
    const struct lk_product *product; /* NULL: not chosen */
    char blocking[LK_BLOCKING_BYTES];
};

/* What a pass chooses from: of each family the first row that fits. */
void lk_product_describe(const struct lk_product_setup *setup, const struct lk_product_job *job,
                         struct lk_choice *choice);

/* Whether a choice has a key: one row that leaves nothing to others needs none. */
bool lk_product_is_kept(const struct lk_choice *choice);

/* What it takes: see lk_choices_make(). The job has shape, pass and gradient.
 * fails: LK_E_UNSUPPORTED, LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_product_choose(const struct lk_product_setup *setup,
                                               const struct lk_product_job *job,
                                               struct lk_product_selection *way);

#endif
