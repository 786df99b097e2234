/* The random numbers of a dropout in a step, as kernels take them. Floor 4. Private to src/ops.
 */
#ifndef LK_OPS_DROPOUT_H
#define LK_OPS_DROPOUT_H

#include "ops/op.h"

/* Unsigned numbers, as bits. What is kept draws no less than the threshold. */
struct lk_dropout_numbers {
    int32_t key_low, key_high, threshold;
};

/* Those of a node and step: drawn like any other random number. */
struct lk_dropout_numbers lk_dropout_numbers(const struct lk_op_setup *setup,
                                             const struct lk_op_run *run, double rate);

#endif
