/* y += x over [rows][LANES] reals. Group id 0: chunks of `chunk` rows; work-items: PARTS of a
 * row. */
#include "lib/real.cl"

KERNEL void accumulate(__global const V *restrict x, __global V *restrict y, int rows,
                       int chunk)
{
    const int first = get_group_id(0) * chunk, last = min(first + chunk, rows);
    for (int row = first; row < last; row++)
        y[(size_t)row * PARTS + PART] += x[(size_t)row * PARTS + PART];
}
