/* Checks that an image file is complete and consistent before stb_image reads it, which trusts
 * some lengths and tables without a check. Floor 1. Knows bytes only. */
#ifndef LK_IO_IMAGE_CHECK_H
#define LK_IO_IMAGE_CHECK_H

#include <lockstep/status.h>
#include <stddef.h>
#include <stdint.h>

/* Checks lengths and checksums of a PNG's chunks, from behind its signature of 8 bytes to the
 * IEND chunk. fails: LK_E_DATA. source: RFC 2083 */
LK_MUST_CHECK enum lk_status lk_png_check(const uint8_t *data, size_t bytes, const char *where);

/* Height and width of the header of a PNG that has passed lk_png_check(). fails: LK_E_DATA the
 * first chunk is no header */
LK_MUST_CHECK enum lk_status lk_png_size(const uint8_t *data, size_t bytes, const char *where,
                                         int64_t size[2]);

/* Checks a JPEG's segments, from behind its marker of 2 bytes to the end: their lengths, that
 * no Huffman table has too many codes, that each scan's tables are defined before it. fails:
 * LK_E_DATA. source: ITU-T T.81, B */
LK_MUST_CHECK enum lk_status lk_jpeg_check(const uint8_t *data, size_t bytes,
                                           const char *where);

#endif
