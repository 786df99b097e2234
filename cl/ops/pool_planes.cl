/* Pooling of images in plane tiles.
 *
 *   planes_max             y = the largest pixel of each window; NaN if one is
 *   planes_average         y = the mean of the window's real pixels (COUNT_PADDING: of all)
 *   planes_global_max      likewise of the whole image, in every lane of y
 *   planes_global_average
 *
 * x: [tiles][channels][vectors][VECTOR]; y: likewise, or [tiles][channels][VECTOR]; scratch: an
 * arranged plane for every group (lib/planes.cl). -D: as lib/planes.cl, or nothing of it for
 * whole images. Group ids: 0: `each` channels, 1: tile.
 */
#include "lib/real.cl"
#include "products/planes/args.h"

#define FOR_CHANNELS(c)                                                                        \
    for (int c = GROUP_ID(0) * each; c < min((GROUP_ID(0) + 1) * each, channels); c++)
#define PLANE(c) ((size_t)GROUP_ID(1) * channels + (c))

INLINE V larger(V best, V v)
{
    return (!(v <= best) & (best == best)) ? v : best;
}

#ifdef TAPS_Y
#include "lib/planes.cl"

/* How many pixels each output of a vector sees; 1 behind the last. */
INLINE V pixels_seen(const struct lk_planes *a, int vector)
{
    union {
        real lane[VECTOR];
        V all;
    } seen;
    for (int l = 0; l < VECTOR; l++) {
        const int at = vector * VECTOR + l;
        const int y = at / a->out_w * STRIDE_Y - a->pad_y;
        const int x = at % a->out_w * STRIDE_X - a->pad_x;
        const int down = min(y + TAPS_Y, (int)a->in_h) - max(y, 0);
        const int across = min(x + TAPS_X, (int)a->in_w) - max(x, 0);
        seen.lane[l] = at < a->out_h * a->out_w ? down * across : 1;
    }
    return seen.all;
}

/* The group's place in scratch. */
#define SCRATCH(a) (scratch + (GROUP_ID(1) * GROUP_COUNT(0) + GROUP_ID(0)) * ARRANGED(a))

INLINE __global real *arrange(const struct lk_planes *a, __global const real *x, size_t plane,
                              __global real *scratch, real pad)
{
    for (int s = 0; s < TAPS_X; s++)
        arrange_copy(a, x + plane * a->in_vectors * VECTOR, scratch + s * a->copy, s, pad);
    return scratch;
}

KERNEL void planes_max(__global const real *restrict x, __global V *restrict y,
                       __global real *scratch, struct lk_planes a, int channels,
                       int each GROUP_ARGS)
{
    FOR_CHANNELS (c) {
        __global const real *from = arrange(&a, x, PLANE(c), SCRATCH(&a), -INFINITY);
        for (int i = 0; i < a.out_vectors; i++) {
            V best = (V)(-INFINITY);
            for (int r = 0; r < TAPS_Y; r++)
                for (int s = 0; s < TAPS_X; s++)
                    best = larger(best, ROW_LOAD(from + TAP_AT(&a, r, s) + i * VECTOR));
            y[PLANE(c) * a.out_vectors + i] = best;
        }
    }
}

KERNEL void planes_average(__global const real *restrict x, __global V *restrict y,
                           __global real *scratch, struct lk_planes a, int channels,
                       int each GROUP_ARGS)
{
    FOR_CHANNELS (c) {
        __global const real *from = arrange(&a, x, PLANE(c), SCRATCH(&a), 0);
        for (int i = 0; i < a.out_vectors; i++) {
            V sum = (V)0;
            for (int r = 0; r < TAPS_Y; r++) {
                V row = (V)0;
                for (int s = 0; s < TAPS_X; s++)
                    row += ROW_LOAD(from + TAP_AT(&a, r, s) + i * VECTOR);
                sum += row;
            }
#ifdef COUNT_PADDING
            y[PLANE(c) * a.out_vectors + i] = sum / (V)(TAPS_Y * TAPS_X);
#else
            y[PLANE(c) * a.out_vectors + i] = sum / pixels_seen(&a, i);
#endif
        }
    }
}

#else

KERNEL void planes_global_max(__global const real *restrict x, __global V *restrict y,
                              int channels, int pixels, int each GROUP_ARGS)
{
    const int vectors = (pixels + VECTOR - 1) / VECTOR;
    FOR_CHANNELS (c) {
        __global const real *from = x + PLANE(c) * vectors * VECTOR;
        V best = (V)from[0];
        for (int p = 1; p < pixels; p++)
            best = larger(best, (V)from[p]);
        y[PLANE(c)] = best;
    }
}

/* Sums of lanes, then over them from the first. */
KERNEL void planes_global_average(__global const real *restrict x, __global V *restrict y,
                                  int channels, int pixels, int each GROUP_ARGS)
{
    const int vectors = (pixels + VECTOR - 1) / VECTOR, whole = pixels / VECTOR;
    FOR_CHANNELS (c) {
        __global const real *from = x + PLANE(c) * vectors * VECTOR;
        union {
            real lane[VECTOR];
            V all;
        } sum;
        sum.all = (V)0;
        for (int i = 0; i < whole; i++)
            sum.all += ROW_LOAD(from + i * VECTOR);
        real total = 0;
        for (int l = 0; l < VECTOR; l++)
            total += sum.lane[l];
        for (int p = whole * VECTOR; p < pixels; p++)
            total += from[p];
        y[PLANE(c)] = (V)(total / pixels);
    }
}
#endif
