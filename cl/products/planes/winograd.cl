/* Winograd's F(TILE x TILE, 3x3) over plane tiles, whose lanes are Winograd tiles side by side:
 * y = act(A' m A + b), m[p][k] = sum over c of u[p][k][c] v[p][c], v = B' x B.
 *
 *   planes_winograd_pack     u = G (w * a) G', packed [p][blocks of FILTERS][c][FILTERS], with
 *                            zeros for filters that there are not; then zeros, with which the
 *                            sums m begin; then b. a, b: as pack.cl has them
 *                            With TURNED for a data gradient, as there
 *   planes_winograd_inputs   v: [samples][p][c][v_plane], from p to p v_position
 *   planes_winograd_outputs  y, of m: [samples][p][k][m_plane], from p to p m_position, which
 *                            convolve.cl makes of v: POSITIONS groups
 *
 * All take g.rows rows of Winograd tiles from g.first on: a strip, for which v and m stay in
 * the caches. x, y, more: as convolve.cl; scratch: of a group, from g.scratch on. -D: TILE 2 or
 * 4; FILTERS, RELU, ADDS, NORM as there; TAPS_Y ... GAP_X: 1. Group ids: pack: block of
 * filters; others: 0: `each` channels or filters, 1: sample.
 */
#include "lib/real.cl"
#include "products/planes/args.h"
#include "lib/planes.cl"
#include "lib/winograd.cl"
#include "lib/finish.cl"
#include "products/planes/norm.cl"

/* --- weights ---------------------------------------------------------------------------- */

/* VECTOR filters from k on, of those `apart` in w, times `factor`. */
INLINE V load_filters(__global const real *w, int k, int filters, int apart, const real *factor)
{
    union {
        real lane[VECTOR];
        V all;
    } v;
    for (int i = 0; i < VECTOR; i++)
        v.lane[i] = i < FILTERS && k + i < filters ? w[(size_t)(k + i) * apart] * factor[i] : 0;
    return v.all;
}

/* Of w as they lie; with TURNED filters are channels of w, c its filters, taps turned round. */
#if TURNED
#define AT(r, s) w + (8 - ((r) * 3 + (s))) * channels + c, k, filters, 9 * channels, factor
#else
#define AT(r, s) w + ((size_t)c * 9 + (r) * 3 + (s)) * filters, k, filters, 1, factor
#endif

BODY void pack_block(__global const real *w, const real *factor, __global real *u,
                     size_t position, int channels, int filters, int k)
{
    for (int c = 0; c < channels; c++, u += FILTERS) {
        V t[SIDE][3];
        for (int s = 0; s < 3; s++) {
            V column[SIDE];
#define W(r) load_filters(AT(r, s))
            WINOGRAD_G(column, W);
#undef W
            for (int i = 0; i < SIDE; i++)
                t[i][s] = column[i];
        }
        for (int i = 0; i < SIDE; i++) {
            V row[SIDE];
#define W(s) t[i][s]
            WINOGRAD_G(row, W);
#undef W
            for (int j = 0; j < SIDE; j++)
                for (int l = 0; l < FILTERS; l++)
                    u[(i * SIDE + j) * position + l] = ((const real *)&row[j])[l];
        }
    }
}

KERNEL void planes_winograd_pack(__global const real *restrict w,
                                 __global const real *restrict bias,
                                 __global const real *restrict gamma,
                                 __global const real *restrict beta,
                                 __global const real *restrict mean,
                                 __global const real *restrict variance, real epsilon,
                                 __global real *restrict packed, int packed_first,
                                 int channels, int filters)
{
    const int blocks = get_num_groups(0), first = get_group_id(0) * FILTERS;
    const size_t position = (size_t)blocks * channels * FILTERS;
    packed += packed_first;
    __global real *zeros = packed + POSITIONS * position;
    __global real *shift = zeros + POSITIONS * blocks * FILTERS + first;
    real factor[FILTERS];
    for (int i = 0; i < FILTERS; i++) {
        factor[i] = fold_norm(min(first + i, filters - 1), bias, gamma, beta, mean, variance,
                              epsilon, shift + i);
        for (int p = 0; p < POSITIONS; p++)
            zeros[p * blocks * FILTERS + first + i] = 0;
    }
    pack_block(w, factor, packed + (size_t)get_group_id(0) * channels * FILTERS, position,
               channels, filters, first);
}

/* --- lanes ------------------------------------------------------------------------------ */

INLINE V evens(V a, V b)
{
    V v;
    v.lo = a.even;
    v.hi = b.even;
    return v;
}

INLINE V odds(V a, V b)
{
    V v;
    v.lo = a.odd;
    v.hi = b.odd;
    return v;
}

/* Columns 0 to TILE - 1 of VECTOR Winograd tiles side by side. */
INLINE void part_tiles(__global const real *row, V *column)
{
#if TILE == 4
    const V a = ROW_LOAD(row), b = ROW_LOAD(row + VECTOR), c = ROW_LOAD(row + 2 * VECTOR),
            d = ROW_LOAD(row + 3 * VECTOR);
    const V even = evens(a, b), more_even = evens(c, d), odd = odds(a, b),
            more_odd = odds(c, d);
    column[0] = evens(even, more_even);
    column[1] = evens(odd, more_odd);
    column[2] = odds(even, more_even);
    column[3] = odds(odd, more_odd);
#else
    const V a = ROW_LOAD(row), b = ROW_LOAD(row + VECTOR);
    column[0] = evens(a, b);
    column[1] = odds(a, b);
#endif
}

/* The other way: a row of TILE * VECTOR reals. */
INLINE void pair(V a, V b, V *first, V *second)
{
    first->even = a.lo;
    first->odd = b.lo;
    second->even = a.hi;
    second->odd = b.hi;
}

INLINE void join_tiles(const V *column, __global real *row)
{
    V a, b, c, d;
#if TILE == 4
    V even, more_even, odd, more_odd;
    pair(column[0], column[2], &even, &more_even);
    pair(column[1], column[3], &odd, &more_odd);
    pair(even, odd, &a, &b);
    pair(more_even, more_odd, &c, &d);
    ROW_STORE(row + 2 * VECTOR, c);
    ROW_STORE(row + 3 * VECTOR, d);
#else
    pair(column[0], column[1], &a, &b);
#endif
    ROW_STORE(row, a);
    ROW_STORE(row + VECTOR, b);
}

/* --- inputs ----------------------------------------------------------------------------- */

/* v of a row of Winograd tiles, whose inputs begin at x, rows `pitch` apart. */
INLINE void transform_row(__global const real *x, int pitch, __global real *v, size_t position,
                          int across)
{
    for (int t = 0; t < across; t += VECTOR) {
        V turned[SIDE][SIDE];
        UNROLL
        for (int i = 0; i < SIDE; i++) {
            V d[2 * TILE];
            part_tiles(x + i * pitch + t * TILE, d);
            part_tiles(x + i * pitch + t * TILE + TILE, d + TILE);
#define D(j) d[j]
            WINOGRAD_BT(turned[i], D);
#undef D
        }
        UNROLL
        for (int j = 0; j < SIDE; j++) {
            V o[SIDE];
#define D(i) turned[i][j]
            WINOGRAD_BT(o, D);
#undef D
            UNROLL
            for (int i = 0; i < SIDE; i++)
                ROW_STORE(v + (i * SIDE + j) * position + t, o[i]);
        }
    }
}

BODY void transform_channel(const struct lk_planes *a, const struct lk_plane_winograd *g,
                            __global const real *x, struct surroundings around,
                            __global real *scratch, __global real *v)
{
    arrange_copy(a, x, around, scratch, 0, 0);
    for (int i = 0; i < g->rows; i++)
        transform_row(scratch + i * TILE * a->out_w, a->out_w, v + i * g->across, g->v_position,
                      g->across);
}

KERNEL void planes_winograd_inputs(__global const real *x, int x_first,
                                   __global real *workspace, struct lk_planes a,
                                   struct lk_plane_winograd g, int channels,
                                   int each GROUP_ARGS)
{
    const int first = GROUP_ID(0) * each, sample = GROUP_ID(1);
    const size_t group = (size_t)sample * GROUP_COUNT(0) + GROUP_ID(0);
    __global real *scratch = workspace + g.scratch + group * g.scratch_each;
    __global real *v = workspace + g.v_first + (size_t)sample * POSITIONS * g.v_position;
    x += x_first;
    for (int c = first; c < min(first + each, channels); c++) {
        const size_t plane = (size_t)sample * channels + c;
        transform_channel(&a, &g, x + plane * a.in_vectors * VECTOR,
                          around(&a, plane, (size_t)GROUP_COUNT(1) * channels), scratch,
                          v + c * g.v_plane);
    }
}

/* --- outputs ---------------------------------------------------------------------------- */

/* A row of Winograd tiles: TILE rows of y, `pitch` apart, each ending in what no one reads. */
INLINE void restore_row(__global const real *m, size_t position, int across, real shift,
                        __global real *y, int pitch)
{
    for (int t = 0; t < across; t += VECTOR) {
        V s[TILE][SIDE];
        UNROLL
        for (int j = 0; j < SIDE; j++) {
            V column[TILE];
#define M(i) ROW_LOAD(m + ((i) * SIDE + j) * position + t)
            WINOGRAD_AT(column, M);
#undef M
            UNROLL
            for (int i = 0; i < TILE; i++)
                s[i][j] = column[i];
        }
        UNROLL
        for (int i = 0; i < TILE; i++) {
            V row[TILE];
#define M(j) s[i][j]
            WINOGRAD_AT(row, M);
#undef M
            UNROLL
            for (int j = 0; j < TILE; j++)
                row[j] += (V)shift;
            join_tiles(row, y + i * pitch + t * TILE);
        }
    }
}

/* The strip of a plane of y, by way of scratch: its rows apart, then one behind the other. */
BODY void restore_filter(const struct lk_planes *a, const struct lk_plane_winograd *g,
                         __global const real *m, real shift,
                         __global real *scratch, __global const V *more, __global V *y)
{
    const int pitch = g->width, width = a->in_w, begin = g->first * TILE;
    const int rows = min((int)g->rows * TILE, (int)a->in_h - begin);
    __global real *joined = scratch + (g->rows * TILE + 1) * pitch;
    for (int i = 0; i < g->rows; i++)
        restore_row(m + i * g->across, g->m_position, g->across, shift,
                    scratch + i * TILE * pitch, pitch);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < width; j += VECTOR)
            ROW_STORE(joined + i * width + j, ROW_LOAD(scratch + i * pitch + j));
    const int from = begin * width / VECTOR, count = (rows * width + VECTOR - 1) / VECTOR;
    for (int i = 0; i < count; i++)
        y[from + i] = finish(ROW_LOAD(joined + i * VECTOR), more + from + i);
}

KERNEL void planes_winograd_outputs(__global real *workspace, __global const real *packed,
                                    int packed_first, __global const V *more, __global V *y,
                                    int y_first, struct lk_planes a, struct lk_plane_winograd g,
                                    int filters, int each GROUP_ARGS)
{
    const int first = GROUP_ID(0) * each, sample = GROUP_ID(1);
    const size_t group = (size_t)sample * GROUP_COUNT(0) + GROUP_ID(0);
    packed += packed_first;
    __global real *scratch = workspace + g.scratch + group * g.scratch_each;
    __global const real *m =
        workspace + g.m_first + (size_t)sample * POSITIONS * g.m_position;
    for (int k = first; k < min(first + each, filters); k++) {
        const size_t to = ((size_t)sample * filters + k) * a.in_vectors;
        restore_filter(&a, &g, m + k * g.m_plane, packed[g.shift + k], scratch, more + to,
                       y + y_first / VECTOR + to);
    }
}
