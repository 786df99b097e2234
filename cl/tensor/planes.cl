/* Images of a batch into plane tiles (tensor/tensor.h), and out of them:
 *
 *   planes_images   y[n,c,p] = x[n,p,c'] * scale[c] + shift[c]   x: uint8, `pixels_at` bytes on
 *   planes_numbers  y[n,c,p] = x[n,c,p] * scale + shift          x: float
 *   planes_spread   y[n,c,p] in every lane = x[n,c,p]
 *   planes_of_batch y[n,c,p] of x in batch tiles of `lanes`
 *   planes_to_batch y in batch tiles of x[n,c,p], 0 in lanes without a sample
 *
 * A tile is sample n, p is a pixel; dead lanes, and samples that there are not, become 0.
 * y, but for spread: [n][c][vectors][VECTOR]. -D: REVERSES: c' is channels - 1 - c, else c.
 * Batch tiles: `shard_tiles` for every `shard_samples` samples. Group ids: 0: channel, 1: tile
 * of y, images: 2: part of `each` pixels.
 */
#include "lib/real.cl"

#ifdef REVERSES
#define FROM(c, channels) ((channels) - 1 - (c))
#else
#define FROM(c, channels) (c)
#endif

#define CHANNEL ((int)GROUP_ID(0))
#define CHANNELS ((int)GROUP_COUNT(0))
#define PLANE ((size_t)GROUP_ID(1) * CHANNELS + CHANNEL)
#define VECTORS(pixels) (((pixels) + VECTOR - 1) / VECTOR)

/* Where the compiler knows the number of channels it makes vectors of this. */
INLINE void convert_pixels(__global const uchar *restrict x, __global real *restrict y,
                           int count, int channels, real scale, real shift)
{
    for (int p = 0; p < count; p++)
        y[p] = (real)x[(size_t)p * channels] * scale + shift;
}

KERNEL void planes_images(__global const uchar *restrict x, __global real *restrict y,
                          int pixels_at, int pixels, int each, int samples, real scale_0,
                          real scale_1, real scale_2, real scale_3, real shift_0, real shift_1,
                          real shift_2, real shift_3 GROUP_ARGS)
{
    const int c = CHANNEL, first = GROUP_ID(2) * each;
    const int end = min(first + each, VECTORS(pixels) * VECTOR);
    const int count = (int)GROUP_ID(1) < samples ? min(first + each, pixels) - first : 0;
    const real scale = c == 0 ? scale_0 : c == 1 ? scale_1 : c == 2 ? scale_2 : scale_3;
    const real shift = c == 0 ? shift_0 : c == 1 ? shift_1 : c == 2 ? shift_2 : shift_3;
    x += pixels_at + ((size_t)GROUP_ID(1) * pixels + first) * CHANNELS + FROM(c, CHANNELS);
    y += PLANE * VECTORS(pixels) * VECTOR + first;
    if (CHANNELS == 3)
        convert_pixels(x, y, count, 3, scale, shift);
    else
        convert_pixels(x, y, count, CHANNELS, scale, shift);
    for (int p = count; p < end - first; p++)
        y[p] = 0;
}

KERNEL void planes_numbers(__global const float *restrict x, __global real *restrict y,
                           int pixels, int samples, real scale, real shift GROUP_ARGS)
{
    const int count = (int)GROUP_ID(1) < samples ? pixels : 0;
    x += PLANE * pixels;
    y += PLANE * VECTORS(pixels) * VECTOR;
    for (int p = 0; p < count; p++)
        y[p] = x[p] * scale + shift;
    for (int p = count; p < VECTORS(pixels) * VECTOR; p++)
        y[p] = 0;
}

KERNEL void planes_spread(__global const real *restrict x, __global V *restrict y,
                          int pixels GROUP_ARGS)
{
    x += PLANE * VECTORS(pixels) * VECTOR;
    y += PLANE * pixels;
    for (int p = 0; p < pixels; p++)
        y[p] = (V)x[p];
}

KERNEL void planes_of_batch(__global const real *restrict x, __global real *restrict y,
                            int pixels, int lanes, int shard_samples,
                            int shard_tiles GROUP_ARGS)
{
    const int shard = GROUP_ID(1) / shard_samples, number = GROUP_ID(1) % shard_samples;
    const size_t tile = (size_t)shard * shard_tiles + number / lanes;
    x += (tile * CHANNELS + CHANNEL) * pixels * lanes + number % lanes;
    y += PLANE * VECTORS(pixels) * VECTOR;
    for (int p = 0; p < pixels; p++)
        y[p] = x[(size_t)p * lanes];
    for (int p = pixels; p < VECTORS(pixels) * VECTOR; p++)
        y[p] = 0;
}

KERNEL void planes_to_batch(__global const real *restrict x, __global real *restrict y,
                            int pixels, int lanes, int shard_samples,
                            int shard_tiles GROUP_ARGS)
{
    const int shard = GROUP_ID(1) / shard_tiles, first = GROUP_ID(1) % shard_tiles * lanes;
    const int count = min(lanes, shard_samples - first), plane = VECTORS(pixels) * VECTOR;
    x += (((size_t)shard * shard_samples + first) * CHANNELS + CHANNEL) * plane;
    y += PLANE * pixels * lanes;
    for (int p = 0; p < pixels; p++, y += lanes) {
        for (int l = 0; l < count; l++)
            y[l] = x[(size_t)l * CHANNELS * plane + p];
        for (int l = count; l < lanes; l++)
            y[l] = 0;
    }
}
