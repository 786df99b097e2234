/* Layer normalization: mean and variance of each sample's pixel over its channels.
 *
 *   y = act(gamma u + beta), u = (x - mean) / sqrt(variance + epsilon)
 *
 *   layer_norm_forward    mean and 1 / sqrt(variance + epsilon), into saved, and y
 *   layer_norm_backward   dx = (gamma d - (sum gamma d + u sum gamma d u) / channels)
 *                         / sqrt(variance + epsilon), d = dy where act let y pass
 *   layer_norm_gradients  dbeta = sum d, dgamma = sum d u of a shard, or parts into sums
 *   layer_norm_total      adds the parts
 *
 * x, y, dy, dx: stored [tiles][channels][pixels][LANES]; saved: [tiles][pixels][2][LANES];
 * gamma, beta: [channels] or null; dgamma, dbeta: [channels] of every shard, dw_shard apart;
 * sums: [shards][parts][2][channels]. A part is part_pixels pixels of a shard, tiles in turn,
 * or what is left. Sums run over 64 terms, then over those; of gradients then over lanes.
 * In a dead lane dy is 0, and so are sums and dx.
 *
 * -D: RELU: 0 or 1; BLOCK: pixels of a group; COLUMNS: channels of a group of gradients.
 * Group ids: forward, backward: 0: block of pixels, 1: tile; gradients: 0: block of channels,
 * 1: shard, 2: part; total: 0: run of `each` channels, 1: shard.
 */
#include "lib/real.cl"
#include "lib/gate.cl"
#include "lib/sum.cl"
#include "ops/args.h"

#define CHUNK 64
#define TILE ((size_t)get_group_id(1))

/* The pixels of a group. A block of them is as long as it is so that channels whose planes lie
 * a power of two apart do not all want the same few lines of a cache. */
KERNEL void layer_norm_forward(__global const S *restrict x,
                               __global const real *restrict gamma,
                               __global const real *restrict beta, __global S *restrict y,
                               __global V *restrict saved, real epsilon, struct lk_layer_norm a)
{
    const int p = get_group_id(0) * BLOCK, count = BLOCK == 1 ? 1 : min(BLOCK, a.pixels - p);
    const size_t first = (TILE * a.channels * a.pixels + p) * PARTS + PART;
    const size_t step = (size_t)a.pixels * PARTS;
    const size_t at = (TILE * a.pixels + p) * 2 * PARTS + PART;
    V x0[BLOCK], plain[BLOCK], product[BLOCK], mean[BLOCK], root[BLOCK];
    for (int i = 0; i < count; i++) {
        x0[i] = LOAD(x + first + i * PARTS);
        plain[i] = product[i] = (V)0;
    }
    for (int c0 = 0; c0 < a.channels; c0 += CHUNK) {
        V s[BLOCK], q[BLOCK];
        for (int i = 0; i < count; i++)
            s[i] = q[i] = (V)0;
        for (int c = c0; c < min(c0 + CHUNK, a.channels); c++)
            for (int i = 0; i < count; i++) {
                const V d = LOAD(x + first + c * step + i * PARTS) - x0[i];
                s[i] += d;
                q[i] = FMA(d, d, q[i]);
            }
        for (int i = 0; i < count; i++) {
            plain[i] += s[i];
            product[i] += q[i];
        }
    }
    for (int i = 0; i < count; i++) {
        const V off = plain[i] / (real)a.channels;
        const V variance = product[i] / (real)a.channels - off * off;
        mean[i] = x0[i] + off;
        root[i] = (V)(1) / sqrt((variance < (V)0 ? (V)0 : variance) + epsilon);
        if (saved) {
            saved[at + i * 2 * PARTS] = mean[i];
            saved[at + (i * 2 + 1) * PARTS] = root[i];
        }
    }
    for (int c = 0; c < a.channels; c++) {
        const real times = gamma ? gamma[c] : (real)1, plus = beta ? beta[c] : (real)0;
        for (int i = 0; i < count; i++) {
            const size_t k = first + c * step + i * PARTS;
            const V v = FMA(LOAD(x + k) - mean[i], root[i] * times, (V)plus);
            STORE(y + k, RELU ? (v > (V)0 ? v : (V)0) : v);
        }
    }
}

KERNEL void layer_norm_backward(__global const S *restrict x, __global const S *restrict y,
                                __global const S *restrict dy, __global const V *restrict saved,
                                __global const real *restrict gamma, __global S *restrict dx,
                                struct lk_layer_norm a)
{
    const int p = get_group_id(0) * BLOCK, count = BLOCK == 1 ? 1 : min(BLOCK, a.pixels - p);
    const size_t first = (TILE * a.channels * a.pixels + p) * PARTS + PART;
    const size_t step = (size_t)a.pixels * PARTS;
    const size_t at = (TILE * a.pixels + p) * 2 * PARTS + PART;
    V plain[BLOCK], product[BLOCK], mean[BLOCK], root[BLOCK];
    for (int i = 0; i < count; i++) {
        mean[i] = saved[at + i * 2 * PARTS];
        root[i] = saved[at + (i * 2 + 1) * PARTS];
        plain[i] = product[i] = (V)0;
    }
    for (int c0 = 0; c0 < a.channels; c0 += CHUNK) {
        V s[BLOCK], q[BLOCK];
        for (int i = 0; i < count; i++)
            s[i] = q[i] = (V)0;
        for (int c = c0; c < min(c0 + CHUNK, a.channels); c++) {
            const V times = gamma ? gamma[c] : (real)1;
            for (int i = 0; i < count; i++) {
                const size_t k = first + c * step + i * PARTS;
                const V d = pass(LOAD(dy + k), RELU ? LOAD(y + k) : (V)0) * times;
                s[i] += d;
                q[i] = FMA(d, (LOAD(x + k) - mean[i]) * root[i], q[i]);
            }
        }
        for (int i = 0; i < count; i++) {
            plain[i] += s[i];
            product[i] += q[i];
        }
    }
    for (int i = 0; i < count; i++) {
        plain[i] /= (real)a.channels;
        product[i] /= (real)a.channels;
    }
    for (int c = 0; c < a.channels; c++) {
        const V times = gamma ? gamma[c] : (real)1;
        for (int i = 0; i < count; i++) {
            const size_t k = first + c * step + i * PARTS;
            const V d = pass(LOAD(dy + k), RELU ? LOAD(y + k) : (V)0) * times;
            const V u = (LOAD(x + k) - mean[i]) * root[i];
            STORE(dx + k, (d - FMA(u, product[i], plain[i])) * root[i]);
        }
    }
}

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
    const long begin = (long)get_group_id(2) * a->part_pixels;
    const long end = min(begin + a->part_pixels, (long)a->shard_tiles * a->pixels);
    V plain[COLUMNS], product[COLUMNS];
    for (int j = 0; j < count; j++)
        plain[j] = product[j] = (V)0;
    for (long p = begin; p < end;) {
        const long tile = TILE * a->shard_tiles + p / a->pixels, first = p % a->pixels;
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
            const size_t row = TILE * a->parts + get_group_id(2);
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
    const struct results to = {sums, dgamma, dbeta, TILE * dw_shard};
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
    const size_t shard = get_group_id(1);
    for (int c = begin + PART; c < end; c += PARTS) {
        real beta = 0, gamma = 0;
        for (int part = 0; part < a.parts; part++) {
            const size_t row = (shard * a.parts + part) * 2 * a.channels;
            beta += sums[row + c];
            gamma += sums[row + a.channels + c];
        }
        if (dbeta)
            dbeta[shard * dw_shard + c] = beta;
        if (dgamma)
            dgamma[shard * dw_shard + c] = gamma;
    }
}
