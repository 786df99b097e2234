/* Scaled dot-product attention of every head by itself, without a matrix [queries, keys] in
 * memory:
 *
 *   p[t][j] = e^(s[t][j] - most[t]) / sum_j e^(s[t][j] - most[t]), s[t][j] = scale q[t] . k[j]
 *   y[t] = sum_j p[t][j] v[j]
 *   dv[j] = sum_t p[t][j] dy[t]         ds[t][j] = p[t][j] (dy[t] . v[j] - dy[t] . y[t])
 *   dq[t] = scale sum_j ds[t][j] k[j]   dk[j] = scale sum_t ds[t][j] q[t]
 *
 *   attention_forward   y, and most and 1 / sum of each query into `saved`
 *   attention_queries   dq, and dy . y of each query into `dots`
 *   attention_keys      dk, dv, after attention_queries
 *   attention_all       all of these at once, on CPUs
 *
 * GPUs have group.cl, group_queries.cl and group_keys.cl for the first three, but where a
 * work-group has no room for them or one time step is computed.
 *
 * Keys are walked in blocks of BLOCK: where one has a larger score, earlier sums shrink by
 * e^(old most - new most). Blocks begin at multiples of BLOCK, and what a mask hides adds 0, so
 * masked steps at the end change no bit. Backward computes p again.
 *
 * q [queries][..], k and v [keys][..]: rows of `q_row` numbers, of which those of head h begin
 * at h DIM (k: k_at + h DIM, v: v_at + h VALUES); likewise dq, dk, dv. y, dy [queries][heads
 * VALUES].
 * saved: [tiles][heads][queries][2] V, dots: [tiles][heads][queries] V. lengths: of keys, and
 * of queries where SELF; queries behind them get y = 0.
 *
 *   attention_keep      puts one time step of x (group id 0: tile) at its place in `past`
 *
 * With DROP p[t][j] is multiplied by m[t][j] where it meets v: 0 or `keep` = 1 / (1 - rate).
 * So y[t] = sum_j m p v[j], dv[j] = sum_t m p dy[t], ds = p (m dy[t] . v[j] - dy[t] . y[t]).
 * Key j of query t and head h is in the quadruple (j / 4, h 2^20 + t) of lib/drop.cl: no
 * padding changes m, and backward draws it again.
 *
 * With attention_keep, queries are not the first of the time steps but come `before` later.
 *
 * -D: DIM, VALUES: numbers of a head in q and k, in v. ROWS queries or keys are computed at
 * once, with AT_ONCE others; a work-group computes SETS of ROWS, one after another with every
 * block that it walks. ROWS: 1, 2 or 4; on GPUs ROWS and SETS are 1. BLOCK: a multiple of 4,
 * and backward at least SETS ROWS. UNROLLED: numbers of a row that a loop takes at once.
 * CAUSAL: query t sees keys 0 .. t. LENGTHS: there are some. SELF: queries and keys are the
 * same time steps.
 * SLICES, KEY_SLICES: the results of a head are computed in so many slices (attention_keys:
 * KEY_SLICES), each by a work-group of its own, which computes all scores too: a GPU's
 * registers hold no more sums. DROP: weights are dropped.
 *
 * Group ids: 0: SETS ROWS queries (attention_keys: keys); 1: slices of a head; 2: tile.
 * Work-items: PARTS of a tile.
 */
#include "lib/real.cl"
#include "lib/random.cl"
#include "lib/steps.cl"
#include "lib/hints.cl"
#include "ops/args.h"
#include "lib/drop.cl"
#include "ops/attention/weigh.cl"
#include "ops/attention/rows.cl"

#define SLICE (VALUES / SLICES)

/* What a query has met so far. */
struct softmax {
    V most, sum;
};

/* Turns scores w[u][i] of ROWS queries into e^(scale score - most), with the most of all keys
 * so far; those of hidden keys, from keys[i] on, become 0. shrink[i]: what earlier sums shrink
 * by. The rows take turns, so that none waits for its own last maximum or sum. */
INLINE void add_block(struct softmax *so_far, V *shrink, V *w, real scale, int from, int count,
                      const I *keys, const int masked)
{
    V most[ROWS], sum[ROWS];
    UNROLL for (int i = 0; i < ROWS; i++) most[i] = so_far[i].most;
    for (int u = 0; u < count; u++) {
        UNROLL for (int i = 0; i < ROWS; i++)
        {
            V s = w[u * ROWS + i] * scale;
            if (masked)
                s = (I)(from + u) < keys[i] ? s : LOWEST;
            most[i] = s > most[i] ? s : most[i];
            w[u * ROWS + i] = s;
        }
    }
    UNROLL for (int i = 0; i < ROWS; i++)
    {
        shrink[i] = power(so_far[i].most - most[i]);
        sum[i] = so_far[i].sum * shrink[i];
    }
    for (int u = 0; u < count; u++) {
        UNROLL for (int i = 0; i < ROWS; i++)
        {
            V p = power(w[u * ROWS + i] - most[i]);
            if (masked)
                p = (I)(from + u) < keys[i] ? p : (V)(0);
            sum[i] += p;
            w[u * ROWS + i] = p;
        }
    }
    UNROLL for (int i = 0; i < ROWS; i++) so_far[i] = (struct softmax){most[i], sum[i]};
}

/* add_block() of the queries from time step t on, of which the first sees fewest keys. */
INLINE void weigh_set(struct softmax *so_far, V *shrink, V *w, real scale, int j, int count,
                      int t, I length, struct span span)
{
    I keys[ROWS];
    UNROLL for (int i = 0; i < ROWS; i++) keys[i] = keys_of(length, t + i);
    if (j + count > (CAUSAL ? min(span.least, t + 1) : span.least))
        add_block(so_far, shrink, w, scale, j, count, keys, 1);
    else
        add_block(so_far, shrink, w, scale, j, count, keys, 0);
}

BODY void forward_rows(struct ids at, struct rows q, struct rows k, struct rows v,
                       __global const int *lengths, __global S *y, __global V *saved,
                       real scale, real keep, const struct lk_attention *a)
{
    const I length = valid_steps_here(lengths, at.tile, a->keys);
    const struct span span = span_of(length, a->keys);
    const int here = at.from + a->before; /* the time step of the first query */
    const int end = CAUSAL ? min(span.most, here + SETS * ROWS) : span.most;
    V kept[KEPT(DIM)], sum[SETS * ROWS * SLICE], w[SETS * W_SET], shrink[SETS * ROWS];
    struct softmax softmax[SETS * ROWS];
    const struct own x = own_rows(kept, DIM, q, at.from, a->queries - 1);
    for (int i = 0; i < x.sets * ROWS; i++)
        softmax[i] = (struct softmax){LOWEST, (V)(0)};
    for (int i = 0; i < x.sets * ROWS * SLICE; i++)
        sum[i] = (V)(0);
    for (int j = 0; j < end; j += BLOCK) {
        const int all = min(BLOCK, end - j);
        const struct block block = {
            k, j, all, length, j + all > span.least, NO_SKIPS, here + ROWS - j};
        const struct block values = block_of(block, slice_of(v, at, SLICE));
        multiply(w, x, DIM, block);
        for (int set = 0; set < x.sets; set++) {
            V *of = w + set * W_SET;
            const int first = set * ROWS, count = end_of(block, set);
            if (SETS > 1)
                fetch_block(values, SLICE, set, x.sets);
            if (count == 0)
                continue;
            weigh_set(softmax + first, shrink + first, of, scale, j, count, here + first,
                      length, span);
            for (int i = 0; i < ROWS; i++)
                drop_keys(of + i, at, min(at.from + first + i, a->queries - 1), j, count);
        }
        gather((struct sums){sum, 0}, w, shrink, SLICE, x.sets, values);
    }
    y += (size_t)at.tile * a->queries * a->heads * VALUES * PARTS;
    for (int i = 0; i < min(SETS * ROWS, a->queries - at.from); i++) {
        const int t = at.from + i;
        const I counts = softmax[i].sum != (V)(0) && counts_query(length, t);
        const V root = counts ? (V)(1) / softmax[i].sum : (V)(0);
        write_row(y + (((size_t)t * a->heads + at.head) * VALUES + at.slice * SLICE) * PARTS +
                      PART,
                  sums_of(sum, i, SLICE), SLICE, root * keep, counts);
        if (saved && at.slice == 0) {
            const size_t row = ((size_t)at.tile * a->heads + at.head) * a->queries + t;
            saved[row * 2 * PARTS + PART] = softmax[i].most;
            saved[(row * 2 + 1) * PARTS + PART] = root;
        }
    }
}

KERNEL void attention_forward(__global const S *restrict q, __global const S *restrict k,
                              __global const S *restrict v,
                              __global const int *restrict lengths, __global S *restrict y,
                              __global V *restrict saved, real scale, real keep,
                              struct lk_attention a, struct lk_drop drop)
{
    const struct ids at = ids_here(SLICES, drop);
    forward_rows(at, rows_of(q, at.tile, a.queries, a.q_row, at.head * DIM),
                 rows_of(k, at.tile, a.keys, a.k_row, a.k_at + at.head * DIM),
                 rows_of(v, at.tile, a.keys, a.v_row, a.v_at + at.head * VALUES), lengths, y,
                 saved, scale, keep, &a);
}

KERNEL void attention_keep(__global const S *restrict x, __global S *restrict past, int row,
                           int steps, int time)
{
    const size_t tile = get_group_id(0);
    x += tile * row * PARTS + PART;
    past += (tile * steps + time) * row * PARTS + PART;
    for (int c = 0; c < row; c++)
        STORE(past + c * PARTS, LOAD(x + c * PARTS));
}
