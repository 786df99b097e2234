/* Decodes PNG and JPEG files to 8-bit pixels, and scales pixels. Floor 1. Knows bytes only.
 * JPEG is decoded by TurboJPEG where the library was built with it, all else by stb_image. */
#ifndef LK_IO_IMAGE_H
#define LK_IO_IMAGE_H

#include <lockstep/status.h>
#include <stddef.h>
#include <stdint.h>

/* A decoded image; lk_image_clear() releases it. */
struct lk_image {
    int height, width, channels;
    uint8_t *pixels; /* [height][width][channels] */
};

/* Decodes an image of at most 16384 pixels a side and 64 Mi pixels in all into 1 (grey), 3
 * (RGB) or 4 (RGBA) channels; `where` names it in messages. Any thread. fails: LK_E_DATA
 * another format (it is named), broken, cut short; LK_E_ARGUMENT channels */
LK_MUST_CHECK enum lk_status lk_image_decode(const void *data, size_t bytes, int channels,
                                             const char *where, struct lk_image *image);

/* As lk_image_decode(), but TurboJPEG may decode a JPEG in a smaller size, which is less work:
 * scaled by the fewest eighths that give at least least[0] rows and least[1] columns. */
LK_MUST_CHECK enum lk_status lk_image_decode_least(const void *data, size_t bytes, int channels,
                                                   const int least[2], const char *where,
                                                   struct lk_image *image);
void lk_image_clear(struct lk_image *image);

/* The decoder of JPEG, "TurboJPEG" or "stb_image"; the two differ in the last bits of pixels.
 */
const char *lk_image_decoder(void);

/* "JPEG" or "PNG", by the file's first bytes; NULL: neither. */
const char *lk_image_format(const void *data, size_t bytes);

/* Size and channels as they are in the file. fails: LK_E_DATA no PNG or JPEG, too large */
LK_MUST_CHECK enum lk_status lk_image_measure(const void *data, size_t bytes, const char *where,
                                              int shape[3]);

/* A rectangle of an image, in pixels from its upper left corner. */
struct lk_image_box {
    double left, top, right, bottom;
};

/* Scales a rectangle of an image (NULL: all of it) to [height][width] with a triangle filter:
 * bilinear where it grows; where it shrinks, the triangle covers all pixels that fall on a new
 * one (antialiasing). to: [height][width][channels]. Gives the same bits as Pillow.
 * fails: LK_E_MEMORY; LK_E_ARGUMENT a size below 1, a box without area or outside the image.
 * source: Pillow's Resample.c */
LK_MUST_CHECK enum lk_status lk_image_resize(const struct lk_image *from,
                                             const struct lk_image_box *box, int height,
                                             int width, uint8_t *to);

#endif
