/* Flips and colours applied on the host, for samples that a user looks at. In training the
 * device applies them. Floor 4. */
#ifndef LK_DATA_STAGES_LOOK_H
#define LK_DATA_STAGES_LOOK_H

#include "tensor/look.h"
#include <stdint.h>

/* Mirrors a sample [height][width][look->channels] and changes its colours, rounded to whole
 * values; it is not normalized. */
void lk_look_apply(const struct lk_look *look, const struct lk_look_draw *draw, int height,
                   int width, uint8_t *sample);

#endif
