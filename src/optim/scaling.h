/* Dynamic loss scaling, where activations and their gradients are stored as halves: the scale
 * keeps small gradients from becoming 0 and large ones from overflowing. Floor 4. Private to
 * optimizer.c.
 *
 * The device decides, so the host never waits: a step with a gradient that is infinite or NaN
 * makes no update and halves the scale; after a number of other steps it doubles. Scales are
 * powers of two, so they change no bit of a gradient within the range of halves.
 * source: Micikevicius et al. arXiv:1710.03740 */
#ifndef LK_OPTIM_SCALING_H
#define LK_OPTIM_SCALING_H

#include "optim/optimizer.h"
#include "tensor/elementwise.h"

struct lk_scaling;

/* `state`: float [LK_LOSS_SCALE_NUMBERS], borrowed; set to the first scale and zeros. Kernels
 * can run after lk_device_build(). */
LK_MUST_CHECK enum lk_status lk_scaling_create(struct lk_device *device,
                                               const struct lk_loss_scale *how,
                                               struct lk_buffer *state,
                                               struct lk_scaling **scaling);
void lk_scaling_destroy(struct lk_scaling *scaling);

/* Notes whether `count` reals of the step's gradient, padded with zeros, are all finite.
 * Enqueues. */
LK_MUST_CHECK enum lk_status lk_scaling_enqueue_check(struct lk_scaling *scaling,
                                                      const struct lk_buffer *g, int64_t count);

/* Decides by the step's checks, after all of them, about the update and the scale. Enqueues. */
LK_MUST_CHECK enum lk_status lk_scaling_enqueue_decision(struct lk_scaling *scaling);

#endif
