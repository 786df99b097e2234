/* An image file to a sample: decoded, cropped, scaled. Floor 4. Knows no data set. */
#ifndef LK_DATA_IMAGES_DECODE_H
#define LK_DATA_IMAGES_DECODE_H

#include "data/sources/source.h"

struct lk_decoding {
    int height, width, channels; /* of samples */
    bool is_full;                /* JPEGs in their own size, not in about that of samples */
};

/* A part of an image before it is scaled. */
struct lk_image_part {
    int size[2];    /* height and width, in pixels of the image; 0: all of it */
    bool is_middle; /* else: */
    double at[2];   /* which of its places, downwards and to the right: 0 to 1 */
};

/* The height and width that a JPEG must be decoded with at least, where all of it is wanted. */
void lk_decode_least(const struct lk_decoding *decoding, int least[2]);

/* Makes a sample [h, w, c]. Any thread. fails: LK_E_DATA; LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_decode_sample(const struct lk_decoding *decoding,
                                              const struct lk_encoded *encoded,
                                              const struct lk_image_part *part,
                                              uint8_t *sample);

#endif
