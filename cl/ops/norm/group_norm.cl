/* Group normalization: mean and variance of each sample over a set of channels and their n
 * values.
 *
 *   y = act(gamma u + beta), u = (x - mean) / sqrt(variance + epsilon)
 *
 *   group_norm_sums       parts of sum (x - x0) and sum (x - x0)^2, x0: the first x of the set
 *   group_norm_forward    from them mean and 1 / sqrt(variance + epsilon), into saved, and y
 *   group_norm_gradients  parts of sum d and sum d u, d = dy where act let y pass
 *   group_norm_backward   dx = (gamma d - (sum gamma d + u sum gamma d u) / n)
 *                         / sqrt(variance + epsilon)
 *   group_norm_total      dbeta = sum d, dgamma = sum d u, over tiles, parts and lanes
 *
 * x, y, dy, dx: stored [tiles][channels][pixels][LANES]; sums: [tiles][channels][parts][2]
 * [LANES]; saved: [tiles][sets][2][LANES]; gamma, beta: [channels] or null; dgamma, dbeta:
 * [channels] of every shard, dw_shard apart. A part is part_pixels pixels, or what is left.
 * Every lane has sums of its own: over 64 pixels, then over those, parts, and channels.
 * In a dead lane dy is 0, and so are sums and dx.
 *
 * -D: RELU: 0 or 1; ALONE: the group of a set makes its sums itself; STREAM: y is too large for
 * caches.
 * Group ids: 0: set if ALONE, else channel, of total: channel; 1: tile, of total: shard; 2:
 * part.
 */
#include "lib/hints.cl"
#include "lib/real.cl"

#include "lib/gate.cl"
#include "lib/put.cl"
#include "lib/sum.cl"
#include "ops/args.h"

#define CHUNK 64
#define SETS (a.channels / a.set_channels)
#define STATISTICS ((group.tile * SETS + group.set) * 2 * PARTS + PART)

/* Where a channel begins, and the sums of a part of it. */
#define PLANE(channel) ((group.tile * a.channels + (channel)) * a.pixels * PARTS + PART)
#define SUMS(channel, part)                                                                    \
    (((group.tile * a.channels + (channel)) * a.parts + (part)) * 2 * PARTS + PART)

/* What a group works on. channel: meaningless if ALONE */
struct group {
    size_t tile;
    int set, channel, part;
};

INLINE struct group group_at(size_t tile, int set_or_channel, int part,
                             const struct lk_group_norm *a)
{
    struct group group;
    group.tile = tile;
    group.set = set_or_channel / (ALONE ? 1 : a->set_channels);
    group.channel = set_or_channel;
    group.part = part;
    return group;
}

INLINE struct group first_pass(const struct lk_group_norm *a)
{
    return group_at(get_group_id(1), get_group_id(0), get_group_id(2), a);
}

/* The second pass over x goes backwards, groups and pixels: what the first one has read last is
 * still in caches. */
INLINE struct group second_pass(const struct lk_group_norm *a)
{
    return group_at(get_num_groups(1) - 1 - get_group_id(1),
                    get_num_groups(0) - 1 - get_group_id(0),
                    get_num_groups(2) - 1 - get_group_id(2), a);
}

struct pair {
    V plain, product;
};

struct range {
    int first, last;
};

INLINE struct range part_of(const struct lk_group_norm *a, int part)
{
    struct range pixels;
    pixels.first = part * a->part_pixels;
    pixels.last = min(pixels.first + a->part_pixels, a->pixels);
    return pixels;
}

/* Sums of x - x0 and its square; x: the plane. */
INLINE struct pair sum_values(__global const S *x, V x0, struct range pixels)
{
    struct pair sum = {(V)0, (V)0};
    for (int i0 = pixels.first; i0 < pixels.last; i0 += CHUNK) {
        V s = (V)0, q = (V)0;
        for (int i = i0; i < min(i0 + CHUNK, pixels.last); i++) {
            const V d = LOAD(x + i * PARTS) - x0;
            s += d;
            q = FMA(d, d, q);
        }
        sum.plain += s;
        sum.product += q;
    }
    return sum;
}

/* Sums of d and d u. */
INLINE struct pair sum_gradients(__global const S *x, __global const S *y,
                                 __global const S *dy, V mean, V root, struct range pixels)
{
    struct pair sum = {(V)0, (V)0};
    for (int i0 = pixels.first; i0 < pixels.last; i0 += CHUNK) {
        V s = (V)0, q = (V)0;
        for (int i = i0; i < min(i0 + CHUNK, pixels.last); i++) {
            const V d = pass(LOAD(dy + i * PARTS), RELU ? LOAD(y + i * PARTS) : (V)0);
            s += d;
            q = FMA(d, (LOAD(x + i * PARTS) - mean) * root, q);
        }
        sum.plain += s;
        sum.product += q;
    }
    return sum;
}

KERNEL void group_norm_sums(__global const S *restrict x, __global V *restrict sums,
                            struct lk_group_norm a)
{
    const struct group group = first_pass(&a);
    const int c = group.channel, part = group.part;
    const V x0 = LOAD(x + PLANE(group.set * a.set_channels));
    const struct pair sum = sum_values(x + PLANE(c), x0, part_of(&a, part));
    sums[SUMS(c, part)] = sum.plain;
    sums[SUMS(c, part) + PARTS] = sum.product;
}

KERNEL void group_norm_forward(__global const S *restrict x, __global const V *restrict sums,
                               __global const real *restrict gamma,
                               __global const real *restrict beta, __global S *restrict y,
                               __global V *restrict saved, real epsilon, struct lk_group_norm a)
{
    const struct group group = second_pass(&a);
    const int begin = group.set * a.set_channels, end = begin + a.set_channels;
    const V x0 = LOAD(x + PLANE(begin));
    struct pair all = {(V)0, (V)0};
    for (int c = begin; c < end; c++)
        for (int part = 0; part < a.parts; part++) {
#if ALONE
            const struct pair sum = sum_values(x + PLANE(c), x0, part_of(&a, part));
#else
            const struct pair sum = {sums[SUMS(c, part)], sums[SUMS(c, part) + PARTS]};
#endif
            all.plain += sum.plain;
            all.product += sum.product;
        }
    const real n = (real)a.set_channels * (real)a.pixels;
    const V off = all.plain / n, mean = x0 + off;
    const V variance = all.product / n - off * off;
    const V root = (V)(1) / sqrt((variance < (V)0 ? (V)0 : variance) + epsilon);
    const int teller = ALONE ? group.channel : begin;
    if (saved && group.part == 0 && group.channel == teller) {
        saved[STATISTICS] = mean;
        saved[STATISTICS + PARTS] = root;
    }
    const struct range pixels = part_of(&a, group.part);
    for (int c = ALONE ? end - 1 : group.channel; c >= (ALONE ? begin : group.channel); c--) {
        const V times = root * (gamma ? gamma[c] : (real)1), plus = beta ? beta[c] : (real)0;
        const size_t at = PLANE(c);
        for (int i = pixels.last - 1; i >= pixels.first; i--) {
            const V v = FMA(LOAD(x + at + i * PARTS) - mean, times, plus);
            PUT(y + at + i * PARTS, RELU ? (v > (V)0 ? v : (V)0) : v);
        }
    }
}

KERNEL void group_norm_gradients(__global const S *restrict x, __global const S *restrict y,
                                 __global const S *restrict dy,
                                 __global const V *restrict saved, __global V *restrict sums,
                                 struct lk_group_norm a)
{
    const struct group group = first_pass(&a);
    const int c = group.channel, part = group.part;
    const struct pair sum =
        sum_gradients(x + PLANE(c), RELU ? y + PLANE(c) : 0, dy + PLANE(c), saved[STATISTICS],
                      saved[STATISTICS + PARTS], part_of(&a, part));
    sums[SUMS(c, part)] = sum.plain;
    sums[SUMS(c, part) + PARTS] = sum.product;
}

KERNEL void group_norm_backward(__global const S *restrict x, __global const S *restrict y,
                                __global const S *restrict dy, __global const V *restrict saved,
                                __global V *restrict sums, __global const real *restrict gamma,
                                __global S *restrict dx, struct lk_group_norm a)
{
    const struct group group = second_pass(&a);
    const int begin = group.set * a.set_channels, end = begin + a.set_channels;
    const V mean = saved[STATISTICS], root = saved[STATISTICS + PARTS];
    struct pair all = {(V)0, (V)0};
    for (int c = begin; c < end; c++)
        for (int part = 0; part < a.parts; part++) {
#if ALONE
            const struct pair sum =
                sum_gradients(x + PLANE(c), RELU ? y + PLANE(c) : 0, dy + PLANE(c), mean, root,
                              part_of(&a, part));
            if (sums) {
                sums[SUMS(c, part)] = sum.plain;
                sums[SUMS(c, part) + PARTS] = sum.product;
            }
#else
            const struct pair sum = {sums[SUMS(c, part)], sums[SUMS(c, part) + PARTS]};
#endif
            const V times = gamma ? gamma[c] : (real)1;
            all.plain = FMA(sum.plain, times, all.plain);
            all.product = FMA(sum.product, times, all.product);
        }
    if (!dx)
        return;
    const real n = (real)a.set_channels * (real)a.pixels;
    const V plain = all.plain / n, product = all.product / n;
    const struct range pixels = part_of(&a, group.part);
    for (int c = ALONE ? end - 1 : group.channel; c >= (ALONE ? begin : group.channel); c--) {
        const V times = gamma ? gamma[c] : (real)1;
        const size_t at = PLANE(c);
        for (int i = pixels.last - 1; i >= pixels.first; i--) {
            const size_t k = at + i * PARTS;
            const V d = pass(LOAD(dy + k), RELU ? LOAD(y + k) : (V)0) * times;
            const V u = (LOAD(x + k) - mean) * root;
            PUT(dx + k, (d - FMA(u, product, plain)) * root);
        }
    }
}

KERNEL void group_norm_total(__global const V *restrict sums, __global real *restrict dgamma,
                             __global real *restrict dbeta, int dw_shard, int shard_tiles,
                             struct lk_group_norm a, __local V *scratch)
{
    const int c = get_group_id(0), shard = get_group_id(1);
    V plain = (V)0, product = (V)0;
    for (int t = 0; t < shard_tiles; t++)
        for (int part = 0; part < a.parts; part++) {
            const size_t tile = (size_t)shard * shard_tiles + t;
            const size_t at = ((tile * a.channels + c) * a.parts + part) * 2 * PARTS + PART;
            plain += sums[at];
            product += sums[at + PARTS];
        }
    const real beta = sum_lanes(plain, scratch), gamma = sum_lanes(product, scratch);
    if (PART != 0)
        return;
    if (dbeta)
        dbeta[(size_t)shard * dw_shard + c] = beta;
    if (dgamma)
        dgamma[(size_t)shard * dw_shard + c] = gamma;
}
