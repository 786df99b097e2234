/* The gradients of attention, as attention.cl has them: what the kernels are given, their group
 * ids and -D names stand there. attention_queries comes first, since attention_keys reads the
 * dots that it leaves.
 */
#include "lib/real.cl"
#include "lib/random.cl"
#include "lib/steps.cl"
#include "ops/args.h"
#include "lib/drop.cl"
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
              end = CAUSAL ? min(h.span.most, at.from + ROWS) : h.span.most;
    V kept_x[KEPT(DIM)], kept_g[KEPT(VALUES)], dx[ROWS * SLICE];
    V w[ROWS * W_ROW], dw[ROWS * W_ROW], dot[ROWS], shrink[ROWS];
    const struct own x = own_rows(kept_x, DIM, h.q, at.from, last, scale);
    const struct own g = own_rows(kept_g, VALUES, h.dy, at.from, last, 1);
    for (int i = 0; i < ROWS; i++) {
        dot[i] = dot_of(h.dy, y, min(at.from + i, last));
        shrink[i] = (V)(1);
    }
    for (int i = 0; i < ROWS * SLICE; i++)
        dx[i] = (V)(0);
    for (int j = 0; dq && j < end; j += BLOCK) {
        const int count = min(BLOCK, end - j);
        multiply(w, x, DIM, h.k, j, count);
        multiply(dw, g, VALUES, h.v, j, count);
        for (int i = 0; i < ROWS; i++) {
            const int t = min(at.from + i, last);
            const V most = h.saved[t * 2 * PARTS], root = h.saved[(t * 2 + 1) * PARTS];
            const I keys = keys_of(h.length, t);
            drop_keys(dw + i * W_ROW, at, t, j, count);
            for (int u = 0; u < count; u++) {
                const V p = power(w[i * W_ROW + u] - most) * root;
                const V ds = p * (dw[i * W_ROW + u] * h.keep - dot[i]);
                w[i * W_ROW + u] = SEES(j + u, keys) ? ds : (V)(0);
            }
        }
        gather_block(dx, w, shrink, SLICE, slice_of(h.k, at, SLICE), j, count, h.length,
                     h.span.least);
    }
    for (int i = 0; i < min(ROWS, a->queries - at.from); i++) {
        const I counts = counts_query(h.length, at.from + i);
        if (at.slice == 0)
            h.dots[(at.from + i) * PARTS] = dot[i];
        if (dq)
            write_row(dq + (size_t)(at.from + i) * a->q_row * PARTS, dx + i * SLICE, SLICE,
                      (V)(scale), counts);
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
        ((size_t)at.tile * a.queries * a.q_row + at.head * DIM + at.slice * SLICE) *
        PARTS;
    query_rows(at, head_of(at, q, k, v, dy, saved, dots, lengths, keep, &a),
               rows_of(y, at.tile, a.queries, a.heads * VALUES, at.head * VALUES),
               dq ? dq + first + PART : dq, scale, &a);
}

/* Where the gradients of the keys and values of a head go; either may be null. */
struct results {
    __global S *dk, *dv;
};

/* Of query t and the ROWS keys: turns scores w into ds and dy . v, dw, into p, a number each
 * W_ROW; what is dropped or hidden becomes 0. */
INLINE void weigh_keys(V *w, V *dw, struct ids at, struct head h, int t)
{
    const V most = h.saved[t * 2 * PARTS], root = h.saved[(t * 2 + 1) * PARTS];
    const V dot = h.dots[t * PARTS];
    const I keys = keys_of(h.length, t), counts = counts_query(h.length, t);
#if DROP
    I kept[4];
    kept_keys(kept, at, t, at.from / 4);
#endif
    UNROLL for (int i = 0; i < ROWS; i++)
    {
        const I sees = SEES(at.from + i, keys) && counts;
        const V p = power(w[i * W_ROW] - most) * root;
        V dp = dw[i * W_ROW] * h.keep, of_v = p;
#if DROP
        const I is_kept = pick(kept, (ROWS == 4 ? 0 : at.from % 4) + i);
        dp = is_kept ? dp : (V)(0);
        of_v = is_kept ? p : (V)(0);
#endif
        w[i * W_ROW] = sees ? p * (dp - dot) : (V)(0);
        dw[i * W_ROW] = sees ? of_v : (V)(0);
    }
}

BODY void key_rows(struct ids at, struct head h, struct results to, real scale,
                   const struct lk_attention *a)
{
    const int last = a->keys - 1, end = SELF ? h.span.most : a->queries;
    const I queries = SELF ? h.length : (I)(a->queries);
    const int least = SELF ? h.span.least : a->queries;
    V kept_x[KEPT(DIM)], kept_g[KEPT(VALUES)];
    V dx[ROWS * KEY_SLICE], dg[ROWS * VALUE_SLICE];
    V w[ROWS * W_ROW], dw[ROWS * W_ROW], shrink[ROWS];
    const struct own x = own_rows(kept_x, DIM, h.k, at.from, last, scale);
    const struct own g = own_rows(kept_g, VALUES, h.v, at.from, last, 1);
    for (int i = 0; i < ROWS; i++)
        shrink[i] = (V)(1);
    for (int i = 0; i < ROWS * KEY_SLICE; i++)
        dx[i] = (V)(0);
    for (int i = 0; i < ROWS * VALUE_SLICE; i++)
        dg[i] = (V)(0);
    for (int t = CAUSAL ? at.from / BLOCK * BLOCK : 0; t < end; t += BLOCK) {
        const int count = min(BLOCK, end - t);
        multiply(w, x, DIM, h.q, t, count);
        multiply(dw, g, VALUES, h.dy, t, count);
        for (int u = 0; u < count; u++)
            weigh_keys(w + u, dw + u, at, h, t + u);
        gather_block(dx, w, shrink, KEY_SLICE, slice_of(h.q, at, KEY_SLICE), t, count, queries,
                     least);
        gather_block(dg, dw, shrink, VALUE_SLICE, slice_of(h.dy, at, VALUE_SLICE), t, count,
                     queries, least);
    }
    for (int i = 0; i < min(ROWS, a->keys - at.from); i++) {
        const I counts = (I)(at.from + i) < h.length;
        if (to.dk)
            write_row(to.dk + (size_t)(at.from + i) * a->k_row * PARTS, dx + i * KEY_SLICE,
                      KEY_SLICE, (V)(scale), counts);
        if (to.dv)
            write_row(to.dv + (size_t)(at.from + i) * a->v_row * PARTS, dg + i * VALUE_SLICE,
                      VALUE_SLICE, (V)(h.keep), counts);
    }
}

KERNEL void attention_keys(__global const S *restrict q, __global const S *restrict k,
                           __global const S *restrict v, __global const int *restrict lengths,
                           __global const S *restrict dy, __global const V *restrict saved,
                           __global V *restrict dots, __global S *restrict dk,
                           __global S *restrict dv, real scale, real keep,
                           struct lk_attention a, struct lk_drop drop)
{
    const struct ids at = ids_here(KEY_SLICES, drop);
    const size_t step = (size_t)at.tile * a.keys;
    const size_t k_at =
        (step * a.k_row + a.k_at + at.head * DIM + at.slice * KEY_SLICE) * PARTS + PART;
    const size_t v_at =
        (step * a.v_row + a.v_at + at.head * VALUES + at.slice * VALUE_SLICE) * PARTS + PART;
    const struct results to = {dk ? dk + k_at : dk, dv ? dv + v_at : dv};
    key_rows(at, head_of(at, q, k, v, dy, saved, dots, lengths, keep, &a), to, scale, &a);
}
