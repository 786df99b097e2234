/* Pixels as a PNG file in memory, without loss. Floor 1. Knows bytes only. source: RFC 2083 */
#ifndef LK_IO_PNG_WRITE_H
#define LK_IO_PNG_WRITE_H

#include "io/image/image.h"

/* Encodes an image of 1 (grey), 3 (RGB) or 4 (RGBA) channels; the same pixels give the same
 * bytes with the same zlib. The caller frees `data`.
 * fails: LK_E_ARGUMENT other channels or sides; LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_png_write(const struct lk_image *image, void **data,
                                          size_t *bytes);

#endif
