/* Whether an image file is whole, before stb_image sees it, which trusts some of what a file
 * says. Floor 1. Knows bytes only. */
#ifndef LK_IO_IMAGE_CHECK_H
#define LK_IO_IMAGE_CHECK_H

#include <lockstep/status.h>
#include <stddef.h>
#include <stdint.h>

/* Chunks of a PNG, behind its mark of 8 bytes, up to the one that ends it: their lengths and
 * checksums. fails: LK_E_DATA. source: RFC 2083 */
LK_MUST_CHECK enum lk_status lk_png_check(const uint8_t *data, size_t bytes, const char *where);

/* Height and width as the header says, for a PNG that lk_png_check() has passed. fails:
 * LK_E_DATA it begins with no header */
LK_MUST_CHECK enum lk_status lk_png_size(const uint8_t *data, size_t bytes, const char *where,
                                         int64_t size[2]);

/* Segments of a JPEG, behind its mark of 2 bytes, up to its end: their lengths, Huffman tables
 * of no more codes than there is room for, scans that have theirs. fails: LK_E_DATA. source:
 * ITU-T T.81, B */
LK_MUST_CHECK enum lk_status lk_jpeg_check(const uint8_t *data, size_t bytes,
                                           const char *where);

#endif
