/* What an open data set is made of, for those in this room that look behind its samples.
 * Floor 3. Knows no batch. */
#ifndef LK_DATA_DATA_H
#define LK_DATA_DATA_H

#include "data/images.h"

struct lk_data {
    const struct lk_source *source;
    void *state;
    struct lk_images *images; /* NULL: the source has pixels */
    struct lk_data_info info;
    size_t sample_bytes;
};

#endif
