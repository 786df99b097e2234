/* The passes of Winograd convolution. Floor 3. Private to src/ops/conv2d_winograd*.c. `tile`: 2
 * or 4, outputs along each side of a Winograd tile. */
#ifndef LK_OPS_CONV2D_WINOGRAD_H
#define LK_OPS_CONV2D_WINOGRAD_H

#include "ops/conv2d.h"

LK_MUST_CHECK enum lk_status lk_conv2d_winograd_weights_prepare(struct lk_op_setup *setup,
                                                                struct lk_conv2d_job *job,
                                                                int64_t tile, void **state);
LK_MUST_CHECK enum lk_status
lk_conv2d_winograd_weights_enqueue(const struct lk_op_setup *setup, void *state,
                                   const struct lk_conv2d_operands *run);
void lk_conv2d_winograd_weights_release(void *state);

#endif
