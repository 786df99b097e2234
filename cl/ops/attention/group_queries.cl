/* attention_queries of attention.cl for GPUs: a work-group computes dq of QUERIES queries of a
 * head, and their dots. It walks the keys, KEYS at a time: warps compute blocks of p, then of
 * ds, and leave them in local memory; each sums up its share of dq, for all queries.
 *
 * -D names and group ids are those of group.cl.
 */
#include "lib/real.cl"
#include "ops/attention/warps.cl"
#include "lib/random.cl"
#include "lib/steps.cl"
#include "ops/args.h"
#include "lib/drop.cl"
#include "ops/attention/weigh.cl"
#define TALL (QUERIES < 8 ? QUERIES : 8)
#define OWNS_KEYS 0
#include "ops/attention/blocks.cl"
#include "ops/attention/gradients.cl"

#define SLOPE(i, u) (((i)*KEYS + (u)) * PARTS)

/* Rows that are read: of queries from the work-group's first on, of keys from the first on. */
struct tensors {
    __global const S *q, *k, *v, *dy;
};

/* dy . y of a query each, in turns. */
INLINE void put_dots(__local V *dots, __global V *left, struct work work, __global const S *dy,
                     __global const S *y)
{
    for (int i = WARP; i < QUERIES; i += WARPS) {
        const size_t row = (size_t)i * HEADS * VALUES * PARTS;
        V sum = (V)(0);
        LOOP(8)
        for (int d = 0; d < VALUES; d++)
            sum = FMA(LOAD(dy + row + d * PARTS), LOAD(y + row + d * PARTS), sum);
        dots[i * PARTS + PART] = sum;
        if (work.from + i >= work.first)
            left[(work.from + i) * PARTS + PART] = sum;
    }
}

/* The weights of a block, from scores; those of keys that its queries do not see are 0. */
INLINE void put_weights(__local V *slopes, V s[TALL][COLUMNS], struct block at,
                        struct work work, struct kept kept, real scale, int j)
{
    __global const V *saved = kept.saved + (work.from + at.row) * 2 * PARTS;
    UNROLL for (int r = 0; r < TALL; r++)
    {
        const int t = work.from + at.row + r;
        const I keys = keys_of(work.length, t);
        UNROLL for (int c = 0; c < COLUMNS; c++)
        {
            const int u = c - at.skipped + (c < at.skipped ? COLUMNS : 0);
            const V p = weight_of(s[r][c], scale, saved + r * 2 * PARTS);
            slopes[SLOPE(at.row + r, at.column + u) + PART] =
                c >= at.skipped && SEES(j + at.column + u, keys) ? p : (V)(0);
        }
    }
    ROLLED for (int r = 0; DROP && r < TALL; r++)
        mark_dropped(slopes + SLOPE(at.row + r, at.column) + PART, PARTS, work,
                     work.from + at.row + r, (j + at.column) / 4);
}

/* ds of a block, from dy . v. */
INLINE void put_slopes(__local V *slopes, V s[TALL][COLUMNS], struct block at,
                       const __local V *dots, real keep)
{
    UNROLL for (int r = 0; r < TALL; r++)
    {
        const V dot = dots[(at.row + r) * PARTS + PART];
        UNROLL for (int c = 0; c < COLUMNS; c++)
        {
            const int u = c - at.skipped + (c < at.skipped ? COLUMNS : 0);
            __local V *slope = slopes + SLOPE(at.row + r, at.column + u) + PART;
            *slope = slope_of(*slope, s[r][c], dot, keep);
        }
    }
}

/* ds of keys j .. j + KEYS - 1. */
INLINE void put_blocks(__local V *slopes, const __local V *dots, struct work work,
                       struct kept kept, struct tensors x, real scale, real keep, int j,
                       int keys)
{
    for (int b = WARP; b < QUERIES / TALL * (KEYS / COLUMNS); b += WARPS) {
        const struct block at = block_at(b, KEYS, j, keys);
        const size_t key = j + at.column - at.skipped;
        V s[TALL][COLUMNS];
        const int is_seen =
            j + at.column < (CAUSAL ? min(work.end, work.from + at.row + TALL) : work.end);
        if (is_seen) {
            multiply(s, x.q + (size_t)at.row * Q_ROW * PARTS, Q_ROW * PARTS,
                     x.k + key * K_ROW * PARTS, K_ROW * PARTS, DIM);
            put_weights(slopes, s, at, work, kept, scale, j);
            multiply(s, x.dy + (size_t)at.row * HEADS * VALUES * PARTS, HEADS * VALUES * PARTS,
                     x.v + key * V_ROW * PARTS, V_ROW * PARTS, VALUES);
            put_slopes(slopes, s, at, dots, keep);
        } else
            put_zeros(slopes + SLOPE(at.row, at.column) + PART, KEYS * PARTS);
    }
}

GROUP_KERNEL void attention_group_queries(
    __global const S *restrict q, __global const S *restrict k, __global const S *restrict v,
    __global const int *restrict lengths, __global const S *restrict y,
    __global const S *restrict dy, __global const V *restrict saved, __global V *restrict dots,
    __global S *restrict dq, real scale, real keep, struct lk_attention a, struct lk_drop drop)
{
    __local V slopes[QUERIES * KEYS * PARTS], dots_here[QUERIES * PARTS];
    const struct work work = work_here(lengths, &a, drop);
    const struct kept kept = kept_of(work, saved, dots, &a);
    const int tile = work.at.tile, head = work.at.head;
    const struct tensors x = {
        row_of(q, tile, a.queries, work.from, Q_ROW, head * DIM),
        row_of(k, tile, a.keys, 0, K_ROW, a.k_at + head * DIM),
        row_of(v, tile, a.keys, 0, V_ROW, a.v_at + head * VALUES),
        row_of(dy, tile, a.queries, work.from, HEADS * VALUES, head * VALUES)};
    V sums[QUERIES * SHARE(DIM)];
    clear(sums, QUERIES * SHARE(DIM));
    put_dots(dots_here, dots + first_query(work, &a), work, x.dy,
             row_of(y, tile, a.queries, work.from, HEADS * VALUES, head * VALUES));
    TOGETHER;
    for (int j = 0; dq && j < work.end; j += KEYS) {
        put_blocks(slopes, dots_here, work, kept, x, scale, keep, j, a.keys);
        TOGETHER;
        ROLLED for (int b = 0; b < KEYS && j + b < work.end; b += BLOCK) add_rows(
            sums, (struct weights){slopes + b * PARTS + PART, QUERIES, KEYS * PARTS, 0},
            (struct walk){x.k, K_ROW * PARTS, DIM, j + b, a.keys - 1, work.length, LENGTHS});
        TOGETHER;
    }
    if (!dq)
        return;
    dq += (((size_t)tile * a.queries + work.from) * Q_ROW + head * DIM) * PARTS + PART;
    UNROLL for (int i = 0; i < QUERIES; i++)
    {
        if (work.from + i >= work.first)
            write_share(dq + (size_t)i * Q_ROW * PARTS, sums + i * SHARE(DIM), DIM, (V)(scale),
                        counts_query(work.length, work.from + i));
    }
}
