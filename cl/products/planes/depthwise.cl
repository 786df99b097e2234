/* Depthwise convolution of images in plane tiles: y[c] = act(b[c] + sum over r, s of w[c,r,s]
 * x[c]), each x[c] as tap (r, s) sees it.
 *
 * x, y: [tiles][channels][vectors][VECTOR]; packed: pack.cl with blocks of 1; scratch: for
 * every group a plane with its edges, [rows][STRIDE_X][copy], which stays in its caches: column
 * x is number (x + pad) / STRIDE_X of every STRIDE_X-th, so that neighbouring outputs read
 * neighbours. Sums run over r, s. -D: as lib/planes.cl; RELU, ADDS as in convolve.cl; ROWS: of
 * outputs whose sums are in registers, which share what they read. Group ids: 0: `each`
 * channels, 1: tile.
 */
#include "lib/real.cl"
#include "products/planes/args.h"
#include "lib/planes.cl"
#include "lib/finish.cl"

#define TAPS (TAPS_Y * TAPS_X)
#define PITCH(a) (STRIDE_X * (a)->copy)
#define REACH ((ROWS - 1) * STRIDE_Y + (TAPS_Y - 1) * GAP_Y + 1) /* rows that ROWS rows read */

/* VECTOR columns from `column` on. What is written behind them is zero, and overwritten by what
 * comes next in this row. */
INLINE void put_columns(const struct lk_planes *a, V v, __global real *row, int column)
{
#if STRIDE_X == 1
    ROW_STORE(row + column + a->pad_x, v);
#elif STRIDE_X == 2 && VECTOR > 1
    const int at = column + a->pad_x;
    V even = (V)0, odd = (V)0;
    even.lo = v.even;
    odd.lo = v.odd;
    ROW_STORE(row + at % 2 * a->copy + at / 2, even);
    ROW_STORE(row + (at + 1) % 2 * a->copy + (at + 1) / 2, odd);
#else
    union {
        V all;
        real lane[VECTOR];
    } lanes = {v};
    for (int i = 0; i < VECTOR; i++) {
        const int at = column + i + a->pad_x;
        row[at % STRIDE_X * a->copy + at / STRIDE_X] = lanes.lane[i];
    }
#endif
}

/* The first `count` reals from x on, then zeros. */
INLINE V load_first(__global const real *x, int count)
{
    union {
        real lane[VECTOR];
        V all;
    } v;
    for (int i = 0; i < VECTOR; i++)
        v.lane[i] = i < count ? x[i] : 0;
    return v.all;
}

/* As load_first() where all VECTOR reals may be read. */
INLINE V keep_first(V v, int count)
{
    union {
        real lane[VECTOR];
        V all;
    } lane;
    UNROLL
    for (int i = 0; i < VECTOR; i++)
        lane.lane[i] = i;
    return lane.all < (V)count ? v : (V)0;
}

/* All that copy_plane() leaves alone, and perhaps more. */
INLINE void clear_edges(const struct lk_planes *a, __global real *to)
{
    const int begin = (a->pad_x + STRIDE_X - 1) / STRIDE_X;
    for (int i = 0; i < a->rows * STRIDE_X; i++, to += a->copy) {
        const int y = i / STRIDE_X - a->pad_y;
        const int end = y < 0 || y >= a->in_h ? 0 : (a->in_w + a->pad_x) / STRIDE_X;
        for (int j = 0; j < begin; j += VECTOR)
            ROW_STORE(to + j, (V)0);
        for (int j = a->copy - VECTOR; j + VECTOR > end; j -= VECTOR)
            ROW_STORE(to + j, (V)0);
    }
}

INLINE void copy_plane(const struct lk_planes *a, __global const real *x, __global real *to)
{
    const int width = a->in_w, end = a->in_vectors * VECTOR;
    to += a->pad_y * PITCH(a);
    for (int y = 0; y < a->in_h; y++, to += PITCH(a)) {
        __global const real *row = x + y * width;
        if (width < VECTOR) {
            put_columns(a,
                        y * width + VECTOR <= end ? keep_first(ROW_LOAD(row), width)
                                                  : load_first(row, width),
                        to, 0);
            continue;
        }
        for (int j = 0; j + VECTOR <= width; j += VECTOR)
            put_columns(a, ROW_LOAD(row + j), to, j);
        if (width % VECTOR > 0)
            put_columns(a, ROW_LOAD(row + width - VECTOR), to, width - VECTOR);
    }
}

/* Writes y from real `at` of the plane on, as much of it as there is room for. */
INLINE void put_outputs(const struct lk_planes *a, V sum, __global const real *more,
                        __global real *y, int at)
{
    const int count = a->out_vectors * VECTOR - at;
    union {
        V all;
        real lane[VECTOR];
    } last;
#if ADDS
    sum += count < VECTOR ? load_first(more + at, count) : ROW_LOAD(more + at);
#endif
    last.all = activate(sum);
    if (count >= VECTOR)
        ROW_STORE(y + at, last.all);
    else
        for (int i = 0; i < count; i++)
            y[at + i] = last.lane[i];
}

/* VECTOR columns from `column` on of ROWS rows from `row` on, of which `rows` are there. */
INLINE void convolve_rows(const struct lk_planes *a, __global const real *x, const real *w,
                          real shift, __global const real *more, __global real *y, int row,
                          int column, int rows)
{
    V sum[ROWS];
    UNROLL
    for (int i = 0; i < ROWS; i++)
        sum[i] = (V)shift;
    x += row * STRIDE_Y * PITCH(a) + column;
#if REACH * TAPS_X <= 96
    UNROLL
#endif
    for (int k = 0; k < REACH; k++) {
        UNROLL
        for (int s = 0; s < TAPS_X; s++) {
            const V v = ROW_LOAD(x + k * PITCH(a) + s * GAP_X % STRIDE_X * a->copy +
                                 s * GAP_X / STRIDE_X);
            UNROLL
            for (int i = 0; i < ROWS; i++) {
                const int r = k - i * STRIDE_Y;
                if (r >= 0 && r % GAP_Y == 0 && r / GAP_Y < TAPS_Y)
                    sum[i] = FMA((V)w[r / GAP_Y * TAPS_X + s], v, sum[i]);
            }
        }
    }
    UNROLL
    for (int i = 0; i < ROWS; i++)
        if (i < rows)
            put_outputs(a, sum[i], more, y, (row + i) * a->out_w + column);
}

/* Rows from the first to the last, since a row of less than a vector is written with what the
 * next one overwrites. */
BODY void convolve(const struct lk_planes *a, __global const real *x,
                   __global const real *packed, real shift, __global const real *more,
                   __global real *scratch, __global real *y)
{
    const int width = a->out_w;
    real w[TAPS];
    UNROLL
    for (int i = 0; i < TAPS; i++)
        w[i] = packed[i];
    copy_plane(a, x, scratch);
    for (int row = 0; row < a->out_h; row += ROWS) {
        const int rows = min(ROWS, (int)a->out_h - row);
        int column = 0;
        for (; column + VECTOR <= width; column += VECTOR)
            convolve_rows(a, scratch, w, shift, more, y, row, column, rows);
        if (column < width)
            convolve_rows(a, scratch, w, shift, more, y, row, max(width - VECTOR, 0), rows);
    }
}

KERNEL void planes_depthwise(__global const real *x, int x_first, __global const real *packed,
                             int packed_first, __global const real *more, __global real *y,
                             __global real *scratch, int scratch_first, struct lk_planes a,
                             int channels, int each GROUP_ARGS)
{
    const int first = GROUP_ID(0) * each, tile = GROUP_ID(1);
    x += x_first;
    packed += packed_first;
    scratch += scratch_first;
    scratch += (size_t)(tile * GROUP_COUNT(0) + GROUP_ID(0)) * a.rows * PITCH(&a);
    clear_edges(&a, scratch);
    for (int c = first; c < min(first + each, channels); c++) {
        const size_t plane = (size_t)tile * channels + c, to = plane * a.out_vectors * VECTOR;
        convolve(&a, x + plane * a.in_vectors * VECTOR, packed + c * TAPS,
                 packed[channels * TAPS + c], more + to, scratch, y + to);
    }
}
