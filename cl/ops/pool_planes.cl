/* Pooling of images in plane tiles.
 *
 *   planes_max             y = the largest pixel of each window; NaN if one is
 *   planes_average         y = the mean of the window's real pixels (COUNT_PADDING: of all)
 *   planes_max_backward    dx = the sum of dy of the windows whose largest pixel it was
 *   planes_average_backward  dx = the sum of dy / pixels of the windows it is in
 *   planes_global_max      likewise of the whole image, in every lane of y
 *   planes_global_average
 *
 * x: [tiles][channels][vectors][VECTOR]; y: likewise, or [tiles][channels][VECTOR]; scratch: an
 * arranged plane for every group (lib/planes.cl); dx, dy: as x and y; positions: POSITION like
 * y, r * TAPS_X + s of the first largest pixel, written if KEEP. Dead lanes of images become 0.
 * -D: as lib/planes.cl, or nothing of it for whole images. Group ids: 0: `each` channels, 1:
 * tile.
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
#define SCRATCH(a)                                                                             \
    (scratch + (size_t)(GROUP_ID(1) * GROUP_COUNT(0) + GROUP_ID(0)) * ARRANGED(a))

INLINE __global real *arrange(const struct lk_planes *a, __global const real *x, size_t plane,
                              __global real *scratch, real pad)
{
    for (int s = 0; s < TAPS_X; s++)
        arrange_copy(a, x + plane * a->in_vectors * VECTOR, scratch + s * a->copy, s, pad);
    return scratch;
}

INLINE void clear_beyond(__global real *plane, int pixels)
{
    for (int p = pixels; p % VECTOR > 0; p++)
        plane[p] = 0;
}

#ifdef POSITION
typedef PASTE(POSITION, VECTOR) P;
#define TO_P(x) PASTE(PASTE(convert_, POSITION), VECTOR)(x)

KERNEL void planes_max(__global const real *restrict x, __global P *restrict positions,
                       __global V *restrict y, __global real *scratch, struct lk_planes a,
                       int channels, int each GROUP_ARGS)
{
    FOR_CHANNELS (c) {
        __global const real *from = arrange(&a, x, PLANE(c), SCRATCH(&a), -INFINITY);
        __global V *to = y + PLANE(c) * a.out_vectors;
        for (int i = 0; i < a.out_vectors; i++) {
            V best = (V)(-INFINITY);
            I where = 0;
            for (int r = 0; r < TAPS_Y; r++)
                for (int s = 0; s < TAPS_X; s++) {
                    const V v = ROW_LOAD(from + TAP_AT(&a, r, s) + i * VECTOR);
                    const I is_larger = !(v <= best) & (best == best);
                    best = is_larger ? v : best;
                    where = is_larger ? (I)(r * TAPS_X + s) : where;
                }
            to[i] = best;
#ifdef KEEP
            positions[PLANE(c) * a.out_vectors + i] = TO_P(where);
#endif
        }
        clear_beyond((__global real *)to, a.out_h * a.out_w);
    }
}

KERNEL void planes_max_backward(__global const real *restrict dy,
                                __global const POSITION *restrict positions,
                                __global real *restrict dx, struct lk_planes a, int channels,
                                int each GROUP_ARGS)
{
    FOR_CHANNELS (c) {
        const size_t plane = PLANE(c) * a.out_vectors * VECTOR;
        __global real *to = dx + PLANE(c) * a.in_vectors * VECTOR;
        for (int i = 0; i < a.in_vectors; i++)
            ROW_STORE(to + i * VECTOR, (V)0);
        for (int i = 0; i < a.out_h; i++)
            for (int j = 0; j < a.out_w; j++) {
                const size_t at = plane + i * a.out_w + j;
                /* below 0 where all are -inf: the first pixel of the image, then */
                const int h = max(i * STRIDE_Y - (int)a.pad_y + positions[at] / TAPS_X, 0);
                const int w = max(j * STRIDE_X - (int)a.pad_x + positions[at] % TAPS_X, 0);
                to[h * a.in_w + w] += dy[at];
            }
    }
}
#else

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
        clear_beyond((__global real *)(y + PLANE(c) * a.out_vectors), a.out_h * a.out_w);
    }
}

KERNEL void planes_average_backward(__global const real *restrict dy,
                                    __global real *restrict dx, struct lk_planes a,
                                    int channels, int each GROUP_ARGS)
{
    FOR_CHANNELS (c) {
        __global const real *from = dy + PLANE(c) * a.out_vectors * VECTOR;
        __global real *to = dx + PLANE(c) * a.in_vectors * VECTOR;
        for (int i = 0; i < a.in_vectors; i++)
            ROW_STORE(to + i * VECTOR, (V)0);
        for (int i = 0; i < a.out_h; i++)
            for (int j = 0; j < a.out_w; j++) {
                const int h = i * STRIDE_Y - a.pad_y, w = j * STRIDE_X - a.pad_x;
                const int end_h = min(h + TAPS_Y, (int)a.in_h);
                const int end_w = min(w + TAPS_X, (int)a.in_w);
#ifdef COUNT_PADDING
                const int seen = TAPS_Y * TAPS_X;
#else
                const int seen = (end_h - max(h, 0)) * (end_w - max(w, 0));
#endif
                const real part = from[i * a.out_w + j] / seen;
                for (int k = max(h, 0); k < end_h; k++)
                    for (int l = max(w, 0); l < end_w; l++)
                        to[k * a.in_w + l] += part;
            }
    }
}
#endif

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
