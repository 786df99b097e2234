/* Adds the lanes of each group by lib/sum.cl, to be compared with sums on the host: y[g, l] =
 * sum over l of x[g, l], for every lane l.
 *
 *   x, y: [groups][LANES]
 *
 * Group id 0: g. Work-items: lanes. */
#include "lib/real.cl"
#include "lib/sum.cl"

KERNEL void subgroups_sum(__global const V *restrict x, __global real *restrict y)
{
    __local V scratch[PARTS];
    const size_t at = get_group_id(0) * PARTS + PART;
    y[at] = sum_lanes(x[at], scratch);
}
