/* Encodes pixels as a PNG file. */
#include "io/image/png_write.h"

#include "base/fail.h"
#include "io/gzip.h"
#include <stdlib.h>
#include <string.h>

enum { MARK = 8, CHUNK = 12, HEADER = 13, FILTERS = 5, MOST_SIDE = 1 << 14 };

static void put_big_endian(uint8_t *to, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(value >> (24 - 8 * i));
}

/* Writes a chunk: length, kind, data, and the checksum over kind and data. Returns its end. */
static uint8_t *put_chunk(uint8_t *to, const char *kind, const void *data, size_t bytes)
{
    put_big_endian(to, (uint32_t)bytes);
    memcpy(to + 4, kind, 4);
    if (bytes)
        memcpy(to + 8, data, bytes);
    put_big_endian(to + 8 + bytes, lk_crc32(to + 4, bytes + 4));
    return to + CHUNK + bytes;
}

/* The predictor "Paeth" of PNG: the one of left, above and upper left that is nearest to
 * left + above - upper left. */
static int paeth(int a, int b, int c)
{
    const int p = a + b - c, pa = abs(p - a), pb = abs(p - b), pc = abs(p - c);
    return pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
}

/* Writes a row as its differences from the filter's prediction and returns the sum of their
 * absolute values. above: the row before, or zeros. `filter` is a constant at each call, so
 * that the compiler makes a loop of its own for each. */
static inline long filter_row(const int filter, const uint8_t *row, const uint8_t *above,
                              size_t bytes, size_t pixel, uint8_t *to)
{
    long sum = 0;
    for (size_t i = 0; i < bytes; i++) {
        const int a = i < pixel ? 0 : row[i - pixel], b = above[i];
        const int c = i < pixel ? 0 : above[i - pixel];
        const int guess = filter == 0   ? 0
                          : filter == 1 ? a
                          : filter == 2 ? b
                          : filter == 3 ? (a + b) / 2
                                        : paeth(a, b, c);
        to[i] = (uint8_t)(row[i] - guess);
        sum += abs((int8_t)to[i]);
    }
    return sum;
}

static long try_filter(int filter, const uint8_t *row, const uint8_t *above, size_t bytes,
                       size_t pixel, uint8_t *to)
{
    switch (filter) {
    case 0:
        return filter_row(0, row, above, bytes, pixel, to);
    case 1:
        return filter_row(1, row, above, bytes, pixel, to);
    case 2:
        return filter_row(2, row, above, bytes, pixel, to);
    case 3:
        return filter_row(3, row, above, bytes, pixel, to);
    default:
        return filter_row(4, row, above, bytes, pixel, to);
    }
}

/* Filters each row with the filter whose differences are smallest; a filtered row is the
 * filter's number, then the bytes. */
static void filter_rows(const struct lk_image *image, uint8_t *above, uint8_t *trial,
                        uint8_t *to)
{
    const size_t pixel = (size_t)image->channels, bytes = pixel * (size_t)image->width;
    memset(above, 0, bytes);
    for (int y = 0; y < image->height; y++, to += 1 + bytes) {
        const uint8_t *row = image->pixels + (size_t)y * bytes;
        long least = -1;
        for (int filter = 0; filter < FILTERS; filter++) {
            const long sum = try_filter(filter, row, above, bytes, pixel, trial);
            if (least >= 0 && sum >= least)
                continue;
            least = sum;
            to[0] = (uint8_t)filter;
            memcpy(to + 1, trial, bytes);
        }
        memcpy(above, row, bytes);
    }
}

/* Filters and deflates the rows as a PNG stores them. The caller frees `packed`. */
static enum lk_status pack_rows(const struct lk_image *image, void **packed,
                                size_t *packed_bytes)
{
    const size_t row = (size_t)image->channels * (size_t)image->width;
    const size_t bytes = (1 + row) * (size_t)image->height;
    uint8_t *rows = malloc(bytes + 2 * row);
    if (!rows)
        return lk_fail_memory("an image's rows", bytes + 2 * row);
    filter_rows(image, rows + bytes, rows + bytes + row, rows);
    const enum lk_status status = lk_zlib_deflate(rows, bytes, packed, packed_bytes);
    free(rows);
    return status;
}

enum lk_status lk_png_write(const struct lk_image *image, void **data, size_t *bytes)
{
    static const uint8_t colours[] = {[1] = 0, [3] = 2, [4] = 6};
    const int c = image->channels, h = image->height, w = image->width;
    if ((c != 1 && c != 3 && c != 4) || h < 1 || w < 1 || h > MOST_SIDE || w > MOST_SIDE)
        return lk_fail(LK_E_ARGUMENT, "no PNG of %d x %d pixels of %d channels is written", w,
                       h, c);
    void *packed = NULL;
    size_t packed_bytes = 0;
    LK_TRY(pack_rows(image, &packed, &packed_bytes));
    const size_t room = MARK + CHUNK + HEADER + CHUNK + packed_bytes + CHUNK;
    uint8_t *file = packed_bytes > INT32_MAX ? NULL : malloc(room);
    if (!file) {
        free(packed);
        return lk_fail_memory("a PNG file", room);
    }
    uint8_t header[HEADER] = {[8] = 8, [9] = colours[c]}; /* 8 bits a value */
    put_big_endian(header, (uint32_t)w);
    put_big_endian(header + 4, (uint32_t)h);
    memcpy(file, "\x89PNG\r\n\x1a\n", MARK);
    uint8_t *end = put_chunk(file + MARK, "IHDR", header, HEADER);
    end = put_chunk(end, "IDAT", packed, packed_bytes);
    put_chunk(end, "IEND", NULL, 0);
    free(packed);
    *data = file;
    *bytes = room;
    return LK_OK;
}
