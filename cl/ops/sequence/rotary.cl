/* Turns pairs of a head's numbers by an angle that grows with the time step, so that products
 * of two steps depend on their distance.
 *
 *   y[i]          = x[i] cos(a) - x[i + half] sin(a)        i < half, a = turn t e^(-2 i decay)
 *   y[i + half]   = x[i + half] cos(a) + x[i] sin(a)
 *
 * for the heads of the first `turned` channels; the others are copied. Behind a sample's length
 * y is 0. The first time step is number `begin`. With turn -1 it is the gradient, of dy in
 * place of x. length: lib/steps.cl.
 *
 * Group ids: 0: time step; 1: tile. Work-items: PARTS of a tile.
 */
#include "lib/real.cl"
#include "lib/steps.cl"

KERNEL void rotary(__global const S *restrict x, __global const int *restrict length,
                   __global S *restrict y, int channels, int turned, int half_head, real decay,
                   real turn, int begin)
{
    const int t = get_group_id(0), steps = get_num_groups(0), tile = get_group_id(1);
    const I counts = (I)(t) < valid_steps_here(length, tile, steps);
    const size_t first = ((size_t)tile * steps + t) * channels * PARTS + PART;
    x += first;
    y += first;
    for (int i = 0; i < half_head; i++) {
        const real angle = (begin + t) * exp(-(real)(2 * i) * decay);
        const real c = cos(angle), s = turn * sin(angle);
        for (int k = i; k < turned; k += 2 * half_head) {
            const V a = LOAD(x + k * PARTS), b = LOAD(x + (k + half_head) * PARTS);
            STORE(y + k * PARTS, counts ? a * c - b * s : (V)(0));
            STORE(y + (k + half_head) * PARTS, counts ? b * c + a * s : (V)(0));
        }
    }
    for (int k = turned; k < channels; k++)
        STORE(y + k * PARTS, counts ? LOAD(x + k * PARTS) : (V)(0));
}
