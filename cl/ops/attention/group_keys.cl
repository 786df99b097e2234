/* attention_keys of attention.cl for GPUs: a work-group computes dk and dv of KEYS keys of a
 * head. It walks the queries, QUERIES at a time: warps compute blocks of p and leave them in
 * local memory; each adds its share of dv, for all keys; likewise ds and dk.
 *
 * -D names are those of group.cl, but KEYS is 8 or 4, and no more than there are, QUERIES a
 * multiple of BLOCK; there are 4 queries at least. Group ids: 0: KEYS keys; 1: head; 2: tile.
 */
#include "lib/real.cl"
#include "ops/attention/warps.cl"
#include "lib/random.cl"
#include "lib/steps.cl"
#include "ops/args.h"
#include "lib/drop.cl"
#include "ops/attention/weigh.cl"
#define TALL KEYS
#define OWNS_KEYS 1
#include "ops/attention/blocks.cl"
#include "ops/attention/gradients.cl"

/* Local memory: of lane 0 of key i and query u. */
#define SLOPE(i, u) (((i)*QUERIES + (u)) * PARTS)

/* Rows that are read: of keys from the work-group's first on, of queries from the first on. */
struct tensors {
    __global const S *q, *k, *v, *dy;
};

/* The place of the key that row r of a block is of: those before `first` are at the end, with
 * zeros. */
INLINE int place_of(int r, struct work work)
{
    const int place = r - (work.first - work.from);
    return place + (place < 0 ? KEYS : 0);
}

/* The weights of a block, from scores; those of queries that do not see its keys are 0. */
INLINE void put_weights(__local V *slopes, V s[TALL][COLUMNS], struct block at,
                        struct work work, struct kept kept, real scale, int t)
{
    const int first = t + at.column - at.skipped;
    __global const V *saved = kept.saved + first * 2 * PARTS;
    UNROLL for (int c = 0; c < COLUMNS; c++)
    {
        const int u = c - at.skipped + (c < at.skipped ? COLUMNS : 0), query = first + c;
        const I keys = keys_of(work.length, query);
        const I counts = counts_query(work.length, query) && c >= at.skipped;
        UNROLL for (int r = 0; r < TALL; r++)
        {
            const int key = work.from + r;
            const V p = weight_of(s[r][c], scale, saved + c * 2 * PARTS);
            slopes[SLOPE(place_of(r, work), at.column + u) + PART] =
                counts && key >= work.first && SEES(key, keys) ? p : (V)(0);
        }
    }
    ROLLED for (int e = 0; DROP && e < COLUMNS * (KEYS / 4); e++)
    {
        const int i = e / COLUMNS * 4, u = at.column + e % COLUMNS;
        mark_dropped(slopes + SLOPE(i, u) + PART, QUERIES * PARTS, work, t + u,
                     (work.first + i) / 4);
    }
}

/* ds of a block, from dy . v. */
INLINE void put_slopes(__local V *slopes, V s[TALL][COLUMNS], struct block at, struct work work,
                       struct kept kept, real keep, int t)
{
    __global const V *dots = kept.dots + (t + at.column - at.skipped) * PARTS;
    UNROLL for (int c = 0; c < COLUMNS; c++)
    {
        const int u = c - at.skipped + (c < at.skipped ? COLUMNS : 0);
        const V dot = dots[c * PARTS];
        UNROLL for (int r = 0; r < TALL; r++)
        {
            __local V *slope = slopes + SLOPE(place_of(r, work), at.column + u) + PART;
            *slope = slope_of(*slope, s[r][c], dot, keep);
        }
    }
}

/* p, or ds, of queries t .. t + QUERIES - 1. */
INLINE void put_blocks(__local V *slopes, const int slope, struct work work, struct kept kept,
                       struct tensors x, real factor, int t, int queries)
{
    for (int b = WARP; b < QUERIES / COLUMNS; b += WARPS) {
        const struct block at = block_at(b, QUERIES, t, queries);
        const size_t query = t + at.column - at.skipped;
        V s[TALL][COLUMNS];
        if (t + at.column >= work.end) {
            put_zeros(slopes + SLOPE(0, at.column) + PART, QUERIES * PARTS);
        } else if (slope) {
            multiply(s, x.v, V_ROW * PARTS, x.dy + query * HEADS * VALUES * PARTS,
                     HEADS * VALUES * PARTS, VALUES);
            put_slopes(slopes, s, at, work, kept, factor, t);
        } else {
            multiply(s, x.k, K_ROW * PARTS, x.q + query * Q_ROW * PARTS, Q_ROW * PARTS, DIM);
            put_weights(slopes, s, at, work, kept, factor, t);
        }
    }
}

/* sums[key] += sum_u slopes[key][u] z[t + u], of a work-group's keys and QUERIES queries. */
INLINE void add_queries(V *sums, struct weights slopes, struct walk walk, int end)
{
    const int begin = walk.from;
    ROLLED for (int b = 0; b < QUERIES && begin + b < end; b += BLOCK)
    {
        walk.from = begin + b;
        add_rows(sums, slopes, walk);
        slopes.first += BLOCK * PARTS;
    }
}

INLINE void write_keys(__global S *to, const V *sums, struct work work, const int apart,
                       const int n, real factor, const struct lk_attention *a)
{
    UNROLL for (int i = 0; i < KEYS; i++)
    {
        const int key = work.first + i;
        if (key < a->keys)
            write_share(to + (size_t)i * apart, sums + i * SHARE(n), n, (V)(factor),
                        (I)(key) < work.length);
    }
}

GROUP_KERNEL void attention_group_keys(
    __global const S *restrict q, __global const S *restrict k, __global const S *restrict v,
    __global const int *restrict lengths, __global const S *restrict dy,
    __global const V *restrict saved, __global V *restrict dots, __global S *restrict dk,
    __global S *restrict dv, real scale, real keep, struct lk_attention a, struct lk_drop drop)
{
    __local V slopes[KEYS * QUERIES * PARTS];
    const struct work work = work_here(lengths, &a, drop);
    const struct kept kept = kept_of(work, saved, dots, &a);
    const int tile = work.at.tile, head = work.at.head;
    const int k_at = a.k_at + head * DIM, v_at = a.v_at + head * VALUES;
    const struct tensors x = {row_of(q, tile, a.queries, 0, Q_ROW, head * DIM),
                              row_of(k, tile, a.keys, work.from, K_ROW, k_at),
                              row_of(v, tile, a.keys, work.from, V_ROW, v_at),
                              row_of(dy, tile, a.queries, 0, HEADS * VALUES, head * VALUES)};
    V of_k[KEYS * SHARE(DIM)], of_v[KEYS * SHARE(VALUES)];
    clear(of_k, KEYS * SHARE(DIM));
    clear(of_v, KEYS * SHARE(VALUES));
    for (int t = CAUSAL ? work.first : 0; t < work.end; t += QUERIES) {
        put_blocks(slopes, 0, work, kept, x, scale, t, a.queries);
        TOGETHER;
        if (dv)
            add_queries(of_v, (struct weights){slopes + PART, KEYS, QUERIES * PARTS, DROP},
                        (struct walk){x.dy, HEADS * VALUES * PARTS, VALUES, t, a.queries - 1,
                                      work.length, SELF && LENGTHS},
                        work.end);
        TOGETHER;
        put_blocks(slopes, 1, work, kept, x, keep, t, a.queries);
        TOGETHER;
        if (dk)
            add_queries(of_k, (struct weights){slopes + PART, KEYS, QUERIES * PARTS, 0},
                        (struct walk){x.q, Q_ROW * PARTS, DIM, t, a.queries - 1, work.length,
                                      SELF && LENGTHS},
                        work.end);
        TOGETHER;
    }
    const size_t step = (size_t)tile * a.keys + work.first;
    if (dk)
        write_keys(dk + (step * K_ROW + k_at) * PARTS + PART, of_k, work, K_ROW * PARTS, DIM,
                   scale, &a);
    if (dv)
        write_keys(dv + (step * V_ROW + v_at) * PARTS + PART, of_v, work, V_ROW * PARTS, VALUES,
                   keep, &a);
}
