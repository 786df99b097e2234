/* CRC-32C by tables, eight bytes at a time. */
#include "io/crc32c.h"

#include <pthread.h>

enum { SLICES = 8 };

static const uint32_t polynomial = 0x82f63b78; /* bits in reverse */

/* tables[k][b]: the contribution of byte b to the checksum after k more bytes. */
static uint32_t tables[SLICES][256];
static pthread_once_t is_made = PTHREAD_ONCE_INIT;

static void make_tables(void)
{
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t crc = b;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? polynomial : 0);
        tables[0][b] = crc;
    }
    for (int k = 1; k < SLICES; k++)
        for (int b = 0; b < 256; b++)
            tables[k][b] = tables[k - 1][b] >> 8 ^ tables[0][tables[k - 1][b] & 255];
}

static uint32_t little_endian(const uint8_t *b)
{
    return (uint32_t)b[3] << 24 | (uint32_t)b[2] << 16 | (uint32_t)b[1] << 8 | b[0];
}

uint32_t lk_crc32c(const void *data, size_t bytes)
{
    pthread_once(&is_made, make_tables);
    const uint8_t *p = data;
    uint32_t crc = UINT32_MAX;
    for (; bytes >= SLICES; bytes -= SLICES, p += SLICES) {
        const uint32_t low = crc ^ little_endian(p), high = little_endian(p + 4);
        crc = tables[7][low & 255] ^ tables[6][low >> 8 & 255] ^ tables[5][low >> 16 & 255] ^
              tables[4][low >> 24] ^ tables[3][high & 255] ^ tables[2][high >> 8 & 255] ^
              tables[1][high >> 16 & 255] ^ tables[0][high >> 24];
    }
    for (; bytes > 0; bytes--, p++)
        crc = crc >> 8 ^ tables[0][(crc ^ *p) & 255];
    return ~crc;
}

uint32_t lk_crc32c_masked(const void *data, size_t bytes)
{
    const uint32_t crc = lk_crc32c(data, bytes);
    return (crc >> 15 | crc << 17) + 0xa282ead8;
}
