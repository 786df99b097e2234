/* Which rows of a table a step has touched (src/optim/rows.c).
 *
 *   touched[row] = some number of g's row is not 0;  0 for `spare` rows behind the last
 *
 * g: the reals [rows][units] of the table's gradient, from element `from` on, read as the words
 * that hold them: so a number too small for some device's arithmetic counts on every device.
 * touched: int [rows + spare].
 *
 * Group ids: 0: `each` rows. -D: ITEMS: work-items, a power of two, which share a row.
 */
#include "lib/real.cl"
#include "lib/update.cl"

#if REAL_BYTES == 8
typedef ulong word;
#else
typedef uint word;
#endif
#define SIGN ((word)1 << (REAL_BYTES * 8 - 1))

UPDATE_KERNEL void rows_mark(__global const word *restrict g, int from, int units, int rows,
                             int spare, __global int *restrict touched, int each)
{
    __local word found[ITEMS];
    const int item = get_local_id(0);
    const int first = (int)get_group_id(0) * each, end = min(first + each, rows + spare);
    for (int row = first; row < end; row++) {
        __global const word *numbers = g + from + (size_t)row * units;
        const int count = row < rows ? units : 0;
        word bits = 0;
        for (int u = item; u < count; u += ITEMS)
            bits |= numbers[u];
        found[item] = bits;
        for (int other = ITEMS / 2; other > 0; other /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (item < other)
                found[item] |= found[item + other];
        }
        if (item == 0)
            touched[row] = (found[0] & ~SIGN) != 0;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
