/* Convolution of images in plane tiles: y[k] = act(b[k] + sum over c, r, s of w[c,r,s,k] x[c]),
 * each x[c] as tap (r, s) sees it.
 *
 *   planes_arrange   arranged [tiles][all channels][TAPS_X][copy] of x: lib/planes.cl
 *   planes_convolve  y; x: arranged, or with one tap perhaps the image itself; w and b: packed
 *                    (pack.cl). With ADDS, act takes in `more` as well, which lies as y does
 *   planes_pool      y = the largest of 2x2 pixels of x; at: its number, unless null, 4 where a
 *                    relu, GATES, let nothing pass; 0 in dead lanes
 *
 * x, y: [tiles][all channels][vectors][VECTOR]. Sums run over c, r, s. -D: as lib/planes.cl;
 * FILTERS: of a block, whose sums are in registers; RELU, ADDS: finish.cl; LONE: 1 or 4 where
 * the last vector of planes may have no more pixels, as that of 7x7 and of 14x14 has; else 0.
 * Group ids: arrange: 0: column of taps, 1: channel, 2: tile; convolve: 0: run of blocks
 * of filters, 1: run of vectors, 2: group of a tile; pool: 0: channel, 1: tile.
 */
#include "lib/hints.cl"
#include "lib/real.cl"
#include "lib/range.cl"
#include "products/planes/args.h"
#include "lib/planes.cl"
#include "lib/finish.cl"

#ifndef LONE
#define LONE 0
#endif

KERNEL void planes_arrange(__global const real *x, int x_first, __global real *arranged,
                           int arranged_first, struct lk_planes a GROUP_ARGS)
{
    const int s = GROUP_ID(0);
    const size_t plane = GROUP_ID(2) * GROUP_COUNT(1) + GROUP_ID(1);
    arrange_copy(&a, x + x_first + plane * a.in_vectors * VECTOR,
                 around(&a, plane, (size_t)GROUP_COUNT(2) * GROUP_COUNT(1)),
                 arranged + arranged_first + plane * ARRANGED(&a) + s * a.copy, s, 0);
}

#define WEIGHTS_AHEAD 1024 /* reals: those of large layers come from memory */

#define BLOCK_ARGS                                                                             \
    const struct lk_plane_product *a, __global const real *x, __global const real *w,          \
        __global const real *shift, __global const V *more, __global V *y, int filters,        \
        int lone

/* The last pixels of a plane, up to LONE, alone in their vector: their sums for all filters
 * share PARTED vectors, so that they cost as many multiply-adds of a tap instead of FILTERS. */
#if LONE == 4
#define PARTED (FILTERS / 4)
typedef __attribute__((aligned(REAL_BYTES))) PASTE(REAL, 4) quarter;
typedef V F;
#define LOAD_QUARTER(p) (*(__global const quarter *)(p))
#define LOAD_FILTERS(p, part) LOAD_QUARTER((p) + 4 * (part)).s0000111122223333
#define LOAD_PIXELS(p) LOAD_QUARTER(p).s0123012301230123
#else
#define PARTED 1
#if LONE == 1
typedef __attribute__((aligned(REAL_BYTES))) PASTE(REAL, FILTERS) F;
#else
typedef real F;
#endif
#define LOAD_FILTERS(p, part) (*(__global const F *)(p))
#define LOAD_PIXELS(p) (F)(*(p))
#endif

INLINE void put_lone(const struct lk_plane_product *a, const F *sum, __global const V *more,
                     __global V *y, int filters)
{
#if LONE
    union {
        F all[PARTED];
        real of[FILTERS][LONE];
    } sums;
    for (int i = 0; i < PARTED; i++)
        sums.all[i] = sum[i];
    for (int i = 0; i < min(FILTERS, filters); i++) {
        union {
            real lane[VECTOR];
            V all;
        } v = {{0}};
        for (int j = 0; j < LONE; j++)
            v.lane[j] = sums.of[i][j];
        y[i * a->out_vectors] = finish(v.all, more + i * a->out_vectors);
    }
#endif
}

/* FILTERS x COUNT vectors of y, of which the first `filters` filters are there. With ALONE also
 * the pixels from `lone` reals behind the first on. */
#define BLOCK(COUNT, ALONE)                                                                    \
    {                                                                                          \
        V sum[FILTERS][COUNT];                                                                 \
        F alone[PARTED];                                                                       \
        UNROLL                                                                                 \
        for (int i = 0; i < PARTED; i++)                                                       \
            alone[i] = ALONE ? LOAD_FILTERS(shift, i) : (F)0;                                  \
        UNROLL                                                                                 \
        for (int i = 0; i < FILTERS; i++) {                                                    \
            UNROLL                                                                             \
            for (int j = 0; j < COUNT; j++)                                                    \
                sum[i][j] = (V)shift[i];                                                       \
        }                                                                                      \
        for (int c = 0; c < a->channels; c++, x += a->x_plane)                                 \
            for (int r = 0; r < TAPS_Y; r++) {                                                 \
                __global const real *row =                                                     \
                    x + r * GAP_Y % STRIDE_Y * a->phase + r * GAP_Y / STRIDE_Y * a->row;       \
                ROLLED /* else LLVM loads ahead, and has no registers left for the sums */     \
                for (int s = 0; s < TAPS_X; s++, w += FILTERS) {                               \
                    V v[COUNT];                                                                \
                    PREFETCH(w + WEIGHTS_AHEAD);                                               \
                    UNROLL                                                                     \
                    for (int j = 0; j < COUNT; j++)                                            \
                        v[j] = ROW_LOAD(row + s * a->copy + j * VECTOR);                       \
                    UNROLL                                                                     \
                    for (int i = 0; i < FILTERS; i++) {                                        \
                        const V factor = (V)w[i];                                              \
                        UNROLL                                                                 \
                        for (int j = 0; j < COUNT; j++)                                        \
                            sum[i][j] = FMA(factor, v[j], sum[i][j]);                          \
                    }                                                                          \
                    UNROLL                                                                     \
                    for (int i = 0; i < (ALONE ? PARTED : 0); i++)                             \
                        alone[i] = FMA(LOAD_FILTERS(w, i),                                     \
                                       LOAD_PIXELS(row + s * a->copy + lone), alone[i]);       \
                }                                                                              \
            }                                                                                  \
        UNROLL                                                                                 \
        for (int i = 0; i < FILTERS; i++) {                                                    \
            UNROLL                                                                             \
            for (int j = 0; j < COUNT; j++)                                                    \
                if (i < filters)                                                               \
                    y[i * a->out_vectors + j] =                                                \
                        finish(sum[i][j], more + i * a->out_vectors + j);                      \
        }                                                                                      \
        if (ALONE)                                                                             \
            put_lone(a, alone, more + lone / VECTOR, y + lone / VECTOR, filters);              \
    }

INLINE void block_1(BLOCK_ARGS) BLOCK(1, 0)
INLINE void block_2(BLOCK_ARGS) BLOCK(2, 0)
INLINE void block_3(BLOCK_ARGS) BLOCK(3, 0)
#if LONE
/* Vectors beside lone pixels: with 16 registers, which have blocks of 4 filters, the sums of
 * three would not fit. */
#define WITH_LONE (FILTERS == 8 ? 3 : 2)
INLINE void block_and_lone(BLOCK_ARGS) BLOCK(WITH_LONE, 1)
#endif
#define BLOCK_FROM(first, block)                                                               \
    block(a, x + (size_t)(first)*VECTOR, w, shift, more + (first), y + (first), filters, lone)

/* Vectors `first` to end - 1 of FILTERS planes, in blocks as even as can be. */
BODY void convolve(const struct lk_plane_product *a, __global const real *x,
                   __global const real *w, __global const real *shift, __global const V *more,
                   __global V *y, int first, int end, int filters)
{
    const int lone = (end - first - 1) * VECTOR;
#if LONE
    if (a->is_lone && end == a->out_vectors && end - first > WITH_LONE) {
        BLOCK_FROM(first, block_and_lone);
        first += WITH_LONE;
        end--;
    }
#endif
    for (int left = (end - first + 2) / 3; left > 0; left--) {
        const int count = (end - first + left - 1) / left;
        if (count == 1)
            BLOCK_FROM(first, block_1);
        else if (count == 2)
            BLOCK_FROM(first, block_2);
        else
            BLOCK_FROM(first, block_3);
        first += count;
    }
}

KERNEL void planes_convolve(__global const real *x, int x_first, __global const real *packed,
                            int packed_first, __global const V *more, __global V *y,
                            int y_first, struct lk_plane_product a RANGE_ARGS)
{
    x += x_first;
    y += y_first / VECTOR;
    packed += packed_first;
    const int blocks = (a.filters + FILTERS - 1) / FILTERS, panel_rows = a.channels * TAPS_Y;
    const size_t panel = (size_t)panel_rows * TAPS_X * FILTERS;
    const int first = GROUP_ID(1) * a.vectors_each;
    const bool is_last = GROUP_ID(1) == GROUP_COUNT(1) - 1; /* and has a lone vector as well */
    const int end = is_last ? a.out_vectors : first + a.vectors_each;
    const int group = GROUP_ID(2) % a.groups, from = GROUP_ID(0) * a.blocks_each;
    __global const real *shift = packed + a.groups * blocks * panel;
    x += (size_t)GROUP_ID(2) * a.x_group;
    y += (size_t)GROUP_ID(2) * (a.y_group / VECTOR);
    more += (size_t)GROUP_ID(2) * (a.y_group / VECTOR);
    const int last = min(from + GROUP_RANGE * (int)a.blocks_each, blocks);
    for (int b = from; b < last; b++) {
        const size_t block = (size_t)group * blocks + b;
        const size_t to = (size_t)b * FILTERS * a.out_vectors;
        convolve(&a, x, packed + block * panel, shift + block * FILTERS, more + to, y + to,
                 first, end, a.filters - b * FILTERS);
    }
}

/* The pixels of even and of odd columns of `count` pairs in a row. */
INLINE void part_pairs(__global const real *row, int count, V *even, V *odd)
{
    union {
        real lane[VECTOR];
        V all;
    } pixels[2] = {{{0}}};
#if VECTOR > 1
    if (count == VECTOR) {
        const V left = ROW_LOAD(row), right = ROW_LOAD(row + VECTOR);
        *even = evens(left, right);
        *odd = odds(left, right);
        return;
    }
#endif
    for (int i = 0; i < 2 * count; i++)
        pixels[i % 2].lane[i / 2] = row[i];
    *even = pixels[0].all;
    *odd = pixels[1].all;
}

/* The largest of each 2x2 pixels, the first of equal ones, NaN if one is; its number. */
INLINE V largest_of(__global const real *up, __global const real *down, int count, I *which)
{
    V of[4];
    part_pairs(up, count, &of[0], &of[1]);
    part_pairs(down, count, &of[2], &of[3]);
    V best = of[0];
    *which = 0;
    UNROLL
    for (int k = 1; k < 4; k++) {
        const I is_larger = !(of[k] <= best) & (best == best);
        best = is_larger ? of[k] : best;
        *which = is_larger ? (I)k : *which;
    }
#if RELU
    *which = best > (V)0 ? *which : (I)4;
#endif
    return best;
}

/* What a vector writes behind its row the next row overwrites, or zeros do; in `at` it stays,
 * and nobody reads it. */
KERNEL void planes_pool(__global const real *restrict x, int x_first, __global real *restrict y,
                        __global uchar *restrict at, int height, int width, int x_plane,
                        int y_plane GROUP_ARGS)
{
    const size_t plane = GROUP_ID(1) * GROUP_COUNT(0) + GROUP_ID(0);
    const int across = width / 2, pixels = height / 2 * across;
    x += x_first + plane * x_plane;
    y += plane * y_plane;
    at += at ? plane * y_plane : 0;
    for (int i = 0; i < height / 2; i++)
        for (int j = 0; j < across; j += VECTOR) {
            const int from = 2 * (i * width + j), to = i * across + j;
            const bool is_whole =
                from + width + 2 * VECTOR <= x_plane && to + VECTOR <= y_plane;
            const int count = is_whole ? VECTOR : across - j;
            I which;
            store_first(y + to, largest_of(x + from, x + from + width, count, &which), count);
            const union {
                B all;
                uchar lane[VECTOR];
            } numbers = {TO_B(which)};
            for (int l = 0; at && l < count; l++)
                at[to + l] = numbers.lane[l];
        }
    for (int p = pixels; p < y_plane; p++)
        y[p] = 0;
}
