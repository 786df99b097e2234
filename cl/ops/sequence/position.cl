/* Adds to every time step what tells its place: learned numbers, or sines.
 *
 *   position_forward   y[t,c] = x[t,c] + p[t,c]
 *   position_backward  dx[t,c] = dy[t,c]
 *   position_table     dw[t,c] = sum of dy[t,c] over the samples of a shard, tile by tile, then
 *                      lanes
 *
 * p is the parameter, or, where there is none (a null pointer), sin(t f) of even channels and
 * cos(t f) of odd ones, f = e^(-(c - c % 2) decay). Behind a sample's length y and dx are 0,
 * and dy counts for nothing. length: lib/steps.cl. In position_forward p begins with row
 * `begin`.
 *
 * Group ids: 0: time step; 1: tile (position_table: shard). Work-items: PARTS of a tile.
 */
#include "lib/real.cl"
#include "lib/steps.cl"
#include "lib/sum.cl"

INLINE real sine_of(int t, int c, real decay)
{
    const real angle = t * exp(-(real)(c - c % 2) * decay);
    return c % 2 == 0 ? sin(angle) : cos(angle);
}

KERNEL void position_forward(__global const S *restrict x, __global const int *restrict length,
                             __global const real *restrict table, __global S *restrict y,
                             int channels, real decay, int begin)
{
    const int t = get_group_id(0), steps = get_num_groups(0), tile = get_group_id(1);
    const I counts = (I)(t) < valid_steps_here(length, tile, steps);
    const size_t first = ((size_t)tile * steps + t) * channels * PARTS + PART;
    for (int c = 0; c < channels; c++) {
        const real place =
            table ? table[(begin + t) * channels + c] : sine_of(begin + t, c, decay);
        STORE(y + first + c * PARTS, counts ? LOAD(x + first + c * PARTS) + place : (V)(0));
    }
}

KERNEL void position_backward(__global const S *restrict dy,
                              __global const int *restrict length, __global S *restrict dx,
                              int channels)
{
    const int t = get_group_id(0), steps = get_num_groups(0), tile = get_group_id(1);
    const I counts = (I)(t) < valid_steps_here(length, tile, steps);
    const size_t first = ((size_t)tile * steps + t) * channels * PARTS + PART;
    for (int c = 0; c < channels; c++)
        STORE(dx + first + c * PARTS, counts ? LOAD(dy + first + c * PARTS) : (V)(0));
}

KERNEL void position_table(__global const S *restrict dy, __global const int *restrict length,
                           __global real *restrict dw, int channels, int shard_tiles,
                           int dw_stride, __local V *scratch)
{
    const int t = get_group_id(0), steps = get_num_groups(0), shard = get_group_id(1);
    for (int c = 0; c < channels; c++) {
        V sum = (V)(0);
        for (int tile = shard * shard_tiles; tile < (shard + 1) * shard_tiles; tile++) {
            const size_t at = (((size_t)tile * steps + t) * channels + c) * PARTS + PART;
            const I counts = (I)(t) < valid_steps_here(length, tile, steps);
            sum += counts ? LOAD(dy + at) : (V)(0);
        }
        const real all = sum_lanes(sum, scratch);
        if (PART == 0)
            dw[(size_t)shard * dw_stride + t * channels + c] = all;
    }
}
