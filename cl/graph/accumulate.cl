/* Adds gradients of a value with several readers: y += x over stored [rows][LANES]. Group id 0:
 * chunks of `chunk` rows; work-items: PARTS of a row. */
#include "lib/real.cl"

KERNEL void accumulate(__global const S *restrict x, __global S *restrict y, int rows,
                       int chunk)
{
    const int first = get_group_id(0) * chunk, last = min(first + chunk, rows);
    for (int row = first; row < last; row++) {
        const size_t at = (size_t)row * PARTS + PART;
        STORE(y + at, LOAD(y + at) + LOAD(x + at));
    }
}
