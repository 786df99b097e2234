/* A checksum of 32-bit words, the same in whatever order it is added up.
 *
 *   checksum        y[g] = sum of word[i] * (2 i + 1) mod 2^32, i in `each` rows of group g
 *   checksum_total  y[at] = sum of x[0..count-1]
 *
 * x: from row `first` on, rows of 32 words, numbered from there; one work-item a group. */
#define SINGLE_KERNEL __kernel __attribute__((reqd_work_group_size(1, 1, 1)))

SINGLE_KERNEL void checksum(__global const uint *restrict x, __global uint *restrict y,
                            int first, int rows, int each)
{
    const uint16 odd = (uint16)(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    const int begin = (int)get_group_id(0) * each, end = min(begin + each, rows);
    uint16 sum = 0;
    __global const uint16 *from = (__global const uint16 *)(x + (size_t)first * 32);
    for (int row = begin; row < end; row++)
        for (int part = 0; part < 2; part++) {
            const uint16 weight = odd + ((uint)row * 64u + (uint)part * 32u);
            sum += from[(size_t)row * 2 + part] * weight;
        }
    const uint8 a = sum.lo + sum.hi;
    const uint4 b = a.lo + a.hi;
    y[get_group_id(0)] = b.x + b.y + b.z + b.w;
}

SINGLE_KERNEL void checksum_total(__global const uint *restrict x, __global uint *restrict y,
                                  int count, int at)
{
    uint sum = 0;
    for (int i = 0; i < count; i++)
        sum += x[i];
    y[at] = sum;
}
