/* Scales images as Pillow does, to the bit; resize_avx2.c has faster loops for AVX2. */
#include "io/image/image.h"

#include "base/fail.h"
#include "io/image/resize_avx2.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Weights are whole numbers of 2^-22, so that a weighted sum of 8-bit pixels stays below 2^31.
 */
enum { WEIGHT_BITS = LK_WEIGHT_BITS, HALF = 1 << (WEIGHT_BITS - 1), BLOCK = 64 };

static void taps_clear(struct lk_taps *taps)
{
    free(taps->first);
    free(taps->count);
    free(taps->weights);
}

/* Computes the weights of output pixel i: a triangle of half-width `support` round the pixel's
 * centre, cut off at the image's edges and divided by its sum. */
static void weigh(struct lk_taps *taps, int i, double centre, double support, int old)
{
    int first = (int)(centre - support + 0.5), end = (int)(centre + support + 0.5);
    first = first < 0 ? 0 : first;
    end = end > old ? old : end;
    double sum = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int x = first; x < end; x++) {
            const double distance = fabs((x - centre + 0.5) * (1.0 / support));
            const double weight = distance < 1 ? 1 - distance : 0;
            if (pass == 0)
                sum += weight;
            else
                taps->weights[(size_t)i * (size_t)taps->most + (size_t)(x - first)] =
                    (int32_t)(0.5 + (sum != 0 ? weight / sum : weight) * (1 << WEIGHT_BITS));
        }
    taps->first[i] = first;
    taps->count[i] = end - first;
}

/* Computes all weights for scaling pixels begin..end of `old` to `count` pixels. To be released
 * by taps_clear(), also after a failure. */
static enum lk_status taps_make(struct lk_taps *taps, double begin, double end, int old,
                                int count)
{
    const double scale = (end - begin) / count, support = scale < 1 ? 1 : scale;
    taps->most = (int)ceil(support) * 2 + 1;
    taps->first = calloc((size_t)count, sizeof *taps->first);
    taps->count = calloc((size_t)count, sizeof *taps->count);
    taps->weights = calloc((size_t)count * (size_t)taps->most, sizeof *taps->weights);
    if (!taps->first || !taps->count || !taps->weights)
        return lk_fail_memory("weights of an image's pixels", (size_t)count * sizeof(int32_t));
    for (int i = 0; i < count; i++)
        weigh(taps, i, begin + (i + 0.5) * scale, support, old);
    return LK_OK;
}

/* Scales one row to `width` pixels. `channels` is a constant at each call, so that the compiler
 * makes a loop of its own for each. */
static inline void squeeze_row(const struct lk_taps *taps, const uint8_t *from, int width,
                               const int channels, uint8_t *to)
{
    for (int i = 0; i < width; i++, to += channels) {
        const int32_t *weights = taps->weights + (size_t)i * (size_t)taps->most;
        const uint8_t *p = from + (size_t)taps->first[i] * (size_t)channels;
        int32_t sums[4] = {HALF, HALF, HALF, HALF};
        for (int k = 0; k < taps->count[i]; k++, p += channels)
            for (int c = 0; c < channels; c++)
                sums[c] += p[c] * weights[k];
        for (int c = 0; c < channels; c++)
            to[c] = (uint8_t)(sums[c] >> WEIGHT_BITS);
    }
}

/* Scales rows first..first+count-1 of an image to `width` pixels. */
static void squeeze_rows(const struct lk_taps *taps, const struct lk_image *from, int first,
                         int count, int width, uint8_t *to)
{
    const int channels = from->channels;
    const size_t row = (size_t)from->width * (size_t)channels;
    for (int y = 0; y < count; y++) {
        const uint8_t *old = from->pixels + (size_t)(first + y) * row;
        uint8_t *new = to + (size_t)y *(size_t)width *(size_t)channels;
        if (channels == 1)
            squeeze_row(taps, old, width, 1, new);
        else if (channels == 3)
            squeeze_row(taps, old, width, 3, new);
        else
            squeeze_row(taps, old, width, 4, new);
    }
}

/* Adds `count` weighted rows of `bytes` bytes into one, a block of neighbouring bytes at a
 * time. */
static void mix_rows(const int32_t *weights, int count, const uint8_t *from, size_t bytes,
                     uint8_t *to)
{
    for (size_t at = 0; at < bytes; at += BLOCK) {
        const int n = bytes - at < BLOCK ? (int)(bytes - at) : BLOCK;
        int32_t sums[BLOCK];
        for (int i = 0; i < BLOCK; i++)
            sums[i] = HALF;
        for (int k = 0; k < count; k++) {
            const uint8_t *row = from + (size_t)k * bytes + at;
            const int32_t weight = weights[k];
            if (n == BLOCK)
                for (int i = 0; i < BLOCK; i++)
                    sums[i] += row[i] * weight;
            else
                for (int i = 0; i < n; i++)
                    sums[i] += row[i] * weight;
        }
        for (int i = 0; i < n; i++)
            to[at + (size_t)i] = (uint8_t)(sums[i] >> WEIGHT_BITS);
    }
}

static enum lk_status squeeze_wide(const struct lk_taps *taps, const struct lk_image *from,
                                   const int rows[2], int width, uint8_t *to)
{
    const int size[] = {from->width, width, from->channels};
    const size_t row = (size_t)from->width * (size_t)from->channels;
    uint8_t *room = malloc(lk_avx2_scratch_bytes(size));
    if (!room)
        return lk_fail_memory("a resized image", lk_avx2_scratch_bytes(size));
    lk_avx2_resize_rows(taps, size, rows[1], from->pixels + (size_t)rows[0] * row, to, room);
    free(room);
    return LK_OK;
}

/* Scales to the new width first, a strip of the rows that are needed; then to the new height.
 */
static enum lk_status resize(const struct lk_image *from, const struct lk_taps across[2],
                             int height, int width, uint8_t *to)
{
    const struct lk_taps *rows = &across[1];
    const int first = rows->first[0];
    const int count = rows->first[height - 1] + rows->count[height - 1] - first;
    const size_t bytes = (size_t)width * (size_t)from->channels;
    const bool is_wide = lk_avx2_is_available();
    enum lk_status status = LK_OK;
    uint8_t *strip = malloc(bytes * (size_t)count);
    if (!strip)
        return lk_fail_memory("a resized image", bytes * (size_t)count);
    if (is_wide)
        status = squeeze_wide(&across[0], from, (int[]){first, count}, width, strip);
    else
        squeeze_rows(&across[0], from, first, count, width, strip);
    for (int y = 0; y < height && status == LK_OK; y++)
        (is_wide ? lk_avx2_blend_rows : mix_rows)(
            rows->weights + (size_t)y * (size_t)rows->most, rows->count[y],
            strip + (size_t)(rows->first[y] - first) * bytes, bytes, to + (size_t)y * bytes);
    free(strip);
    return status;
}

enum lk_status lk_image_resize(const struct lk_image *from, const struct lk_image_box *box,
                               int height, int width, uint8_t *to)
{
    const struct lk_image_box all = {0, 0, from->width, from->height}, *b = box ? box : &all;
    if (height < 1 || width < 1 ||
        !(b->left >= 0 && b->top >= 0 && b->right <= from->width && b->bottom <= from->height &&
          b->left < b->right && b->top < b->bottom))
        return lk_fail(LK_E_ARGUMENT,
                       "an image of %d x %d cannot be made of (%g, %g)..(%g, %g) of one of "
                       "%d x %d",
                       width, height, b->left, b->top, b->right, b->bottom, from->width,
                       from->height);
    if (!box && height == from->height && width == from->width) {
        memcpy(to, from->pixels, (size_t)height * (size_t)width * (size_t)from->channels);
        return LK_OK;
    }
    struct lk_taps taps[2] = {0};
    enum lk_status status = taps_make(&taps[0], b->left, b->right, from->width, width);
    if (status == LK_OK)
        status = taps_make(&taps[1], b->top, b->bottom, from->height, height);
    if (status == LK_OK)
        status = resize(from, taps, height, width, to);
    taps_clear(&taps[0]);
    taps_clear(&taps[1]);
    return status;
}
