/* What an open data set is made of, for those in this room that look behind its samples.
 * Floor 4. Knows no batch. */
#ifndef LK_DATA_DATA_H
#define LK_DATA_DATA_H

#include "data/images/images.h"

struct lk_data {
    const struct lk_source *source;
    void *state;
    struct lk_images *images; /* NULL: the source has pixels */
    struct lk_data_info info;
    size_t sample_bytes;
};

/* As lk_data_read() of one sample of image files, but another part of its image. */
LK_MUST_CHECK enum lk_status lk_data_read_part(const struct lk_data *data, int64_t index,
                                               const struct lk_image_part *part,
                                               uint8_t *sample, int32_t *label);

#endif
