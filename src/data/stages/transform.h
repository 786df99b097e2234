/* Flips and colours applied on the host, for samples that a user looks at. In training the
 * device applies them. Floor 4. */
#ifndef LK_DATA_STAGES_TRANSFORM_H
#define LK_DATA_STAGES_TRANSFORM_H

#include "tensor/transform.h"
#include <stdint.h>

/* Mirrors a sample [height][width][transform->channels] and changes its colours, rounded to
 * whole values; it is not normalized. */
void lk_transform_apply(const struct lk_transform *transform,
                        const struct lk_transform_params *draw, int height, int width,
                        uint8_t *sample);

#endif
