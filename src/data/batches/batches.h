/* What the rooms above ask of batches, beside the public lockstep/data.h. Floor 4. */
#ifndef LK_DATA_BATCHES_BATCHES_H
#define LK_DATA_BATCHES_BATCHES_H

#include "tensor/transform.h"
#include <lockstep/data.h>

/* Draws the flips and colour factors of samples first..first+count-1 of a batch. The device
 * applies them; lk_batches_read() does not. Any thread. fails: as lk_batches_read() */
LK_MUST_CHECK enum lk_status lk_batches_transform_params(struct lk_batches *batches,
                                                         int64_t batch, int64_t first,
                                                         int64_t count,
                                                         struct lk_transform_params *draws);

/* Whether samples are changed by chance, so that they are others in each epoch. */
bool lk_batches_draw(const struct lk_batches *batches);

#endif
