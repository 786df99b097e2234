/* Samples from image files: decoded, scaled, kept where there is memory for it; broken ones are
 * counted, named and replaced. Floor 4. Knows a source only by its functions. */
#ifndef LK_DATA_IMAGES_IMAGES_H
#define LK_DATA_IMAGES_IMAGES_H

#include "data/images/decode.h"
#include "data/sources/broken.h"

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

/* Reads a sample, [h, w, c], and its label; what is NULL is not wanted. A broken sample is
 * replaced by the next one that is not broken; which one that is, and so the label, is known
 * only when the image is decoded. Any thread. crop: NULL for the usual one, whose
 * samples alone are kept. fails: LK_E_DATA more are broken than may be; LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_images_read(const struct lk_images *images, int64_t index,
                                            const struct lk_image_crop *crop, uint8_t *sample,
                                            int32_t *label);

/* Reads "96x96", height and width, of a SPEC's option `size`; "" leaves `size` as it is.
 * fails: LK_E_ARGUMENT */
LK_MUST_CHECK enum lk_status lk_images_parse_size(const char *text, int size[2]);

/* As lk_images_read(), of all fields of a source that has them beside the image: to[i] that of
 * field i; NULL: it is not wanted. Of one without, those of an image and its class. */
LK_MUST_CHECK enum lk_status lk_images_read_fields(const struct lk_images *images,
                                                   int64_t index,
                                                   const struct lk_image_crop *crop,
                                                   void *const to[LK_MOST_FIELDS]);

/* Adds to a hash where the samples come from and how they are made. */
LK_MUST_CHECK enum lk_status lk_images_identify(const struct lk_images *images,
                                                struct lk_sha256 *sum);

/* The crop that the options asked for; samples with it are cached. */
struct lk_image_crop lk_images_crop(const struct lk_images *images);

/* Whether samples are cached once they were read. */
bool lk_images_are_kept(const struct lk_images *images);

/* How samples are made of the image files. */
struct lk_decoding lk_images_decoding(const struct lk_images *images);

/* The samples that were found to be broken. */
struct lk_broken *lk_images_broken(const struct lk_images *images);

/* Whether the label of a sample is a class. fails: LK_E_DATA */
LK_MUST_CHECK enum lk_status lk_images_check_label(const struct lk_images *images,
                                                   const struct lk_encoded *encoded);

#endif
