/* Weights as products over plane tiles read them:
 *
 *   planes_pack  packed = w * a, [groups][blocks of FILTERS][c][taps][FILTERS], with zeros for
 *                filters that there are not; behind them b of every filter of every block.
 *                a = 1, b: the bias or 0. With NORM: a = gamma / sqrt(variance + epsilon),
 *                b = (bias - mean) a + beta
 *
 * w: [c][taps][groups][filters]. -D: FILTERS; NORM: 0 or 1. Group id 0: block of any group.
 */
#include "lib/real.cl"
#include "products/planes/norm.cl"

KERNEL void planes_pack(__global const real *restrict w, __global const real *restrict bias,
                        __global const real *restrict gamma, __global const real *restrict beta,
                        __global const real *restrict mean,
                        __global const real *restrict variance, real epsilon,
                        __global real *restrict packed, int groups, int rows, int filters)
{
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
    for (int row = 0; row < rows; row++)
        for (int i = 0; i < FILTERS; i++)
            to[(size_t)row * FILTERS + i] =
                w[(size_t)row * groups * filters + base + min(i, count - 1)] * factor[i];
}
