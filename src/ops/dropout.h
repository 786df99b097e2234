/* The random numbers of a dropout in a step, as kernels take them (cl/lib/drop.cl). Floor 4.
 * Private to src/ops. */
#ifndef LK_OPS_DROPOUT_H
#define LK_OPS_DROPOUT_H

#include "ops/args.h"
#include "ops/op.h"

/* Of a node and step: the key is drawn like any other random number. What is kept draws no less
 * than the threshold. */
struct lk_drop lk_drop(const struct lk_op_setup *setup, const struct lk_op_run *run,
                       double rate);

#endif
