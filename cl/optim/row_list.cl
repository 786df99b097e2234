/* Sums of a table's gradient that came as a list: of each place in a batch the row of the table
 * that it read, and what it adds to that row (src/optim/row_list.h).
 *
 *   row_list_keys  keys[i] = row of place i in the upper half, i in the lower; ~0: none of the
 *                  table's `rows`, whatever number came
 *   row_list_sort  keys in ascending order: the places of a row side by side, as in the batch
 *   row_list_sum   y[n] = sum of the places of the row whose first key is keys[n]: those of a
 *                  shard one after the other, beginning with 0, then over shards along the tree
 *                  of cl/mirror/shards.cl; numbers[n] = that row, -1: no row begins there;
 *                  where there are slots, slots[that row] = n
 *   row_list_clear slots[row] = -1 for the rows in numbers
 *
 * g: [1 << LEVELS][stride]: of each shard reals [places][units], then [places]: row + 1, or 0.
 * keys: [sorted], a power of two; where ITEMS is 1 as many follow, in which keys are sorted.
 * numbers: [all + spare]; y: reals [all][units].
 *
 * Group ids: keys, clear: 0: ITEMS keys; sum: 0: `each` keys. -D: ITEMS: work-items of a group.
 */
#include "lib/real.cl"
#include "lib/update.cl"

#define ROW_OF(key) ((int)((key) >> 32))
#define PLACE_OF(key) ((int)((key)&0x7fffffff))

UPDATE_KERNEL void row_list_keys(__global const real *restrict g, __global ulong *restrict keys,
                                 int places, int units, int stride, int rows, int all,
                                int sorted)
{
    const int i = (int)get_group_id(0) * ITEMS + (int)get_local_id(0);
    if (i >= sorted)
        return;
    const int shard = min(i, all - 1) / places, at = min(i, all - 1) % places;
    const real number = g[(size_t)shard * stride + (size_t)places * units + at];
    const bool is_row = i < all && number >= 1 && number <= (real)rows;
    keys[i] = is_row ? (ulong)((int)number - 1) << 32 | (ulong)i : ~(ulong)0;
}

#if ITEMS == 1
/* One item sorts by the digits of the row alone, from the last on: each round leaves keys with
 * the same digit as they were. Rounds go to and fro, so they are an even number. */
#define DIGIT(key) ((int)((key) >> (32 + 8 * round)) & 255)

UPDATE_KERNEL void row_list_sort(__global ulong *keys, int sorted)
{
    for (int round = 0; round < 4; round++) {
        __global const ulong *from = keys + round % 2 * sorted;
        __global ulong *to = keys + (round + 1) % 2 * sorted;
        int place[256], next = 0;
        for (int d = 0; d < 256; d++)
            place[d] = 0;
        for (int i = 0; i < sorted; i++)
            place[DIGIT(from[i])]++;
        for (int d = 0; d < 256; d++) {
            const int count = place[d];
            place[d] = next;
            next += count;
        }
        for (int i = 0; i < sorted; i++)
            to[place[DIGIT(from[i])]++] = from[i];
    }
}
#else
/* Bitonic: its steps depend on the number of keys alone, so work-items can share each. */
UPDATE_KERNEL void row_list_sort(__global ulong *keys, int sorted)
{
    for (int run = 2; run <= sorted; run *= 2)
        for (int far = run / 2; far > 0; far /= 2) {
            for (int i = (int)get_local_id(0); i < sorted / 2; i += ITEMS) {
                const int low = i / far * far + i, high = low + far;
                const ulong a = keys[low], b = keys[high];
                const bool ascends = (low & run) == 0;
                keys[low] = ascends ? min(a, b) : max(a, b);
                keys[high] = ascends ? max(a, b) : min(a, b);
            }
            barrier(CLK_GLOBAL_MEM_FENCE);
        }
}
#endif

/* The sum over all places of a row, whose keys begin with number n, of vector u of the row. */
INLINE V sum_places(__global const real *restrict g, __global const ulong *restrict keys, int n,
                    int places, int units, int stride, int all, int u)
{
    const int row = ROW_OF(keys[n]);
    V open[LEVELS + 1];
    for (int s = 0; s < 1 << LEVELS; s++) {
        __global const real *from = g + (size_t)s * stride + u;
        V sum = 0;
        for (; n < all && ROW_OF(keys[n]) == row && PLACE_OF(keys[n]) < (s + 1) * places; n++)
            sum = sum + ROW_LOAD(from + (size_t)(PLACE_OF(keys[n]) - s * places) * units);
        int level = 0;
        for (; s >> level & 1; level++)
            sum = open[level] + sum;
        open[level] = sum;
    }
    return open[LEVELS];
}

UPDATE_KERNEL void row_list_sum(__global const real *restrict g,
                                __global const ulong *restrict keys, __global real *restrict y,
                                __global int *restrict numbers, __global int *restrict slots,
                                int places, int units, int stride, int all, int spare,
                                int each)
{
    const int item = (int)get_local_id(0);
    const int first = (int)get_group_id(0) * each, end = min(first + each, all + spare);
    for (int n = first; n < end; n++) {
        const int row = n < all ? ROW_OF(keys[n]) : -1;
        const bool begins = row >= 0 && (n == 0 || ROW_OF(keys[n - 1]) != row);
        if (item == 0)
            numbers[n] = begins ? row : -1;
        if (item == 0 && begins && slots)
            slots[row] = n;
        for (int u = item * VECTOR; begins && u < units; u += ITEMS * VECTOR)
            ROW_STORE(y + (size_t)n * units + u,
                      sum_places(g, keys, n, places, units, stride, all, u));
    }
}

UPDATE_KERNEL void row_list_clear(__global const int *restrict numbers,
                                  __global int *restrict slots, int all)
{
    const int n = (int)get_group_id(0) * ITEMS + (int)get_local_id(0);
    if (n < all && numbers[n] >= 0)
        slots[numbers[n]] = -1;
}
