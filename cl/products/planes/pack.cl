/* Weights as products over plane tiles read them:
 *
 *   planes_pack  packed = w * a, [groups][blocks of FILTERS][c][taps][FILTERS], with zeros for
 *                filters that there are not; behind them b of every filter of every block.
 *                a = 1, b: the bias or 0. With NORM: a = gamma / sqrt(variance + epsilon),
 *                b = (bias - mean) a + beta
 *
 * w: [c][taps][groups][filters]. With TURNED, for a data gradient, its c are the filters and
 * its filters the channels of w, and taps come from the last to the first. packed: from
 * packed_first on. -D: FILTERS; NORM, TURNED: 0 or 1. Group id 0: block of any group.
 */
#include "lib/real.cl"
#include "products/planes/norm.cl"

KERNEL void planes_pack(__global const real *restrict w, __global const real *restrict bias,
                        __global const real *restrict gamma, __global const real *restrict beta,
                        __global const real *restrict mean,
                        __global const real *restrict variance, real epsilon,
                        __global real *restrict packed, int packed_first, int groups, int rows,
                        int filters, int taps)
{
    packed += packed_first;
    const int blocks = (filters + FILTERS - 1) / FILTERS, block = get_group_id(0);
    const int first = block % blocks * FILTERS, base = block / blocks * filters + first;
    const int count = min(FILTERS, filters - first);
    __global real *to = packed + (size_t)block * rows * FILTERS;
    __global real *shift = packed + ((size_t)groups * blocks * rows + block) * FILTERS;
    real factor[FILTERS];
    for (int i = 0; i < FILTERS; i++) {
        factor[i] = fold_norm(base + min(i, count - 1), bias, gamma, beta, mean, variance,
                              epsilon, shift + i);
        factor[i] = i < count ? factor[i] : 0;
    }
#if TURNED
    const int inner = rows / taps; /* filters of w, which lie side by side */
    for (int row = 0; row < rows; row++) {
        const int tap = taps - 1 - row % taps, k = block / blocks * inner + row / taps;
        for (int i = 0; i < FILTERS; i++) {
            const size_t c = first + min(i, count - 1);
            to[(size_t)row * FILTERS + i] =
                w[(c * taps + tap) * groups * inner + k] * factor[i];
        }
    }
#else
    for (int row = 0; row < rows; row++)
        for (int i = 0; i < FILTERS; i++)
            to[(size_t)row * FILTERS + i] =
                w[(size_t)row * groups * filters + base + min(i, count - 1)] * factor[i];
#endif
}
