/* What batches are to those that hand them to devices. Floor 4. */
#ifndef LK_DATA_BATCHES_BATCHES_H
#define LK_DATA_BATCHES_BATCHES_H

#include "tensor/look.h"
#include <lockstep/data.h>

/* Draws the records of samples first..first+count-1 of a batch, which lk_batches_read() has not
 * applied: the device does. Any thread. fails: as lk_batches_read() for a part of a batch */
LK_MUST_CHECK enum lk_status lk_batches_draw(struct lk_batches *batches, int64_t batch,
                                             int64_t first, int64_t count,
                                             struct lk_look_draw *draws);

#endif
