/* Images of a batch into plane tiles (tensor/tensor.h), and out of them:
 *
 *   planes_images   y[n,c,p] = x[n,p,c'] * scale[c] + shift[c]   x: uint8, `pixels_at` bytes on
 *   planes_numbers  y[n,c,p] = x[n,c,p] * scale + shift          x: float
 *   planes_spread   y[n,c,p] in every lane = x[n,c,p]
 *
 * A tile is sample n, p is a pixel; dead lanes, and samples that there are not, become 0.
 * y, but for spread: [n][c][vectors][VECTOR]. -D: REVERSES: c' is channels - 1 - c, else c.
 * Group ids: 0: channel, 1: tile.
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

KERNEL void planes_images(__global const uchar *restrict x, __global real *restrict y,
                          int pixels_at, int pixels, int samples, real scale_0, real scale_1,
                          real scale_2, real scale_3, real shift_0, real shift_1, real shift_2,
                          real shift_3 GROUP_ARGS)
{
    const int c = CHANNEL, count = (int)GROUP_ID(1) < samples ? pixels : 0;
    const real scale = c == 0 ? scale_0 : c == 1 ? scale_1 : c == 2 ? scale_2 : scale_3;
    const real shift = c == 0 ? shift_0 : c == 1 ? shift_1 : c == 2 ? shift_2 : shift_3;
    x += pixels_at + (size_t)GROUP_ID(1) * pixels * CHANNELS + FROM(c, CHANNELS);
    y += PLANE * VECTORS(pixels) * VECTOR;
    for (int p = 0; p < count; p++)
        y[p] = (real)x[(size_t)p * CHANNELS] * scale + shift;
    for (int p = count; p < VECTORS(pixels) * VECTOR; p++)
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
