/* The scale of the loss where activations and their gradients are halves: large enough for the
 * small ones, small enough for the large ones. Floor 4. Private to optimizer.c.
 *
 * All of it happens on the device: a step whose gradients are not all numbers updates nothing,
 * and halves the scale; after so many others it doubles. Scales are powers of two, so no bit of
 * a gradient that a half holds depends on them. source: Micikevicius et al. arXiv:1710.03740 */
#ifndef LK_OPTIM_SCALING_H
#define LK_OPTIM_SCALING_H

#include "optim/optimizer.h"
#include "tensor/elementwise.h"

struct lk_scaling;

/* `state`: float [LK_LOSS_SCALE_NUMBERS], set to `first`. Kernels run after lk_device_build().
 */
LK_MUST_CHECK enum lk_status lk_scaling_create(struct lk_device *device,
                                               const struct lk_loss_scale *how,
                                               struct lk_buffer *state,
                                               struct lk_scaling **scaling);
void lk_scaling_destroy(struct lk_scaling *scaling);

/* Looks at `count` reals, padded with zeros, of a step's gradient. Enqueues. */
LK_MUST_CHECK enum lk_status lk_scaling_enqueue_check(struct lk_scaling *scaling,
                                                      const struct lk_buffer *g, int64_t count);

/* Behind all checks of a step. Enqueues. */
LK_MUST_CHECK enum lk_status lk_scaling_enqueue_decision(struct lk_scaling *scaling);

#endif
