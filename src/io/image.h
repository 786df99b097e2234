/* Image files: PNG and JPEG to 8-bit pixels. Floor 1. Knows bytes only. */
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

/* Decodes an image of at most 16384 pixels a side and 64 Mi in all into 1 (grey), 3 (RGB) or 4
 * (RGBA) channels; `where` names it in messages. fails: LK_E_DATA; LK_E_ARGUMENT channels */
LK_MUST_CHECK enum lk_status lk_image_decode(const void *data, size_t bytes, int channels,
                                             const char *where, struct lk_image *image);
void lk_image_clear(struct lk_image *image);

#endif
