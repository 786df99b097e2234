/* Weights in the order in which conv2d_gather reads them:
 *
 *   to[g][b][n][r][s][i] = w[first + g*group_stride + (b*block + i)*out_stride + n*in_stride
 *                            + r*row_stride + s*column_stride], or 0 where b*block + i >= outs
 *
 * Forward: n is a channel of the group, b*block + i a filter. Data gradient: the other way
 * round, taps in descending order.
 *
 * On CPUs, where blocks are half a vector and outs or ins lie next to each other, whole vectors
 * are read: several blocks at once, or two blocks of as many ins, transposed.
 *
 * Group ids: 0: run of blocks_each blocks, 1: g, 2: run of ins_each ins. Work-items: n.
 */
#include "lib/hints.cl"
#include "lib/real.cl"
#include "products/direct/args.h"
#if VECTOR > 1
#include "lib/transpose.cl"
#endif

struct weights {
    __global const real *w; /* of the group: block 0, in 0, first tap */
    __global real *to;
    int block, outs, ins, rows, columns, out_stride, in_stride, row_stride, column_stride;
};

INLINE __global const real *from_at(const struct weights *s, int b, int n, int y, int x)
{
    return s->w + (size_t)b * s->block * s->out_stride + (size_t)n * s->in_stride +
           y * s->row_stride + x * s->column_stride;
}

INLINE __global real *to_at(const struct weights *s, int b, int n, int y, int x)
{
    return s->to +
           (((size_t)b * s->ins + n) * (s->rows * s->columns) + y * s->columns + x) * s->block;
}

#define EACH_TAP(s, y, x)                                                                      \
    for (int y = 0; y < (s)->rows; y++)                                                        \
        for (int x = 0; x < (s)->columns; x++)

/* Blocks b0 to b1 of ins from n0 to n1. */
INLINE void copy_each(const struct weights *s, int b0, int b1, int n0, int n1)
{
    for (int b = b0; b < b1; b++)
        for (int n = n0 + PART; n < n1; n += PARTS)
            EACH_TAP(s, y, x) {
                __global const real *from = from_at(s, b, n, y, x);
                __global real *to = to_at(s, b, n, y, x);
                for (int i = 0; i < s->block; i++)
                    to[i] = b * s->block + i < s->outs ? from[i * s->out_stride] : (real)0;
            }
}

#if VECTOR > 1
#define HALF (VECTOR / 2)
#if VECTOR == 16
#define LOAD_HALF vload8
#define JOIN(a, b) (V)(a, b)
#define STORE_HALF vstore8
#elif VECTOR == 8
#define LOAD_HALF vload4
#define JOIN(a, b) (V)(a, b)
#define STORE_HALF vstore4
#else
#define LOAD_HALF vload2
#define JOIN(a, b) (V)((a).x, (a).y, (b).x, (b).y) /* Oclgrind ends at the other */
#define STORE_HALF vstore2
#endif
#define STORE_BOTH PASTE(vstore, VECTOR)
#define AHEAD 16                      /* rows that are fetched before they are copied */
#define LINE (64 / (int)sizeof(real)) /* of a cache */

/* Outs lie next to each other: whole blocks b0 to b1. The taps of all ins are rows of outs; two
 * of them make a line of a cache, which half as wide would be written twice. Rows are far from
 * each other: no processor guesses which one comes next. */
INLINE void copy_blocks(const struct weights *s, int b0, int b1, int n0, int n1)
{
    const int taps = s->rows * s->columns, rows = (n1 - n0) * taps, stride = s->column_stride;
    const size_t next = (size_t)s->ins * taps * HALF;
    __global const real *from = from_at(s, b0, n0, 0, 0);
    __global real *to = to_at(s, b0, n0, 0, 0);
    for (int r = 0; r + 1 < rows; r += 2, from += 2 * stride, to += VECTOR) {
        const int ahead = min(AHEAD, rows - 2 - r) * stride;
        for (int i = 0; i < (b1 - b0) * HALF; i += LINE) {
            PREFETCH(from + ahead + i);
            PREFETCH(from + ahead + stride + i);
        }
        for (int b = 0; b < b1 - b0; b++)
            STORE_BOTH(JOIN(LOAD_HALF(b, from), LOAD_HALF(b, from + stride)), 0, to + b * next);
    }
    if (rows % 2 == 1)
        for (int b = 0; b < b1 - b0; b++)
            STORE_HALF(LOAD_HALF(b, from), 0, to + b * next);
}

/* Ins lie next to each other: whole blocks b and b + 1, VECTOR ins from n on. Of single taps
 * two ins make a line again. */
INLINE void copy_transposed(const struct weights *s, int b, int n, int y, int x)
{
    const int next = s->rows * s->columns * HALF;
    __global const real *from = from_at(s, b, n, y, x);
    __global real *to = to_at(s, b, n, y, x), *then = to_at(s, b + 1, n, y, x);
    V t[VECTOR];
    const int ahead = min(4 * VECTOR, s->ins - VECTOR - n);
    UNROLL for (int i = 0; i < VECTOR; i++) {
        t[i] = PASTE(vload, VECTOR)(0, from + (size_t)i * s->out_stride);
        PREFETCH(from + (size_t)i * s->out_stride + ahead);
    }
    transpose(t);
    if (next == HALF)
        UNROLL for (int i = 0; i < VECTOR; i += 2) {
            STORE_BOTH(JOIN(t[i].lo, t[i + 1].lo), 0, to + i * HALF);
            STORE_BOTH(JOIN(t[i].hi, t[i + 1].hi), 0, then + i * HALF);
        }
    else
        UNROLL for (int i = 0; i < VECTOR; i++) {
            STORE_HALF(t[i].lo, 0, to + i * next);
            STORE_HALF(t[i].hi, 0, then + i * next);
        }
}

INLINE void copy_pairs(const struct weights *s, int b0, int b1, int n0, int n1)
{
    for (int b = b0; b < b1; b += 2)
        for (int n = n0; n < n1; n += VECTOR)
            EACH_TAP(s, y, x)
                copy_transposed(s, b, n, y, x);
}
#endif

BODY void pack_group(struct weights s, int b0, int b1, int n0, int n1)
{
#if VECTOR > 1
    const int whole = max(b0, min(b1, s.outs / s.block)), pairs = b0 + (whole - b0) / 2 * 2;
    const int vectors = n0 + (n1 - n0) / VECTOR * VECTOR;
    const bool are_rows = s.out_stride == 1 && s.row_stride == s.columns * s.column_stride &&
                          s.in_stride == s.rows * s.row_stride;
    if (s.block == HALF && are_rows) {
        copy_blocks(&s, b0, whole, n0, n1);
        b0 = whole;
    } else if (s.block == HALF && s.in_stride == 1) {
        copy_pairs(&s, b0, pairs, n0, vectors);
        copy_each(&s, b0, pairs, vectors, n1);
        b0 = pairs;
    }
#endif
    copy_each(&s, b0, b1, n0, n1);
}

KERNEL void conv2d_pack(__global const real *restrict w, __global real *restrict to,
                        int to_first, struct lk_pack a)
{
    const int g = get_group_id(1), blocks = (a.outs + a.block - 1) / a.block;
    const int taps = a.rows * a.columns;
    const struct weights s = {w + g * a.group_stride + a.first,
                              to + to_first + (size_t)g * blocks * a.ins * taps * a.block,
                              a.block, a.outs, a.ins, a.rows, a.columns, a.out_stride,
                              a.in_stride, a.row_stride, a.column_stride};
    const int b0 = get_group_id(0) * a.blocks_each, n0 = get_group_id(2) * a.ins_each;
    pack_group(s, b0, min(b0 + a.blocks_each, blocks), n0, min(n0 + a.ins_each, a.ins));
}
