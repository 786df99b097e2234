/* Copies 32-bit words before or behind a transfer, with a checksum by which the transfer can be
 * checked, that of cl/mirror/checksum.cl.
 *
 *   checked_copy     y[i] = x[i]; sums[g] = sum of x[i] * (2 i + 1) mod 2^32, over the words i
 *                    of group g: `each` of them
 *   checked_seal     y[at] = sum of sums[0..count-1]
 *   checked_compare  wrong[slot] += sum of sums[0..count-1] differs from x[at]
 *
 * -D: ITEMS: work-items of a group, a power of two. */
#define COPY_KERNEL __kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
#define SINGLE_KERNEL __kernel __attribute__((reqd_work_group_size(1, 1, 1)))

COPY_KERNEL void checked_copy(__global const uint *restrict x, __global uint *restrict y,
                              __global uint *restrict sums, int words, int each)
{
    __local uint all[ITEMS];
    const int item = (int)get_local_id(0), begin = (int)get_group_id(0) * each;
    const int end = min(begin + each, words);
    uint sum = 0;
    for (int i = begin + item; i < end; i += ITEMS) {
        const uint word = x[i];
        y[i] = word;
        sum += word * (2u * (uint)i + 1u);
    }
    all[item] = sum;
    for (int apart = ITEMS / 2; apart > 0; apart /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < apart)
            all[item] += all[item + apart];
    }
    if (item == 0)
        sums[get_group_id(0)] = all[0];
}

SINGLE_KERNEL void checked_seal(__global const uint *restrict sums, __global uint *restrict y,
                                int count, int at)
{
    uint sum = 0;
    for (int i = 0; i < count; i++)
        sum += sums[i];
    y[at] = sum;
}

SINGLE_KERNEL void checked_compare(__global const uint *restrict sums,
                                   __global const uint *restrict x,
                                   __global uint *restrict wrong, int count, int at, int slot)
{
    uint sum = 0;
    for (int i = 0; i < count; i++)
        sum += sums[i];
    wrong[slot] += sum != x[at];
}
