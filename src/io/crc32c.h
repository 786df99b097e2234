/* The checksum of TFRecord files. Floor 1. Knows bytes only. */
#ifndef LK_IO_CRC32C_H
#define LK_IO_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* CRC-32C (Castagnoli, reflected) of the bytes. source: RFC 3720, B.4 */
uint32_t lk_crc32c(const void *data, size_t bytes);

/* The checksum as TFRecord files store it: rotated, and with a constant added. (A plain CRC
 * over data that contains its own CRC would always give the same value.) */
uint32_t lk_crc32c_masked(const void *data, size_t bytes);

#endif
