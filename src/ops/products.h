/* How an operation of one input, one matrix of weights and perhaps a bias hands its setup and
 * its run on to the products. Floor 4. Private to src/ops. */
#ifndef LK_OPS_PRODUCTS_H
#define LK_OPS_PRODUCTS_H

#include "ops/op.h"
#include "products/layer.h"

/* problem: shapes and options, for keys of choices; borrowed, needed to prepare alone. */
struct lk_product_setup lk_op_products(const struct lk_op_setup *setup, const char *problem);

/* Of one product over `steps` time steps of every sample, which count as tiles; 0: x is no
 * sequence. */
struct lk_product_setup lk_op_step_products(const struct lk_op_setup *setup, int64_t steps,
                                            const char *problem);

/* Reals at the beginning of a workspace that hold so many values as they are stored: a layer's
 * `kept`. */
int64_t lk_op_kept(const struct lk_op_setup *setup, int64_t values);

struct lk_layer_wants lk_op_wants(const struct lk_op_setup *setup);

/* w[0]: weights, w[1]: bias; `saved` holds which output won its pool. */
struct lk_layer_run lk_op_layer_run(const struct lk_op_setup *setup,
                                    const struct lk_op_run *run);

#endif
