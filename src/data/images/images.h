/* Samples from image files: decoded, scaled, kept where there is memory for it; broken ones
 * counted, named and replaced. Floor 4. Knows no source but by its verbs. */
#ifndef LK_DATA_IMAGES_IMAGES_H
#define LK_DATA_IMAGES_IMAGES_H

#include "data/images/decode.h"

struct lk_images;

/* Images of an open source, which must outlive them. Fills the shape in `info`: of the SPEC's
 * options, else `wanted`, else of the first image that can be read.
 * fails: LK_E_ARGUMENT options; LK_E_DATA no image can be read; LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_images_create(const struct lk_source *source, const void *state,
                                              const struct lk_data_request *request,
                                              const struct lk_data_options *wanted,
                                              struct lk_data_info *info,
                                              struct lk_images **images);
void lk_images_destroy(struct lk_images *images);

/* Reads a sample: [h, w, c]. One that is broken is replaced by the next one that is not. Any
 * thread. part: NULL for that which was wanted, whose samples alone are kept.
 * fails: LK_E_DATA more are broken than may be; LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_images_read(struct lk_images *images, int64_t index,
                                            const struct lk_image_part *part, uint8_t *sample,
                                            int32_t *label);

/* The part that was wanted. */
struct lk_image_part lk_images_part(const struct lk_images *images);

/* Whether samples are kept once they were read. */
bool lk_images_are_kept(const struct lk_images *images);

/* How their samples are made. */
struct lk_decoding lk_images_decoding(const struct lk_images *images);

/* Samples found to be broken so far. */
int64_t lk_images_bad(const struct lk_images *images);

/* Samples that were found to be broken before any was read: those of the request. */
int64_t lk_images_lost(const struct lk_images *images);

/* How many of `count` samples may be broken, the whole set's or a part of it. */
int64_t lk_images_most_bad(const struct lk_images *images, int64_t count);

/* Takes it from another reader that a sample is broken: it is left out, and nothing is said. */
void lk_images_mark_bad(struct lk_images *images, int64_t index);

/* Whether the label of a sample is a class. fails: LK_E_DATA */
LK_MUST_CHECK enum lk_status lk_images_check_label(const struct lk_images *images,
                                                   const struct lk_encoded *encoded);

#endif
