/* The gradients of attention, as attention.cl has them: what the kernels are given, their group
 * ids and -D names stand there. attention_queries comes first, since attention_keys reads the
 * dots that it leaves; attention_all stands for both.
 */
#include "lib/real.cl"
#include "lib/random.cl"
#include "lib/steps.cl"
#include "lib/hints.cl"
#include "ops/args.h"
#include "lib/drop.cl"
#include "ops/attention/weigh.cl"
#include "ops/attention/rows.cl"

/* Numbers of a slice: of dq, of dk, of dv. */
#define SLICE (DIM / SLICES)
#define KEY_SLICE (DIM / KEY_SLICES)
#define VALUE_SLICE (VALUES / KEY_SLICES)

/* What the kernels of backward read: the rows of the head, and of each query of the head what
 * forward and attention_queries have left. */
struct head {
    struct rows q, k, v, dy;
    __global const V *saved;
    __global V *dots;
    I length;
    struct span span;
    real keep;
};

INLINE struct head head_of(struct ids at, __global const S *q, __global const S *k,
                           __global const S *v, __global const S *dy, __global const V *saved,
                           __global V *dots, __global const int *lengths, real keep,
                           const struct lk_attention *a)
{
    const size_t row = ((size_t)at.tile * a->heads + at.head) * a->queries;
    struct head h;
    h.q = rows_of(q, at.tile, a->queries, a->q_row, at.head * DIM);
    h.k = rows_of(k, at.tile, a->keys, a->k_row, a->k_at + at.head * DIM);
    h.v = rows_of(v, at.tile, a->keys, a->v_row, a->v_at + at.head * VALUES);
    h.dy = rows_of(dy, at.tile, a->queries, a->heads * VALUES, at.head * VALUES);
    h.saved = saved + row * 2 * PARTS + PART;
    h.dots = dots + row * PARTS + PART;
    h.keep = keep;
    h.length = valid_steps_here(lengths, at.tile, a->keys);
    h.span = span_of(h.length, a->keys);
    return h;
}

/* Of query t: dy . y. */
INLINE V dot_of(struct rows dy, struct rows y, int t)
{
    V sum = (V)(0);
    for (int d = 0; d < VALUES; d++)
        sum = FMA(LOAD(dy.first + t * dy.apart + d * PARTS),
                  LOAD(y.first + t * y.apart + d * PARTS), sum);
    return sum;
}

BODY void query_rows(struct ids at, struct head h, struct rows y, __global S *dq, real scale,
                     const struct lk_attention *a)
{
    const int last = a->queries - 1,
              end = CAUSAL ? min(h.span.most, at.from + SETS * ROWS) : h.span.most;
    V kept_x[KEPT(DIM)], kept_g[KEPT(VALUES)], dx[SETS * ROWS * SLICE];
    V w[SETS * W_SET], dw[SETS * W_SET], dot[SETS * ROWS];
    const struct own x = own_rows(kept_x, DIM, h.q, at.from, last);
    const struct own g = own_rows(kept_g, VALUES, h.dy, at.from, last);
    for (int i = 0; i < x.sets * ROWS; i++)
        dot[i] = dot_of(h.dy, y, min(at.from + i, last));
    for (int i = 0; i < x.sets * ROWS * SLICE; i++)
        dx[i] = (V)(0);
    for (int j = 0; dq && j < end; j += BLOCK) {
        const int all = min(BLOCK, end - j);
        const struct block block = {
            h.k, j, all, h.length, j + all > h.span.least, NO_SKIPS, at.from + ROWS - j};
        multiply(w, x, DIM, block);
        multiply(dw, g, VALUES, block_of(block, h.v));
        for (int i = 0; i < x.sets * ROWS; i++) {
            const int t = min(at.from + i, last), of = i / ROWS * W_SET + i % ROWS;
            const int count = end_of(block, i / ROWS);
            const V most = h.saved[t * 2 * PARTS], root = h.saved[(t * 2 + 1) * PARTS];
            const I keys = keys_of(h.length, t);
            drop_keys(dw + of, at, t, j, count);
            for (int u = 0; u < count; u++) {
                const V p = power(w[of + u * ROWS] * scale - most) * root;
                const V ds = p * (dw[of + u * ROWS] * h.keep - dot[i]);
                w[of + u * ROWS] = SEES(j + u, keys) ? ds : (V)(0);
            }
        }
        gather((struct sums){dx, 0}, w, 0, SLICE, x.sets,
               block_of(block, slice_of(h.k, at, SLICE)));
    }
    for (int i = 0; i < min(SETS * ROWS, a->queries - at.from); i++) {
        const I counts = counts_query(h.length, at.from + i);
        if (at.slice == 0)
            h.dots[(at.from + i) * PARTS] = dot[i];
        if (dq)
            write_row(dq + (size_t)(at.from + i) * a->q_row * PARTS, sums_of(dx, i, SLICE),
                      SLICE, (V)(scale), counts);
    }
}

KERNEL void attention_queries(__global const S *restrict q, __global const S *restrict k,
                              __global const S *restrict v,
                              __global const int *restrict lengths,
                              __global const S *restrict y, __global const S *restrict dy,
                              __global const V *restrict saved, __global V *restrict dots,
                              __global S *restrict dq, real scale, real keep,
                              struct lk_attention a, struct lk_drop drop)
{
    const struct ids at = ids_here(SLICES, drop);
    const size_t first =
        ((size_t)at.tile * a.queries * a.q_row + at.head * DIM + at.slice * SLICE) * PARTS;
    query_rows(at, head_of(at, q, k, v, dy, saved, dots, lengths, keep, &a),
               rows_of(y, at.tile, a.queries, a.heads * VALUES, at.head * VALUES),
               dq ? dq + first + PART : dq, scale, &a);
}

/* Where the gradients of the keys and values of a head go; one may be null. sums: null, or
 * those of the queries' gradients, [queries, up to a multiple of ROWS][DIM] V, in memory. */
struct results {
    __global S *dk, *dv;
    __global V *sums;
};

/* Of query t and ROWS keys from `from` on: turns scores w into ds and dy . v, dw, into p; what
 * is dropped or hidden becomes 0. */
INLINE void weigh_keys(V *w, V *dw, struct ids at, struct head h, real scale, int from, int t)
{
    const V most = h.saved[t * 2 * PARTS], root = h.saved[(t * 2 + 1) * PARTS];
    const V dot = h.dots[t * PARTS];
    const I keys = keys_of(h.length, t), counts = counts_query(h.length, t);
#if DROP
    I kept[4];
    kept_keys(kept, at, t, from / 4);
#endif
    UNROLL for (int i = 0; i < ROWS; i++)
    {
        const I sees = SEES(from + i, keys) && counts;
        const V p = power(w[i] * scale - most) * root;
        V dp = dw[i] * h.keep, of_v = p;
#if DROP
        const I is_kept = pick(kept, (ROWS == 4 ? 0 : from % 4) + i);
        dp = is_kept ? dp : (V)(0);
        of_v = is_kept ? p : (V)(0);
#endif
        w[i] = sees ? p * (dp - dot) : (V)(0);
        dw[i] = sees ? of_v : (V)(0);
    }
}

/* dq[t] += sum_i ds[t][i] k[i], of a block of queries and the own keys of a work-group; ds is
 * w[set][u][i]. */
INLINE void add_queries(__global V *sums, const V *w, int sets, struct block queries,
                        struct block keys)
{
    /* [u / ROWS][key][u % ROWS]; 0 for the queries that fill up the last ROWS */
    V turned[KEEPS_ROWS ? W_SET * (BLOCK / ROWS) : 1];
    for (int i = 0; queries.count % ROWS > 0 && i < W_SET; i++)
        turned[queries.count / ROWS * W_SET + i] = (V)(0);
    for (int set = 0; set < sets; set++)
        for (int u = begin_of(queries, set); u < queries.count; u++)
            UNROLL for (int i = 0; i < ROWS; i++)
                turned[u / ROWS * W_SET + (set * ROWS + i) * ROWS + u % ROWS] =
                    w[set * W_SET + u * ROWS + i];
    gather((struct sums){0, sums + queries.from * DIM * PARTS}, turned, 0, DIM,
           (queries.count + ROWS - 1) / ROWS, keys);
}

BODY void key_rows(struct ids at, struct head h, struct results to, real scale,
                   const struct lk_attention *a)
{
    const int last = a->keys - 1, rows = min(SETS * ROWS, a->keys - at.from);
    const int end = SELF ? h.span.most : a->queries, least = SELF ? h.span.least : a->queries;
    const I queries = SELF ? h.length : (I)(a->queries);
    V kept_x[KEPT(DIM)], kept_g[KEPT(VALUES)];
    V dx[SETS * ROWS * KEY_SLICE], dg[SETS * ROWS * VALUE_SLICE];
    V w[SETS * W_SET], dw[SETS * W_SET];
    const struct own x = own_rows(kept_x, DIM, h.k, at.from, last);
    const struct own g = own_rows(kept_g, VALUES, h.v, at.from, last);
    struct block keys = {h.k,      at.from, rows, h.length, at.from + rows > h.span.least,
                         NO_SKIPS, SEES_ALL};
    for (int i = 0; i < x.sets * ROWS * KEY_SLICE; i++)
        dx[i] = (V)(0);
    for (int i = 0; i < x.sets * ROWS * VALUE_SLICE; i++)
        dg[i] = (V)(0);
    for (int t = CAUSAL ? at.from / BLOCK * BLOCK : 0; t < end; t += BLOCK) {
        const int count = min(BLOCK, end - t);
        const struct block block = {h.q,         t,       count, queries, t + count > least,
                                    at.from - t, SEES_ALL};
        multiply(w, x, DIM, block);
        multiply(dw, g, VALUES, block_of(block, h.dy));
        for (int set = 0; set < x.sets; set++)
            for (int u = begin_of(block, set); u < count; u++) {
                const int of = set * W_SET + u * ROWS;
                weigh_keys(w + of, dw + of, at, h, scale, at.from + set * ROWS, t + u);
            }
        if (KEEPS_ROWS && to.sums && at.from < h.span.most) {
            keys.sees = t + ROWS - at.from;
            add_queries(to.sums, w, x.sets, block, keys);
        }
        gather((struct sums){dx, 0}, w, 0, KEY_SLICE, x.sets,
               block_of(block, slice_of(h.q, at, KEY_SLICE)));
        gather((struct sums){dg, 0}, dw, 0, VALUE_SLICE, x.sets,
               block_of(block, slice_of(h.dy, at, VALUE_SLICE)));
    }
    for (int i = 0; i < rows; i++) {
        const I counts = (I)(at.from + i) < h.length;
        if (to.dk)
            write_row(to.dk + (size_t)(at.from + i) * a->k_row * PARTS,
                      sums_of(dx, i, KEY_SLICE), KEY_SLICE, (V)(scale), counts);
        if (to.dv)
            write_row(to.dv + (size_t)(at.from + i) * a->v_row * PARTS,
                      sums_of(dg, i, VALUE_SLICE), VALUE_SLICE, (V)(h.keep), counts);
    }
}

INLINE struct results results_of(struct ids at, __global S *dk, __global S *dv,
                                 const struct lk_attention *a)
{
    const size_t step = (size_t)at.tile * a->keys;
    const size_t k_at =
        (step * a->k_row + a->k_at + at.head * DIM + at.slice * KEY_SLICE) * PARTS + PART;
    const size_t v_at =
        (step * a->v_row + a->v_at + at.head * VALUES + at.slice * VALUE_SLICE) * PARTS + PART;
    return (struct results){dk ? dk + k_at : dk, dv ? dv + v_at : dv, 0};
}

KERNEL void attention_keys(__global const S *restrict q, __global const S *restrict k,
                           __global const S *restrict v, __global const int *restrict lengths,
                           __global const S *restrict dy, __global const V *restrict saved,
                           __global V *restrict dots, __global S *restrict dk,
                           __global S *restrict dv, real scale, real keep,
                           struct lk_attention a, struct lk_drop drop)
{
    const struct ids at = ids_here(KEY_SLICES, drop);
    key_rows(at, head_of(at, q, k, v, dy, saved, dots, lengths, keep, &a),
             results_of(at, dk, dv, &a), scale, &a);
}

#if KEEPS_ROWS
BODY void all_rows(struct ids at, struct head h, struct rows y, __global S *dq,
                   struct results to, real scale, const struct lk_attention *a)
{
    for (int t = 0; t < a->queries; t++)
        h.dots[t * PARTS] = dot_of(h.dy, y, t);
    for (int i = 0; i < (a->queries + ROWS - 1) / ROWS * ROWS * DIM; i++)
        to.sums[i * PARTS] = (V)(0);
    for (at.from = 0; at.from < a->keys; at.from += SETS * ROWS)
        key_rows(at, h, to, scale, a);
    for (int t = 0; t < a->queries; t++) {
        const I counts = counts_query(h.length, t);
        for (int d = 0; d < DIM; d++)
            STORE(dq + ((size_t)t * a->q_row + d) * PARTS,
                  counts ? to.sums[(t * DIM + d) * PARTS] * scale : (V)(0));
    }
}

/* dq, dk and dv of a head by one work-group, which computes all scores once where the two
 * kernels above compute them twice; the same bits. Group id 0: 0. Behind the dots: sums,
 * [tiles][heads][queries, up to a multiple of ROWS][DIM] V. */
KERNEL void attention_all(__global const S *restrict q, __global const S *restrict k,
                          __global const S *restrict v, __global const int *restrict lengths,
                          __global const S *restrict y, __global const S *restrict dy,
                          __global const V *restrict saved, __global V *restrict dots,
                          __global S *restrict dq, __global S *restrict dk,
                          __global S *restrict dv, real scale, real keep, struct lk_attention a,
                          struct lk_drop drop)
{
    struct ids at = ids_here(1, drop);
    const struct head h = head_of(at, q, k, v, dy, saved, dots, lengths, keep, &a);
    struct results to = results_of(at, dk, dv, &a);
    const size_t count = (size_t)(a.queries + ROWS - 1) / ROWS * ROWS * DIM,
                 all_dots = (size_t)get_num_groups(2) * a.heads * a.queries;
    to.sums = dots + (all_dots + ((size_t)at.tile * a.heads + at.head) * count) * PARTS + PART;
    all_rows(at, h, rows_of(y, at.tile, a.queries, a.heads * VALUES, at.head * VALUES),
             dq + ((size_t)at.tile * a.queries * a.q_row + at.head * DIM) * PARTS + PART, to,
             scale, &a);
}
#endif
