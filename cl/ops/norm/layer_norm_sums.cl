/* The gradients of gamma and beta of a layer normalization (layer_norm.cl).
 *
 *   layer_norm_gradients    dbeta = sum d, dgamma = sum d u of a shard, or parts into sums
 *   layer_norm_total        adds the parts
 *   layer_norm_total_lanes  adds the parts that a fused layer_norm_backward has made
 *
 * x, y, dy: stored [tiles][channels][pixels][LANES]; saved: [tiles][pixels][2][LANES];
 * dgamma, dbeta: [channels] of every shard, dw_shard apart, or null; sums: [shards][parts][2]
 * [channels], of layer_norm_total_lanes [shards][parts][channels][2][LANES]. A part is
 * part_pixels pixels of a shard's run (lib/parts.cl), tiles in turn, or what is left. Sums run
 * over 64 terms, then over those, over lanes and parts; in layer_norm_total_lanes over parts
 * and then over lanes.
 *
 * -D: RELU: 0 or 1; COLUMNS: channels of a group of gradients.
 * Group ids: gradients: 0: block of channels, 1: shard, 2: part; totals: 0: run of `each`
 * channels, 1: shard.
 */
#include "lib/real.cl"

#include "lib/gate.cl"
#include "lib/parts.cl"
#include "lib/sum.cl"
#include "ops/args.h"

#define CHUNK 64
#define SHARD ((size_t)get_group_id(1))

struct results {
    __global real *sums, *dgamma, *dbeta; /* sums: null where there is one part */
    size_t shard;                         /* where those of the shard begin */
};

/* Sums of `count` channels, a constant, from channel c on. */
INLINE void sum_channels(__global const S *restrict x, __global const S *restrict y,
                         __global const S *restrict dy, __global const V *restrict saved,
                         struct results to, const struct lk_layer_norm *a, int c,
                         const int count, __local V *scratch)
{
    const long begin = part_begin(get_group_id(2), a->run_pixels, a->part_pixels);
    const long end =
        part_end(begin, a->run_pixels, a->part_pixels, (long)a->shard_tiles * a->pixels);
    V plain[COLUMNS], product[COLUMNS];
    for (int j = 0; j < count; j++)
        plain[j] = product[j] = (V)0;
    for (long p = begin; p < end;) {
        const long tile = SHARD * a->shard_tiles + p / a->pixels, first = p % a->pixels;
        const int run = (int)min(min((long)CHUNK, end - p), a->pixels - first);
        V s[COLUMNS], q[COLUMNS];
        for (int j = 0; j < count; j++)
            s[j] = q[j] = (V)0;
        for (int i = 0; i < run; i++) {
            const size_t at = ((tile * a->pixels + first + i) * 2) * PARTS + PART;
            const V mean = saved[at], root = saved[at + PARTS];
            for (int j = 0; j < count; j++) {
                const size_t k =
                    ((tile * a->channels + c + j) * a->pixels + first + i) * PARTS + PART;
                const V d = pass(LOAD(dy + k), RELU ? LOAD(y + k) : (V)0);
                s[j] += d;
                q[j] = FMA(d, (LOAD(x + k) - mean) * root, q[j]);
            }
        }
        for (int j = 0; j < count; j++) {
            plain[j] += s[j];
            product[j] += q[j];
        }
        p += run;
    }
    for (int j = 0; j < count; j++) {
        const real beta = sum_lanes(plain[j], scratch), gamma = sum_lanes(product[j], scratch);
        if (PART == 0 && to.sums) {
            const size_t row = SHARD * a->parts + get_group_id(2);
            to.sums[row * 2 * a->channels + c + j] = beta;
            to.sums[(row * 2 + 1) * a->channels + c + j] = gamma;
        }
        if (PART == 0 && !to.sums && to.dbeta)
            to.dbeta[to.shard + c + j] = beta;
        if (PART == 0 && !to.sums && to.dgamma)
            to.dgamma[to.shard + c + j] = gamma;
    }
}

KERNEL void layer_norm_gradients(__global const S *restrict x, __global const S *restrict y,
                                 __global const S *restrict dy,
                                 __global const V *restrict saved, __global real *restrict sums,
                                 __global real *restrict dgamma, __global real *restrict dbeta,
                                 int dw_shard, struct lk_layer_norm a, __local V *scratch)
{
    const struct results to = {sums, dgamma, dbeta, SHARD * dw_shard};
    const int c = get_group_id(0) * COLUMNS;
    if (c + COLUMNS <= a.channels)
        sum_channels(x, y, dy, saved, to, &a, c, COLUMNS, scratch);
    else
        for (int i = c; i < a.channels; i++)
            sum_channels(x, y, dy, saved, to, &a, i, 1, scratch);
}

KERNEL void layer_norm_total(__global const real *restrict sums, __global real *restrict dgamma,
                             __global real *restrict dbeta, int dw_shard, int each,
                             struct lk_layer_norm a)
{
    const int begin = get_group_id(0) * each, end = min(begin + each, a.channels);
    for (int c = begin + PART; c < end; c += PARTS) {
        real beta = 0, gamma = 0;
        for (int part = 0; part < a.parts; part++) {
            const size_t row = (SHARD * a.parts + part) * 2 * a.channels;
            beta += sums[row + c];
            gamma += sums[row + a.channels + c];
        }
        if (dbeta)
            dbeta[SHARD * dw_shard + c] = beta;
        if (dgamma)
            dgamma[SHARD * dw_shard + c] = gamma;
    }
}

KERNEL void layer_norm_total_lanes(__global const V *restrict sums,
                                   __global real *restrict dgamma,
                                   __global real *restrict dbeta, int dw_shard, int each,
                                   struct lk_layer_norm a, __local V *scratch)
{
    const int begin = get_group_id(0) * each, end = min(begin + each, a.channels);
    for (int c = begin; c < end; c++) {
        V plain = (V)0, product = (V)0;
        for (int part = 0; part < a.parts; part++) {
            const size_t row = ((SHARD * a.parts + part) * a.channels + c) * 2;
            plain += sums[row * PARTS + PART];
            product += sums[(row + 1) * PARTS + PART];
        }
        const real beta = sum_lanes(plain, scratch), gamma = sum_lanes(product, scratch);
        if (PART == 0 && dbeta)
            dbeta[SHARD * dw_shard + c] = beta;
        if (PART == 0 && dgamma)
            dgamma[SHARD * dw_shard + c] = gamma;
    }
}
