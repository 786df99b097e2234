/* Rows of a table for tokens, and the sums of their gradients.
 *
 *   embedding_forward  y[t,u] = w[x[t]][u]; 0 where x[t] is no row, or t is not valid
 *   embedding_turn     rows[n,t,u] = dy[t,u] of lane n: of each token a row
 *   embedding_list     behind the rows: x[n,t] + 1; 0 where embedding_forward finds no row
 *   embedding_zero     dw = 0
 *   embedding_sum      dw[x[n,t]][u] += rows[n,t,u], sample by sample, step by step
 *
 * x: int [tiles][steps][LANES], any numbers; length: lib/steps.cl; w: [vocabulary][units]; y,
 * dy: stored [tiles][steps][units][LANES]; rows: of every shard, `stride` reals apart, reals
 * [samples][steps][units]; dw: [vocabulary][units] of every shard, dw_stride apart.
 *
 * Group ids: forward, turn, list: 0: `each` time steps, 1: tile; zero: 0: `each` rows of dw, 1:
 * shard; sum: 0: which rows of dw, those whose number modulo `groups` it is, 1: shard.
 */
#include "lib/real.cl"
#include "lib/steps.cl"
#include "ops/args.h"
#if VECTOR > 1
#include "lib/transpose.cl"
#endif

typedef union {
    real lane[VECTOR];
    V all;
} lanes;

KERNEL void embedding_forward(__global const int *restrict x,
                              __global const int *restrict length,
                              __global const real *restrict w, __global S *restrict y,
                              struct lk_embedding a)
{
    const size_t tile = get_group_id(1);
    const int first = get_group_id(0) * a.each, end = min(first + a.each, a.steps);
    for (int t = first; t < end; t++) {
        __global const real *row[VECTOR];
        lanes there;
        for (int v = 0; v < VECTOR; v++) {
            const int lane = PART * VECTOR + v, token = x[(tile * a.steps + t) * LANES + lane];
            const bool is_row = token >= 0 && token < a.vocabulary &&
                                t < valid_steps(length, tile, lane, a.steps);
            there.lane[v] = is_row;
            row[v] = w + (size_t)(is_row ? token : 0) * a.units;
        }
        __global S *to = y + (tile * a.steps + t) * a.units * PARTS + PART;
        int u = 0;
#if VECTOR > 1
        for (; u + VECTOR <= a.units; u += VECTOR) {
            V block[VECTOR];
            UNROLL for (int v = 0; v < VECTOR; v++) block[v] = ROW_LOAD(row[v] + u);
            transpose(block);
            UNROLL for (int v = 0; v < VECTOR; v++)
                STORE(to + (u + v) * PARTS, there.all > (V)0 ? block[v] : (V)0);
        }
#endif
        for (; u < a.units; u++) {
            lanes value;
            for (int v = 0; v < VECTOR; v++)
                value.lane[v] = row[v][u];
            STORE(to + u * PARTS, there.all > (V)0 ? value.all : (V)0);
        }
    }
}

KERNEL void embedding_turn(__global const S *restrict dy, __global real *restrict rows,
                           int samples, int stride, struct lk_embedding a)
{
    const size_t tile = get_group_id(1);
    const int first = get_group_id(0) * a.each, end = min(first + a.each, a.steps);
    const int in_shard = (int)tile % a.shard_tiles * LANES + PART * VECTOR;
    const int here = min(VECTOR, samples - in_shard); /* lanes that belong to a sample */
    const size_t sample = (size_t)a.steps * a.units;
    rows += tile / a.shard_tiles * stride + in_shard * sample;
    for (int t = first; t < end; t++) {
        __global const S *from = dy + (tile * a.steps + t) * a.units * PARTS + PART;
        __global real *row = rows + (size_t)t * a.units;
        int u = 0;
#if VECTOR > 1
        for (; u + VECTOR <= a.units; u += VECTOR) {
            V block[VECTOR];
            UNROLL for (int v = 0; v < VECTOR; v++) block[v] = LOAD(from + (u + v) * PARTS);
            transpose(block);
            UNROLL for (int v = 0; v < VECTOR; v++)
                if (v < here)
                    ROW_STORE(row + v * sample + u, block[v]);
        }
#endif
        for (; u < a.units; u++) {
            lanes value;
            value.all = LOAD(from + u * PARTS);
            for (int v = 0; v < here; v++)
                row[v * sample + u] = value.lane[v];
        }
    }
}

KERNEL void embedding_list(__global const int *restrict x, __global const int *restrict length,
                           __global real *restrict rows, int samples, int stride,
                           struct lk_embedding a)
{
    const size_t tile = get_group_id(1);
    const int first = get_group_id(0) * a.each, end = min(first + a.each, a.steps);
    rows += tile / a.shard_tiles * stride + (size_t)samples * a.steps * a.units;
    for (int v = 0; v < VECTOR; v++) {
        const int lane = PART * VECTOR + v, n = (int)tile % a.shard_tiles * LANES + lane;
        const int valid = valid_steps(length, tile, lane, a.steps);
        for (int t = first; n < samples && t < end; t++) {
            const int token = x[(tile * a.steps + t) * LANES + lane];
            const bool is_row = token >= 0 && token < a.vocabulary && t < valid;
            rows[n * a.steps + t] = is_row ? (real)(token + 1) : 0;
        }
    }
}

/* to += from, or to = 0 where from is null: a row of `units` numbers, in turn by the work-items
 * of a group. */
INLINE void add_row(__global real *restrict to, __global const real *restrict from, int units)
{
    const int whole_vectors = units / VECTOR * VECTOR;
    for (int u = PART * VECTOR; u < whole_vectors; u += LANES)
        ROW_STORE(to + u, from ? ROW_LOAD(to + u) + ROW_LOAD(from + u) : (V)0);
    for (int u = whole_vectors + PART; u < units; u += PARTS)
        to[u] = from ? to[u] + from[u] : 0;
}

KERNEL void embedding_zero(__global real *restrict dw, int dw_stride, struct lk_embedding a)
{
    const int first = get_group_id(0) * a.each, end = min(first + a.each, a.vocabulary);
    dw += (size_t)get_group_id(1) * dw_stride;
    for (int row = first; row < end; row++)
        add_row(dw + (size_t)row * a.units, 0, a.units);
}

KERNEL void embedding_sum(__global const int *restrict x, __global const int *restrict length,
                          __global const real *restrict rows, __global real *restrict dw,
                          int dw_stride, struct lk_embedding a)
{
    const int group = get_group_id(0);
    const size_t shard = get_group_id(1), end = (shard + 1) * a.shard_tiles;
    dw += shard * dw_stride;
    for (size_t tile = shard * a.shard_tiles; tile < end; tile++)
        for (int lane = 0; lane < LANES; lane++) {
            const int valid = valid_steps(length, tile, lane, a.steps);
            for (int t = 0; t < valid; t++) {
                const int token = x[(tile * a.steps + t) * LANES + lane];
                if (token < 0 || token >= a.vocabulary || (token & (a.groups - 1)) != group)
                    continue;
                const size_t from = (tile * LANES + lane) * a.steps + t;
                add_row(dw + (size_t)token * a.units, rows + from * a.units, a.units);
            }
        }
}
