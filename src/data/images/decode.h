/* Makes a sample of an image file: decodes, crops, scales. Floor 4. Knows no data set. */
#ifndef LK_DATA_IMAGES_DECODE_H
#define LK_DATA_IMAGES_DECODE_H

#include "data/sources/source.h"

struct lk_decoding {
    int height, width, channels; /* of samples */
    bool is_full;                /* JPEGs are decoded in full size, not in a smaller one that is
                                  * enough for the sample's size */
};

/* A rectangle that is cut out of an image before it is scaled. */
struct lk_image_crop {
    int size[2];    /* height and width, in pixels of the image; 0: all of it */
    bool is_middle; /* it is the middle; otherwise: */
    double at[2];   /* its place downwards and to the right, 0 to 1 of the room that is
                     * left */
};

/* The smallest height and width in which a JPEG may be decoded if all of it becomes the sample.
 */
void lk_decode_least(const struct lk_decoding *decoding, int least[2]);

/* Makes a sample [h, w, c]. Any thread. fails: LK_E_DATA; LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_decode_sample(const struct lk_decoding *decoding,
                                              const struct lk_encoded *encoded,
                                              const struct lk_image_crop *crop,
                                              uint8_t *sample);

#endif
