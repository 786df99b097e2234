/* One image file as a sample, without a data set. Floor 4. Knows no model. */
#ifndef LK_DATA_PHOTO_H
#define LK_DATA_PHOTO_H

#include "data/stages/pipeline.h"

/* Makes a sample of a PNG or JPEG file of any size as an evaluation with this pipeline would of
 * an image of the data SPEC: decoded, cropped, scaled to the SPEC's size, the pipeline's, or
 * else to `shape`, then its middle of `shape` = {h, w, c} is cut out. pixels: [h][w][c].
 * fails: LK_E_IO; LK_E_DATA; LK_E_ARGUMENT where samples are smaller than `shape` */
LK_MUST_CHECK enum lk_status lk_photo_read(const char *path, const char *spec,
                                           const struct lk_pipeline *pipeline,
                                           const int shape[3], uint8_t *pixels);

/* The same of a file that lies in memory. Any thread. */
LK_MUST_CHECK enum lk_status lk_photo_decode(const void *data, size_t bytes, const char *spec,
                                             const struct lk_pipeline *pipeline,
                                             const int shape[3], uint8_t *pixels);

#endif
