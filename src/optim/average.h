/* The exponential moving average of weights over steps, which is evaluated in their place.
 * Floor 4. Private to this room.
 *
 * average = decay * average + (1 - decay) * w after each step, and w after the first: as
 * torch.optim.swa_utils.AveragedModel with get_ema_multi_avg_fn(), and Keras's use_ema. */
#ifndef LK_OPTIM_AVERAGE_H
#define LK_OPTIM_AVERAGE_H

#include "optim/optimizer.h"
#include "tensor/elementwise.h"

struct lk_average;

/* The average is the last array of the optimizer's state; `info` is borrowed. Kernels can run
 * after lk_device_build(). fails: LK_E_ARGUMENT, a decay that is not from 0 to below 1 */
LK_MUST_CHECK enum lk_status lk_average_create(const struct lk_optimizer_config *config,
                                               const struct lk_optimizer_info *info,
                                               struct lk_average **average);
void lk_average_destroy(struct lk_average *average);

/* Takes elements first to first + count - 1 of w into the average, after step `step`. Enqueues.
 */
LK_MUST_CHECK enum lk_status lk_average_enqueue(struct lk_average *average,
                                                const struct lk_buffer *w, int64_t first,
                                                int64_t count, int64_t step);

/* Exchanges w with its average. Enqueues. */
LK_MUST_CHECK enum lk_status lk_average_enqueue_swap(struct lk_average *average,
                                                     struct lk_buffer *w);

#endif
