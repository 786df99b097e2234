/* Local response normalization over the channels of every pixel.
 *
 *   response_forward   y[c] = x[c] f(s[c]), f(s) = s^-beta,
 *                      s[c] = bias + alpha sum x[j]^2, j from c - BEFORE to c + BEHIND
 *   response_backward  dx[c] = dy[c] f(s[c]) - 2 alpha beta x[c] sum dy[j] x[j] f(s[j]) / s[j],
 *                      j from c - BEHIND to c + BEFORE: those whose sums have x[c]
 *
 * x, y, dy, dx: stored [tiles][channels][pixels][LANES]; alpha: divided by SIZE already.
 * -D: SIZE: channels of a sum; POWER: beta in percent, where roots make it, else 0; BLOCK:
 * pixels of a group. recent: local memory of 2 SIZE BLOCK rows: what is added for the last
 * SIZE channels, and their f.
 *
 * Group ids: 0: block of pixels, 1: tile.
 */
#include "lib/real.cl"
#include "ops/args.h"

#define BEFORE (SIZE / 2)
#define BEHIND ((SIZE - 1) / 2)
#define FIRST (((size_t)get_group_id(1) * a.channels * a.pixels + p) * PARTS + PART)

INLINE V inverse_power(V s, real beta)
{
#if POWER == 50
    return (V)(1) / sqrt(s);
#elif POWER == 75
    const V root = sqrt(s);
    return (V)(1) / (root * sqrt(root));
#elif POWER == 100
    return (V)(1) / s;
#else
    return pow(s, (V)(-beta));
#endif
}

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
            const V s = sum_squares(x + i * PARTS, step, c, a.channels, alpha, bias);
            const size_t k = c * step + i * PARTS;
            STORE(y + k, LOAD(x + k) * inverse_power(s, beta));
        }
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
        for (int i = 0; i < count; i++) {
            if (j < a.channels) {
                const size_t k = j * step + i * PARTS;
                const V s = sum_squares(x + i * PARTS, step, j, a.channels, alpha, bias);
                const V f = inverse_power(s, beta);
                const int slot = (j % SIZE * BLOCK + i) * PARTS;
                terms[slot] = LOAD(dy + k) * LOAD(x + k) * (f / s);
                factors[slot] = f;
            }
            if (c < 0)
                continue;
            V sum = (V)0;
            for (int t = max(c - BEHIND, 0); t <= min(j, a.channels - 1); t++)
                sum += terms[(t % SIZE * BLOCK + i) * PARTS];
            const size_t k = c * step + i * PARTS;
            const V f = factors[(c % SIZE * BLOCK + i) * PARTS];
            STORE(dx + k, LOAD(dy + k) * f - times * LOAD(x + k) * sum);
        }
    }
}
