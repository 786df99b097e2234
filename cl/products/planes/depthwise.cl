/* Depthwise convolution of images in plane tiles: y[c] = act(b[c] + sum over r, s of w[c,r,s]
 * x[c]), each x[c] as tap (r, s) sees it.
 *
 * x, y: [tiles][channels][vectors][VECTOR]; packed: pack.cl with blocks of 1; scratch: a.copy
 * reals of every group. Sums run over r, s. -D: as lib/planes.cl; RELU, ADDS as in convolve.cl;
 * COLUMNS 1 or 2: vectors of a row of y that are computed at a time. Group ids: 0: `each`
 * channels, 1: tile.
 *
 * A step reads STRIDE_Y rows of x for all the rows of y that see them, and one of these is
 * complete then: LIVE rows of sums are in registers. Rows are read where they lie. What a tap
 * sees beyond a row's ends, which is another row, is masked; rows beyond the plane are zeros.
 * What counts is the number of instructions: of 3x3 taps there are some 25 of a vector, 9 of
 * them sums.
 */
#include "lib/real.cl"
#include "products/planes/args.h"
#include "lib/planes.cl"
#include "lib/finish.cl"

#define TAPS (TAPS_Y * TAPS_X)
#define LIVE ((TAPS_Y - 1) * GAP_Y / STRIDE_Y + 1)
#if TAPS * COLUMNS <= 400
#define MANY_UNROLL UNROLL
#else
#define MANY_UNROLL ROLLED /* windows that would take minutes to compile */
#endif
#define WIDTH (COLUMNS * VECTOR)
/* Reals of x that are read from where the first tap of a row's first output is. */
#define READ (WIDTH * STRIDE_X + ((TAPS_X - 1) * GAP_X + VECTOR - 1) / VECTOR * VECTOR)

INLINE V finish_row(V sum, __global const real *more)
{
#if ADDS
    sum += ROW_LOAD(more);
#endif
    return activate(sum);
}

/* The first `count` reals of a vector of y: there is no room for the others. */
INLINE void finish_last(V sum, __global const real *more, __global real *y, int count)
{
#if ADDS
    union {
        V all;
        real lane[VECTOR];
    } added = {(V)0};
    for (int i = 0; i < count; i++)
        added.lane[i] = more[i];
    sum += added.all;
#endif
    store_first(y, activate(sum), count);
}

/* A row's WIDTH columns from real `at` of y on, as far as there is `room`. */
INLINE void put(const V *sum, __global const real *more, __global real *y, int at, int room)
{
    for (int j = 0; j < COLUMNS; j++) {
        const int to = at + j * VECTOR;
        if ((uint)at < (uint)max(room - WIDTH + 1, 0))
            ROW_STORE(y + to, finish_row(sum[j], more + to));
        else if (at >= 0)
            finish_last(sum[j], more + to, y + to, min(VECTOR, room - to));
    }
}

/* WIDTH columns of all rows of y, from `column` on. A row that is shorter is written with what
 * the next one overwrites. */
INLINE void convolve_columns(const struct lk_planes *a, __global const real *x, const real *w,
                             real shift, __global const real *more, __global const real *zeros,
                             __global real *y, int column)
{
    const int in_w = a->in_w, in_end = a->in_h * in_w;
    const int out_w = a->out_w, out_end = a->out_h * out_w, room = a->out_vectors * VECTOR;
    V sum[LIVE][COLUMNS]; /* of the row that was begun last, first */
    I first[TAPS_X], last[TAPS_X];
    UNROLL
    for (int s = 0; s < TAPS_X; s++) {
        first[s] = columns_seen(a, column, s);
        last[s] = columns_seen(a, column + WIDTH - VECTOR, s);
    }
    UNROLL
    for (int l = 0; l < LIVE; l++)
        UNROLL for (int j = 0; j < COLUMNS; j++) sum[l][j] = (V)shift;
    x += column * STRIDE_X - a->pad_x;
    int row = -a->pad_y * in_w;
    ROLLED
    for (int at = column - (LIVE - 1) * out_w; at < out_end; at += out_w) {
        UNROLL
        for (int p = 0; p < STRIDE_Y; p++, row += in_w) {
            __global const real *from = (uint)row < (uint)in_end ? x + row : zeros;
            UNROLL
            for (int j = 0; j < COLUMNS; j++) {
                V v[TAPS_X];
                UNROLL
                for (int s = 0; s < TAPS_X; s++) {
                    v[s] = load_tap(from + j * VECTOR * STRIDE_X, s);
                    v[s] = (j == 0 ? first[s] : last[s]) ? v[s] : (V)0;
                }
                MANY_UNROLL
                for (int l = 0; l < LIVE; l++) {
                    const int r = l * STRIDE_Y + p; /* in rows of x */
                    if (r % GAP_Y != 0 || r / GAP_Y >= TAPS_Y)
                        continue;
                    UNROLL
                    for (int s = 0; s < TAPS_X; s++)
                        sum[l][j] = FMA((V)w[r / GAP_Y * TAPS_X + s], v[s], sum[l][j]);
                }
            }
        }
        put(sum[LIVE - 1], more, y, at, room);
        UNROLL /* with a choice in it, or else LLVM takes it for a memmove() */
        for (int l = LIVE - 1; l >= 0; l--)
            UNROLL for (int j = 0; j < COLUMNS; j++)
                sum[l][j] = l > 0 ? sum[l - 1][j] : (V)shift;
    }
}

BODY void convolve(const struct lk_planes *a, __global const real *x,
                   __global const real *packed, real shift, __global const real *more,
                   __global const real *zeros, __global real *y)
{
    real w[TAPS];
    UNROLL
    for (int i = 0; i < TAPS; i++)
        w[i] = packed[i];
    for (int column = 0; column < a->out_w; column += WIDTH)
        convolve_columns(a, x, w, shift, more, zeros, y,
                         max(min(column, (int)a->out_w - WIDTH), 0));
}

/* A plane may be read before its beginning and behind its end, but not the first and the last
 * ones of x: these are copied. */
KERNEL void planes_depthwise(__global const real *x, int x_first, __global const real *packed,
                             int packed_first, __global const real *more, __global real *y,
                             __global real *scratch, int scratch_first, struct lk_planes a,
                             int channels, int each GROUP_ARGS)
{
    const int first = GROUP_ID(0) * each, tile = GROUP_ID(1);
    const size_t size = a.in_vectors * VECTOR, end = GROUP_COUNT(1) * channels * size;
    const size_t before = max((int)a.pad_x, 0), behind = max(-(int)a.pad_x, 0);
    const size_t reach = max(a.in_h - 1, 0) * a.in_w + behind + a.out_w * STRIDE_X + READ;
    x += x_first;
    packed += packed_first;
    __global real *zeros =
        scratch + scratch_first + (size_t)(tile * GROUP_COUNT(0) + GROUP_ID(0)) * a.copy;
    __global real *copy = zeros + READ + before;
    for (int i = 0; i < READ; i += VECTOR)
        ROW_STORE(zeros + i, (V)0);
    for (int c = first; c < min(first + each, channels); c++) {
        const size_t plane = (size_t)tile * channels + c, to = plane * a.out_vectors * VECTOR;
        __global const real *from = x + plane * size;
        if (plane * size < before || plane * size + reach > end) {
            for (int i = 0; i < a.in_vectors; i++)
                ROW_STORE(copy + i * VECTOR, ROW_LOAD(from + i * VECTOR));
            from = copy;
        }
        convolve(&a, from, packed + c * TAPS, packed[channels * TAPS + c], more + to, zeros,
                 y + to);
    }
}
