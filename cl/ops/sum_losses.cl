/* The sum of several losses of one model, each with its weight.
 *
 *   sum_losses_forward   y[0] = ((w0 x0[0] + w1 x1[0]) + w2 x2[0]) + ...; y[1] = x0[1]
 *   sum_losses_backward  dx[0] = weight * loss scale; dx[1] = 0
 *
 * in lanes that have a sample; 0 in others.
 *
 * x, y, dx: V [tiles][2][PARTS], reals even where activations are halves, as every loss writes
 * them: the loss of a sample and 1 for a right answer. Inputs that are not there are NULL.
 * Group id 0: tile. Work-items: PARTS of a tile.
 */
#include "lib/real.cl"

#include "lib/alive.cl"

INLINE V weighed(__global const V *x, size_t at, real weight)
{
    return x ? weight * x[at] : (V)(0);
}

KERNEL void sum_losses_forward(__global const V *x0, __global const V *x1,
                               __global const V *x2, __global const V *x3,
                               __global const V *x4, __global const V *x5,
                               __global const V *x6, __global const V *x7, __global V *y,
                               int samples, int shard_samples, int shard_tiles, real w0,
                               real w1, real w2, real w3, real w4, real w5, real w6, real w7)
{
    const int tile = get_group_id(0);
    const size_t at = (size_t)tile * 2 * PARTS + PART;
    const V alive = alive_lanes(tile, samples, shard_samples, shard_tiles);
    V sum = w0 * x0[at];
    sum += weighed(x1, at, w1);
    sum += weighed(x2, at, w2);
    sum += weighed(x3, at, w3);
    sum += weighed(x4, at, w4);
    sum += weighed(x5, at, w5);
    sum += weighed(x6, at, w6);
    sum += weighed(x7, at, w7);
    y[at] = alive * sum;
    y[at + PARTS] = alive * x0[at + PARTS];
}

KERNEL void sum_losses_backward(__global V *dx, real weight, int samples, int shard_samples,
                                int shard_tiles, __global const real *loss_scale)
{
    const int tile = get_group_id(0);
    const size_t at = (size_t)tile * 2 * PARTS + PART;
    const real times = loss_scale ? weight * loss_scale[0] : weight;
    dx[at] = times * alive_lanes(tile, samples, shard_samples, shard_tiles);
    dx[at + PARTS] = (V)(0);
}
