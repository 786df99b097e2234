/* Local response normalization over the channels of every pixel.
 *
 *   response_forward   y[c] = x[c] f(s[c]), f(s) = s^-beta,
 *                      s[c] = bias + alpha sum x[j]^2, j from c - BEFORE to c + BEHIND
 *   response_backward  dx[c] = dy[c] f(s[c]) - 2 alpha beta x[c] sum dy[j] x[j] f(s[j]) / s[j],
 *                      j from c - BEHIND to c + BEFORE: those whose sums have x[c]
 *
 * x, y, dy, dx: stored [tiles][channels][pixels][LANES]; alpha: divided by SIZE already.
 * -D: SIZE: channels of a sum; POWER: beta in percent, where roots make it, else 0; BLOCK:
 * pixels of a group; STREAM: y is too large for caches. recent: local memory of 2 SIZE BLOCK
 * rows: what is added for the last SIZE channels, and their f.
 *
 * Group ids: 0: block of pixels, 1: tile.
 */
#include "lib/hints.cl"
#include "lib/real.cl"

#include "lib/put.cl"
#include "ops/args.h"

#define BEFORE (SIZE / 2)
#define BEHIND ((SIZE - 1) / 2)
#define FIRST (((size_t)get_group_id(1) * a.channels * a.pixels + p) * PARTS + PART)

#define AHEAD 4 /* channels: how far ahead of sums their terms are fetched */

struct powers {
    V f, f_over_s;
};

#if POWER == 75 && VECTOR > 1 && REAL_BYTES == 4
/* s^(-1/4) by Newton's method, in a quarter of the time that roots and a division take: each
 * step squares the error of the first guess, which the exponent gives to 4 percent. */
INLINE struct powers powers_of(V s, real beta)
{
    V root = OF_BITS(0x4F58CAE4 - (BITS(s) >> 2));
    UNROLL for (int i = 0; i < 3; i++)
    {
        const V square = root * root;
        root = FMA(root * FMA(-s * square, square, (V)(1)), (V)(0.25f), root);
    }
    const V square = root * root;
    struct powers p;
    p.f = square * root;
    p.f_over_s = p.f * square * square;
    return p;
}
#else
INLINE struct powers powers_of(V s, real beta)
{
    struct powers p;
#if POWER == 50
    p.f = (V)(1) / sqrt(s);
#elif POWER == 75
    const V root = sqrt(s);
    p.f = (V)(1) / (root * sqrt(root));
#elif POWER == 100
    p.f = (V)(1) / s;
#else
    p.f = pow(s, (V)(-beta));
#endif
    p.f_over_s = p.f / s;
    return p;
}
#endif

/* x: the pixel, of channel 0; step: from channel to channel. */
INLINE V sum_squares(__global const S *x, size_t step, int c, int channels, real alpha,
                     real bias)
{
    V sum = (V)0;
    if (c >= BEFORE && c + BEHIND < channels) { /* all of them: the compiler knows how many */
        UNROLL for (int j = 0; j < SIZE; j++)
        {
            const V v = LOAD(x + (c - BEFORE + j) * step);
            sum = FMA(v, v, sum);
        }
    } else {
        for (int j = max(c - BEFORE, 0); j <= min(c + BEHIND, channels - 1); j++) {
            const V v = LOAD(x + j * step);
            sum = FMA(v, v, sum);
        }
    }
    return FMA((V)(alpha), sum, (V)(bias));
}

KERNEL void response_forward(__global const S *restrict x, __global S *restrict y, real alpha,
                             real beta, real bias, struct lk_response_norm a)
{
    const int p = get_group_id(0) * BLOCK, count = min(BLOCK, a.pixels - p);
    const size_t step = (size_t)a.pixels * PARTS;
    x += FIRST;
    y += FIRST;
    for (int c = 0; c < a.channels; c++)
        for (int i = 0; i < count; i++) {
            const size_t k = c * step + i * PARTS;
            PREFETCH(x + k + (BEHIND + AHEAD) * step);
            const V s = sum_squares(x + i * PARTS, step, c, a.channels, alpha, bias);
            PUT(y + k, LOAD(x + k) * powers_of(s, beta).f);
        }
}

/* The sum of the terms of channels `first` to `last`. */
INLINE V sum_terms(__local const V *terms, int first, int last)
{
    V sum = (V)0;
    int slot = first % SIZE;
    if (last - first + 1 == SIZE) { /* the compiler knows how many */
        UNROLL for (int t = 0; t < SIZE; t++)
        {
            sum += terms[slot * BLOCK * PARTS];
            slot = slot + 1 == SIZE ? 0 : slot + 1;
        }
    } else {
        for (int t = first; t <= last; t++)
            sum += terms[t % SIZE * BLOCK * PARTS];
    }
    return sum;
}

KERNEL void response_backward(__global const S *restrict x, __global const S *restrict dy,
                              __global S *restrict dx, real alpha, real beta, real bias,
                              struct lk_response_norm a, __local V *recent)
{
    const int p = get_group_id(0) * BLOCK, count = min(BLOCK, a.pixels - p);
    const size_t step = (size_t)a.pixels * PARTS;
    const real times = 2 * alpha * beta;
    __local V *terms = recent + PART, *factors = terms + SIZE * BLOCK * PARTS;
    x += FIRST;
    dy += FIRST;
    dx += FIRST;
    for (int j = 0; j < a.channels + BEFORE; j++) {
        const int c = j - BEFORE; /* the channel whose last term is that of j */
        for (int i = 0; i < (j < a.channels ? count : 0); i++) {
            const size_t k = j * step + i * PARTS;
            const int slot = (j % SIZE * BLOCK + i) * PARTS;
            PREFETCH(x + k + (BEHIND + AHEAD) * step);
            PREFETCH(dy + k + AHEAD * step);
            const V s = sum_squares(x + i * PARTS, step, j, a.channels, alpha, bias);
            const struct powers p = powers_of(s, beta);
            terms[slot] = LOAD(dy + k) * LOAD(x + k) * p.f_over_s;
            factors[slot] = p.f;
        }
        for (int i = 0; i < (c < 0 ? 0 : count); i++) {
            const size_t k = c * step + i * PARTS;
            const V f = factors[(c % SIZE * BLOCK + i) * PARTS];
            const V sum =
                sum_terms(terms + i * PARTS, max(c - BEHIND, 0), min(j, a.channels - 1));
            PUT(dx + k, LOAD(dy + k) * f - times * LOAD(x + k) * sum);
        }
    }
}
