/* Writes PNG images of one colour, without the code under test. Knows cmocka and zlib. */
#ifndef TESTS_PNG_H
#define TESTS_PNG_H

#include "scratch.h"
#include <zlib.h>

static inline size_t png_put_chunk(uint8_t *to, const char *kind, const uint8_t *data,
                                   uint32_t bytes)
{
    to[0] = (uint8_t)(bytes >> 24);
    to[1] = (uint8_t)(bytes >> 16);
    to[2] = (uint8_t)(bytes >> 8);
    to[3] = (uint8_t)bytes;
    memcpy(to + 4, kind, 4);
    if (bytes)
        memcpy(to + 8, data, bytes);
    const uint32_t sum = (uint32_t)crc32(0, to + 4, bytes + 4);
    for (int i = 0; i < 4; i++)
        to[8 + bytes + (uint32_t)i] = (uint8_t)(sum >> (24 - 8 * i));
    return bytes + 12;
}

/* A PNG of height x width pixels below 256 a side, all r, g, b; the bytes it takes. */
static inline size_t png_make(uint8_t to[4096], int height, int width, const uint8_t rgb[3])
{
    static uint8_t rows[256 * (1 + 3 * 256)];
    uint8_t header[13] = {0, 0, 0, (uint8_t)width, 0, 0, 0, (uint8_t)height, 8, 2};
    uint8_t packed[3000];
    uLongf packed_bytes = sizeof packed;
    size_t used = 0;
    for (int y = 0; y < height; y++) {
        rows[used++] = 0; /* no filter */
        for (int x = 0; x < width; x++, used += 3)
            memcpy(rows + used, rgb, 3);
    }
    assert_int_equal(compress(packed, &packed_bytes, rows, used), Z_OK);
    memcpy(to, "\x89PNG\r\n\x1a\n", 8);
    size_t at = 8;
    at += png_put_chunk(to + at, "IHDR", header, 13);
    at += png_put_chunk(to + at, "IDAT", packed, (uint32_t)packed_bytes);
    return at + png_put_chunk(to + at, "IEND", NULL, 0);
}

/* Writes one to a file of the scratch folder, making the folders above it. */
static inline void png_put(const char *name, int height, int width, const uint8_t rgb[3])
{
    uint8_t png[4096];
    char path[512];
    snprintf(path, sizeof path, "%s", scratch_path(name));
    for (char *c = path + strlen(scratch) + 1; (c = strchr(c, '/')); c++) {
        *c = '\0';
        mkdir(path, 0777);
        *c = '/';
    }
    scratch_put(path, png, png_make(png, height, width, rgb));
}

#endif
