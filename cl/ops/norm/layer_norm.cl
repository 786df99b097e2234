/* Layer normalization: mean and variance of each sample's pixel over its channels.
 *
 *   y = act(gamma u + beta), u = (x - mean) / sqrt(variance + epsilon)
 *
 *   layer_norm_forward    mean and 1 / sqrt(variance + epsilon), into saved, and y
 *   layer_norm_backward   dx = (gamma d - (sum gamma d + u sum gamma d u) / channels)
 *                         / sqrt(variance + epsilon), d = dy where act let y pass
 *
 * x, y, dy, dx: stored [tiles][channels][pixels][LANES]; saved: [tiles][pixels][2][LANES];
 * gamma, beta: [channels] or null. Sums run over 64 terms, then over those. In a dead lane dy
 * is 0, and so is dx.
 *
 * With FUSED backward has a part of a shard for each group and also makes, while x and dy are
 * at hand, the sums of d and d u for layer_norm_total_lanes: over a block, then over blocks;
 * sums: [shards][parts][channels][2][LANES]. Either sums or dx may be null. A part is
 * part_pixels pixels of a shard's run (lib/parts.cl), tiles in turn, or what is left.
 *
 * -D: RELU: 0 or 1; BLOCK: pixels at once; FUSED: 0 or 1; STREAM: y is too large for caches.
 * Group ids: 0: block of pixels, 1: tile; of backward if FUSED: 0: part, 1: shard.
 */
#include "lib/hints.cl"
#include "lib/real.cl"

#include "lib/gate.cl"
#include "lib/parts.cl"
#include "lib/put.cl"
#include "ops/args.h"

#define CHUNK 64
#define AHEAD 4 /* channels: how far ahead of sums their terms are fetched */
#define TILE ((size_t)get_group_id(1))

/* From a block to the next one, which is fetched while the one before is written. */
#define NEXT(a) ((size_t)((a)->pixels == 1 ? (a)->channels : BLOCK) * PARTS)

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
                const size_t k = first + c * step + i * PARTS;
                PREFETCH(x + k + AHEAD * step);
                const V d = LOAD(x + k) - x0[i];
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
            PREFETCH(x + k + NEXT(&a));
            const V v = FMA(LOAD(x + k) - mean[i], root[i] * times, (V)plus);
            PUT(y + k, RELU ? (v > (V)0 ? v : (V)0) : v);
        }
    }
}

/* What backward reads and writes, from the first pixel of a block on. */
struct block {
    __global const S *x, *y, *dy;
    __global const V *saved;
    __global const real *gamma;
    __global S *dx;
    __global V *sums;  /* of d and d u, of all channels; null: nobody asks for them */
    size_t step, next; /* to the next channel, to the next block */
    int channels, count;
};

INLINE V passed(const struct block *b, size_t k)
{
    return pass(LOAD(b->dy + k), RELU ? LOAD(b->y + k) : (V)0);
}

INLINE void fetch(const struct block *b, size_t k)
{
    PREFETCH(b->x + k);
    PREFETCH(b->dy + k);
    if (RELU)
        PREFETCH(b->y + k);
}

/* Sums of gamma d and gamma d u, of each of `count` pixels. */
INLINE void sum_block(const struct block *b, const int count, const V *mean, const V *root,
                      V *plain, V *product)
{
    for (int i = 0; i < count; i++)
        plain[i] = product[i] = (V)0;
    for (int c0 = 0; c0 < b->channels; c0 += CHUNK) {
        V s[BLOCK], q[BLOCK];
        for (int i = 0; i < count; i++)
            s[i] = q[i] = (V)0;
        for (int c = c0; c < min(c0 + CHUNK, b->channels); c++) {
            const V times = b->gamma ? b->gamma[c] : (real)1;
            V beta = (V)0, gamma = (V)0;
            for (int i = 0; i < count; i++) {
                const size_t k = c * b->step + i * PARTS;
                fetch(b, k + AHEAD * b->step);
                const V d = passed(b, k), u = (LOAD(b->x + k) - mean[i]) * root[i];
                beta += d;
                gamma = FMA(d, u, gamma);
                s[i] += d * times;
                q[i] = FMA(d * times, u, q[i]);
            }
            if (FUSED && b->sums) {
                b->sums[2 * c * PARTS] += beta;
                b->sums[(2 * c + 1) * PARTS] += gamma;
            }
        }
        for (int i = 0; i < count; i++) {
            plain[i] += s[i];
            product[i] += q[i];
        }
    }
}

INLINE void block_backward(const struct block *b)
{
    const int count = BLOCK == 1 ? 1 : b->count;
    V plain[BLOCK], product[BLOCK], mean[BLOCK], root[BLOCK];
    for (int i = 0; i < count; i++) {
        mean[i] = b->saved[i * 2 * PARTS];
        root[i] = b->saved[(i * 2 + 1) * PARTS];
    }
    sum_block(b, count, mean, root, plain, product);
    if (FUSED && !b->dx)
        return;
    for (int i = 0; i < count; i++) {
        plain[i] /= (real)b->channels;
        product[i] /= (real)b->channels;
    }
    for (int c = 0; c < b->channels; c++) {
        const V times = b->gamma ? b->gamma[c] : (real)1;
        for (int i = 0; i < count; i++) {
            const size_t k = c * b->step + i * PARTS;
            fetch(b, k + b->next);
            const V d = passed(b, k) * times, u = (LOAD(b->x + k) - mean[i]) * root[i];
            PUT(b->dx + k, (d - FMA(u, product[i], plain[i])) * root[i]);
        }
    }
}

KERNEL void layer_norm_backward(__global const S *restrict x, __global const S *restrict y,
                                __global const S *restrict dy, __global const V *restrict saved,
                                __global const real *restrict gamma, __global S *restrict dx,
                                __global V *restrict sums, struct lk_layer_norm a)
{
#if FUSED
    const size_t part = TILE * a.parts + get_group_id(0);
    const long begin = part_begin(get_group_id(0), a.run_pixels, a.part_pixels);
    const long end =
        part_end(begin, a.run_pixels, a.part_pixels, (long)a.shard_tiles * a.pixels);
    __global V *own = sums ? sums + part * a.channels * 2 * PARTS + PART : 0;
    if (own)
        for (int i = 0; i < 2 * a.channels; i++)
            own[i * PARTS] = (V)0;
#else
    const long begin = get_group_id(0) * BLOCK, end = min(begin + BLOCK, (long)a.pixels);
    __global V *own = 0;
#endif
    struct block b;
    for (long p = begin; p < end; p += b.count) {
        const size_t tile = FUSED ? TILE * a.shard_tiles + p / a.pixels : TILE;
        const long first = p % a.pixels;
        const size_t at = (tile * a.channels * a.pixels + first) * PARTS + PART;
        b = (struct block){x + at,
                           RELU ? y + at : 0,
                           dy + at,
                           saved + (tile * a.pixels + first) * 2 * PARTS + PART,
                           gamma,
                           dx ? dx + at : 0,
                           own,
                           (size_t)a.pixels * PARTS,
                           NEXT(&a),
                           a.channels,
                           (int)min((long)BLOCK, min(end - p, a.pixels - first))};
        block_backward(&b);
    }
}
