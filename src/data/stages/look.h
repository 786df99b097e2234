/* A look on the host, for eyes: training has it from cl/tensor/convert.cl. Floor 4. */
#ifndef LK_DATA_STAGES_LOOK_H
#define LK_DATA_STAGES_LOOK_H

#include "tensor/look.h"
#include <stdint.h>

/* Mirrors a sample [height][width][look->channels] and changes its colours, rounded to whole
 * values; it is not normalized. */
void lk_look_apply(const struct lk_look *look, const struct lk_look_draw *draw, int height,
                   int width, uint8_t *sample);

#endif
