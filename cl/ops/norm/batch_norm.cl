/* Batch normalization of every channel c over the samples and pixels of a shard, of which n are
 * alive.
 *
 *   y = act(gamma u + beta), u = (x - mean) / sqrt(variance + epsilon)
 *
 *   batch_norm_sums       parts of sum (x - x0) and sum (x - x0)^2, x0: the shard's first x
 *   batch_norm_forward    from them mean and variance, into saved, and y
 *   batch_norm_gradients  parts of sum d and sum d u, d = dy where act let y pass
 *   batch_norm_backward   from them dbeta = sum d, dgamma = sum d u,
 *                         dx = gamma / sqrt(variance + epsilon) (d - (dbeta + u dgamma) / n),
 *                         and by how much moving averages are to fall, times the samples
 *
 * x, y, dy, dx: [tiles][channels][pixels]; saved: [shards][channels][mean, variance];
 * sums: [shards][parts][channels][2]; dgamma and so on: [channels] of every shard, dw_shard
 * apart. A part is part_pixels pixels of a shard, tiles in turn, or what is left.
 *
 * Sums run over 64 pixels, then over those, then over lanes, then over parts. On a GPU
 * work-item l adds parts l, l + PARTS and so on, and these sums are added as lanes are.
 *
 * -D: RELU: 0 or 1; ALONE: a shard is one part, whose group makes its sums itself; MOVING: mean
 * and variance are the moving ones, and dx = gamma / sqrt(variance + epsilon) d; LIVE: images
 * lie in plane tiles, and have so many pixels, whose vectors take the place of pixels above.
 *
 * Group ids: 0: channel, 1: shard, 2: part.
 */
#include "lib/real.cl"
#include "lib/gate.cl"
#include "lib/alive.cl"
#include "lib/sum.cl"
#include "ops/norm/batch_norm_area.cl"

#define CHUNK 64

/* Whether gamma and beta are trained. */
#ifndef SCALE
#define SCALE 1
#endif
#ifndef CENTER
#define CENTER 1
#endif

/* Pixels whose loads a work-item starts together: a GPU waits for its memory. */
#if VECTOR == 1
#define AT_ONCE 8
#define PIXEL(i, n, end) min((i) + (n), (end) - 1) /* past the end the last one again */
#define PART_IN_REVERSE ((int)get_num_groups(2) - 1 - (int)get_group_id(2))
#else
#define AT_ONCE 1
#define PIXEL(i, n, end) (i)
#define PART_IN_REVERSE ((int)get_group_id(2))
#endif
#define EACH(n) UNROLL for (int n = 0; n < AT_ONCE; n++)

/* How many samples the shard has. */
INLINE int shard_count(const struct area *a)
{
    return clamp(a->samples - SHARD * a->shard_samples, 0, a->shard_samples);
}

INLINE real first_value(const struct area *a, __global const S *x)
{
    const size_t image = (size_t)SHARD * a->shard_tiles * a->channels + CHANNEL;
    return LOAD_LANE((__global const stored *)(x + image * a->pixels * PARTS));
}

INLINE real root_of(real variance, real epsilon)
{
    return (real)1 / sqrt(variance + epsilon);
}

struct sums {
    real plain, product;
};

/* Adds a part's sums over the lanes, for all of its work-items. */
INLINE struct sums sum_over_lanes(V plain, V product, __local V *scratch)
{
    struct sums sums;
    sums.plain = sum_lanes(plain, scratch);
    sums.product = sum_lanes(product, scratch);
    return sums;
}

INLINE struct sums sum_values(const struct area *a, int part, __global const S *x,
                              __local V *scratch)
{
    struct run run;
    const real x0 = first_value(a, x);
    V plain = (V)(0), product = (V)(0);
    FOR_RUNS (run, a, part)
        for (int i0 = 0; i0 < run.count; i0 += CHUNK) {
            const int end = min(i0 + CHUNK, run.count);
            V s = (V)(0), q = (V)(0), v[AT_ONCE];
            for (int i = i0; i < end; i += AT_ONCE) {
                EACH(n)
                    v[n] = LOAD(x + run.at + PIXEL(i, n, end) * PARTS);
                EACH(n) {
                    const V d =
                        (v[n] - x0) * (i + n < end ? ALIVE(run, i + n) : (V)(0));
                    s += d;
                    q = FMA(d, d, q);
                }
            }
            plain += s;
            product += q;
        }
    return sum_over_lanes(plain, product, scratch);
}

INLINE struct sums sum_gradients(const struct area *a, int part, __global const S *x,
                                 __global const S *y, __global const S *dy, real mean,
                                 real root, __local V *scratch)
{
    struct run run;
    V plain = (V)(0), product = (V)(0);
    FOR_RUNS (run, a, part)
        for (int i0 = 0; i0 < run.count; i0 += CHUNK) {
            const int end = min(i0 + CHUNK, run.count);
            V s = (V)(0), q = (V)(0), d[AT_ONCE], u[AT_ONCE];
            for (int i = i0; i < end; i += AT_ONCE) {
                EACH(n) {
                    const size_t at = run.at + PIXEL(i, n, end) * PARTS;
                    d[n] = pass(LOAD(dy + at), RELU ? LOAD(y + at) : (V)(0));
                    u[n] = LOAD(x + at);
                }
                EACH(n) if (i + n < end)
                {
                    s += d[n];
                    q = FMA(d[n], (u[n] - mean) * root, q);
                }
            }
            plain += s;
            product += q;
        }
    return sum_over_lanes(plain, product, scratch);
}

INLINE __global real *sums_at(const struct area *a, __global real *sums, int part)
{
    return sums + (((size_t)SHARD * a->parts + part) * a->channels + CHANNEL) * 2;
}

INLINE void store_part(const struct area *a, __global real *sums, struct sums found)
{
    __global real *to = sums_at(a, sums, get_group_id(2));
    if (PART == 0) {
        to[0] = found.plain;
        to[1] = found.product;
    }
}

INLINE struct sums add_parts(const struct area *a, __global real *sums, __local V *scratch)
{
    struct sums all; /* not initialized by {0, 0}: Clover's compiler dies of that */
    all.plain = all.product = 0;
    for (int part = VECTOR == 1 ? PART : 0; part < a->parts; part += VECTOR == 1 ? PARTS : 1) {
        __global const real *from = sums_at(a, sums, part);
        all.plain += from[0];
        all.product += from[1];
    }
#if VECTOR == 1
    return sum_over_lanes(all.plain, all.product, scratch);
#else
    return all;
#endif
}

KERNEL void batch_norm_sums(__global const S *restrict x, __global real *restrict sums, AREA,
                            __local V *scratch)
{
    const struct area a = THE_AREA;
    store_part(&a, sums, sum_values(&a, get_group_id(2), x, scratch));
}

KERNEL void batch_norm_forward(__global const S *restrict x, __global real *restrict sums,
                               __global const real *restrict gamma,
                               __global const real *restrict beta,
                               __global const real *restrict moving_mean,
                               __global const real *restrict moving_variance,
                               __global S *restrict y, __global real *restrict saved,
                               real epsilon, AREA, __local V *scratch)
{
    const struct area a = THE_AREA;
    const int part = PART_IN_REVERSE, c = CHANNEL;
#if MOVING
    const real mean = moving_mean[c], variance = moving_variance[c];
#else
    const struct sums all =
        ALONE ? sum_values(&a, part, x, scratch) : add_parts(&a, sums, scratch);
    const real n = max((real)shard_count(&a) * PIXELS(&a), (real)1), off = all.plain / n;
    const real mean = first_value(&a, x) + off;
    const real variance = max(all.product / n - off * off, (real)0);
    if (PART == 0 && part == 0) {
        saved[((size_t)SHARD * channels + c) * 2] = mean;
        saved[((size_t)SHARD * channels + c) * 2 + 1] = variance;
    }
#endif
    const real times = gamma[c] * root_of(variance, epsilon), plus = beta[c];
    struct run run;
    V u[AT_ONCE];
    FOR_RUNS (run, &a, part)
        for (int i = 0; i < run.count; i += AT_ONCE) {
            EACH(n)
                u[n] = LOAD(x + run.at + PIXEL(i, n, run.count) * PARTS);
            EACH(n) if (i + n < run.count)
            {
                const V v = FMA(u[n] - mean, (V)(times), (V)(plus));
                STORE(y + run.at + (i + n) * PARTS, RELU ? (v > (V)(0) ? v : (V)(0)) : v);
            }
        }
}

KERNEL void batch_norm_gradients(__global const S *restrict x, __global const S *restrict y,
                                 __global const S *restrict dy,
                                 __global const real *restrict saved,
                                 __global real *restrict sums, real epsilon, AREA,
                                 __local V *scratch)
{
    const struct area a = THE_AREA;
    const size_t at = ((size_t)SHARD * channels + CHANNEL) * 2;
    store_part(&a, sums,
               sum_gradients(&a, get_group_id(2), x, y, dy, saved[at],
                             root_of(saved[at + 1], epsilon), scratch));
}

KERNEL void batch_norm_backward(
    __global const S *restrict x, __global const S *restrict y, __global const S *restrict dy,
    __global const real *restrict gamma, __global const real *restrict moving_mean,
    __global const real *restrict moving_variance, __global const real *restrict saved,
    __global real *restrict sums, __global S *restrict dx, __global real *restrict dgamma,
    __global real *restrict dbeta, __global real *restrict dmean,
    __global real *restrict dvariance, int dw_shard, real epsilon, real rate,
    __global const real *restrict loss_scale, AREA, __local V *scratch)
{
    const struct area a = THE_AREA;
    const int part = PART_IN_REVERSE, c = CHANNEL;
#if MOVING
    const real mean = moving_mean[c], root = root_of(moving_variance[c], epsilon);
    const real plain = 0, product = 0;
#else
    const size_t at = ((size_t)SHARD * channels + c) * 2;
    const real mean = saved[at], variance = saved[at + 1], root = root_of(variance, epsilon);
    const int count = shard_count(&a);
    const real n = max((real)count * PIXELS(&a), (real)1);
    const struct sums all = ALONE
                                ? sum_gradients(&a, part, x, y, dy, mean, root, scratch)
                                : add_parts(&a, sums, scratch);
    const real plain = all.plain / n, product = all.product / n;
    if (PART == 0 && part == 0) {
        const size_t to = (size_t)SHARD * dw_shard + c;
        const real times = rate * (real)count * (loss_scale ? loss_scale[0] : (real)1);
        dgamma[to] = SCALE ? all.product : (real)0;
        dbeta[to] = CENTER ? all.plain : (real)0;
        dmean[to] = (moving_mean[c] - mean) * times;
        dvariance[to] = (moving_variance[c] - variance * (n / max(n - 1, (real)1))) * times;
    }
#endif
    const real times = gamma[c] * root;
    struct run run;
    if (!dx)
        return;
    V d[AT_ONCE], u[AT_ONCE];
    FOR_RUNS (run, &a, part)
        for (int i = 0; i < run.count; i += AT_ONCE) {
            EACH(n) {
                const size_t k = run.at + PIXEL(i, n, run.count) * PARTS;
                d[n] = pass(LOAD(dy + k), RELU ? LOAD(y + k) : (V)(0));
                u[n] = (LOAD(x + k) - mean) * root;
            }
            EACH(n) if (i + n < run.count)
                STORE(dx + run.at + (i + n) * PARTS,
                      (d[n] - FMA(u[n], (V)(product), (V)(plain))) * times *
                          ALIVE(run, i + n));
        }
}
