/* Pooling of images in plane tiles.
 *
 *   planes_max             y = the largest pixel of each window; NaN if one is
 *   planes_average         y = the mean of the window's real pixels (COUNT_PADDING: of all)
 *   planes_max_backward    dx = the sum of dy of the windows whose largest pixel it was
 *   planes_average_backward  dx = the sum of dy / pixels of the windows it is in
 *   planes_global_max      likewise of the whole image, in every lane of y
 *   planes_global_average
 *
 * x: [tiles][channels][vectors][VECTOR]; y: likewise, or [tiles][channels][VECTOR]; dx, dy: as
 * x and y; positions: POSITION like y, r * TAPS_X + s of the first largest pixel, written if
 * KEEP. Dead lanes of images become 0. -D: as lib/planes.cl, or nothing of it for whole
 * images. Group ids: 0: `each` channels, 1: tile.
 */
#include "lib/real.cl"
#include "products/planes/args.h"

#define FOR_CHANNELS(c)                                                                        \
    for (int c = GROUP_ID(0) * each; c < min((GROUP_ID(0) + 1) * each, channels); c++)
#define PLANE(c) ((size_t)GROUP_ID(1) * channels + (c))
#define PLANES ((size_t)GROUP_COUNT(1) * channels)

INLINE V larger(V best, V v)
{
    return (!(v <= best) & (best == best)) ? v : best;
}

#ifdef TAPS_Y
#include "lib/planes.cl"

/* What is pooled: of pixels, of pixels beyond the edges, or of none. Rows are pooled first, and
 * so have the bits of pixels one after the other. */
#ifdef POSITION
#define NOTHING ((V)(-INFINITY))
typedef PASTE(POSITION, VECTOR) P;
#define TO_P(x) PASTE(PASTE(convert_, POSITION), VECTOR)(x)
#define POOL(of, where, v, at)                                                                 \
    {                                                                                          \
        const I is_larger = !((v) <= of) & (of == of);                                         \
        of = is_larger ? (v) : of;                                                             \
        where = is_larger ? (at) : where;                                                      \
    }
#else
#define NOTHING ((V)0)
#define POOL(of, where, v, at) of += (v);
#endif

#define LIVE ((TAPS_Y - 1) / STRIDE_Y + 1)
#define REACH (STRIDE_X * VECTOR + TAPS_X) /* reals, from where the first tap of a row is */
#if STRIDE_Y * (TAPS_X + LIVE) <= 64
#define FEW_UNROLL UNROLL
#else
#define FEW_UNROLL ROLLED /* large windows would take seconds to compile */
#endif

/* A row of x as VECTOR windows from `column` on see it: row y of the plane. */
INLINE void pool_row(const struct lk_planes *a, __global const real *x,
                     struct surroundings around, const I *there, int y, int column, V *pooled,
                     I *where)
{
    const int from = y * a->in_w + column * STRIDE_X - a->pad_x;
    const bool is_inside = from >= -around.before && from + REACH <= around.end;
    if (y < 0 || y >= a->in_h)
        return;
    FEW_UNROLL
    for (int s = 0; s < TAPS_X; s++) {
        V v = is_inside ? load_tap(x + from, s)
                        : load_within(x, from + s, a->in_vectors * VECTOR);
        v = there[s] ? v : NOTHING;
        POOL(*pooled, *where, v, (I)s)
    }
}

/* VECTOR reals of y, or as many of them as there is room for. */
INLINE void put(const struct lk_planes *a, V v, __global real *y, int at)
{
    store_first(y + at, v, min((int)a->out_vectors * VECTOR - at, VECTOR));
}

#ifdef POSITION
INLINE void put_positions(const struct lk_planes *a, I where, __global POSITION *positions,
                          int at)
{
    union {
        POSITION lane[VECTOR];
        P all;
    } p = {.all = TO_P(where)};
    for (int i = 0; i < min(VECTOR, (int)a->out_vectors * VECTOR - at); i++)
        positions[at + i] = p.lane[i];
}
#else
/* How many pixels VECTOR windows from `column` of a row on see of a row of x. */
INLINE V pixels_across(const struct lk_planes *a, int column)
{
    union {
        real lane[VECTOR];
        V all;
    } seen;
    for (int i = 0; i < VECTOR; i++) {
        const int x = (column + i) * STRIDE_X - a->pad_x;
        seen.lane[i] = max(min(x + TAPS_X, (int)a->in_w) - max(x, 0), 1);
    }
    return seen.all;
}
#endif

/* VECTOR columns of all rows of y, from `column` on: each row of x is read once, for all rows
 * of y that see it (products/planes/depthwise.cl). A row that is shorter is written with what
 * the next one overwrites. */
INLINE void pool_columns(const struct lk_planes *a, __global const real *x,
                         struct surroundings around, __global real *y,
#ifdef POSITION
                         __global POSITION *positions,
#endif
                         int column)
{
    V pooled[LIVE]; /* that of the row that was begun last, first */
    I where[LIVE], there[TAPS_X];
    UNROLL
    for (int s = 0; s < TAPS_X; s++)
        there[s] = columns_seen(a, column, s);
    UNROLL
    for (int l = 0; l < LIVE; l++) {
        pooled[l] = NOTHING;
        where[l] = 0;
    }
#ifndef POSITION
    const V across = pixels_across(a, column);
#endif
    ROLLED
    for (int i = 1 - LIVE; i < a->out_h; i++) {
        const int top = (i + LIVE - 1) * STRIDE_Y - a->pad_y;
        FEW_UNROLL
        for (int p = 0; p < STRIDE_Y; p++) {
            V row = NOTHING;
            I at = 0;
            pool_row(a, x, around, there, top + p, column, &row, &at);
            UNROLL
            for (int l = 0; l < LIVE; l++)
                if (l * STRIDE_Y + p < TAPS_Y)
                    POOL(pooled[l], where[l], row, (I)((l * STRIDE_Y + p) * TAPS_X) + at)
        }
        if (i >= 0) {
            const int to = i * a->out_w + column;
#ifdef POSITION
            put(a, pooled[LIVE - 1], y, to);
#ifdef KEEP
            put_positions(a, where[LIVE - 1], positions, to);
#endif
#elif defined(COUNT_PADDING)
            put(a, pooled[LIVE - 1] / (V)(TAPS_Y * TAPS_X), y, to);
#else
            const int first = i * STRIDE_Y - a->pad_y;
            const int down = min(first + TAPS_Y, (int)a->in_h) - max(first, 0);
            put(a, pooled[LIVE - 1] / (across * (V)(real)max(down, 1)), y, to);
#endif
        }
        UNROLL /* with a choice in it, or else LLVM takes it for a memmove() */
        for (int l = LIVE - 1; l >= 0; l--) {
            pooled[l] = l > 0 ? pooled[l - 1] : NOTHING;
            where[l] = l > 0 ? where[l - 1] : (I)0;
        }
    }
}

INLINE void clear_beyond(__global real *plane, int pixels)
{
    for (int p = pixels; p % VECTOR > 0; p++)
        plane[p] = 0;
}

#ifdef POSITION
KERNEL void planes_max(__global const real *restrict x, __global POSITION *restrict positions,
                       __global real *restrict y, struct lk_planes a, int channels,
                       int each GROUP_ARGS)
{
    FOR_CHANNELS (c) {
        const size_t to = PLANE(c) * a.out_vectors * VECTOR;
        for (int column = 0; column < a.out_w; column += VECTOR)
            pool_columns(&a, x + PLANE(c) * a.in_vectors * VECTOR,
                         around(&a, PLANE(c), PLANES), y + to, positions + to,
                         max(min(column, (int)a.out_w - VECTOR), 0));
        clear_beyond(y + to, a.out_h * a.out_w);
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

KERNEL void planes_average(__global const real *restrict x, __global real *restrict y,
                           struct lk_planes a, int channels, int each GROUP_ARGS)
{
    FOR_CHANNELS (c) {
        const size_t to = PLANE(c) * a.out_vectors * VECTOR;
        for (int column = 0; column < a.out_w; column += VECTOR)
            pool_columns(&a, x + PLANE(c) * a.in_vectors * VECTOR,
                         around(&a, PLANE(c), PLANES), y + to,
                         max(min(column, (int)a.out_w - VECTOR), 0));
        clear_beyond(y + to, a.out_h * a.out_w);
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
