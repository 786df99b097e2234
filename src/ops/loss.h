/* The losses of loss_table.h, as an operation that takes one over needs them. Floor 4. Private
 * to src/ops. */
#ifndef LK_OPS_LOSS_H
#define LK_OPS_LOSS_H

#include "ops/op.h"

struct lk_loss_options {
    double weight; /* of the gradient; y is not weighted */
    double delta;  /* huber: where the parabola ends */
};

/* The option `weight` of a loss, kept in that double of a struct. */
#define LK_WEIGHT_OPTION(type, member)                                                         \
    {                                                                                          \
        .name = "weight", .kind = LK_OPTION_REAL, .offset = offsetof(type, member), .min = 0,  \
        .max = 1e9, .standard = "1",                                                           \
        .help = "by which gradients are multiplied; the loss that is told is not"              \
    }

/* The weight in the options of a loss that has no other, for an operation that absorbs it.
 * False: they have others. */
bool lk_loss_take_weight(const char *options, double *weight);

/* The verbs of the loss `name`, whose options are `o`. What they make lies in setup->state. */
LK_MUST_CHECK enum lk_status lk_loss_infer(struct lk_op_shapes *shapes, const char *name);
LK_MUST_CHECK enum lk_status lk_loss_prepare(struct lk_op_setup *setup, const char *name);
LK_MUST_CHECK enum lk_status lk_loss_forward(const struct lk_op_setup *setup,
                                             const struct lk_op_run *run,
                                             const struct lk_loss_options *o);
LK_MUST_CHECK enum lk_status lk_loss_backward(const struct lk_op_setup *setup,
                                              const struct lk_op_run *run,
                                              const struct lk_loss_options *o);

#endif
