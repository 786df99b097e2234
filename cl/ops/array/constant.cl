/* Numbers that are the same for all samples.
 *
 *   constant_forward   y[i] = value[i]
 *   constant_backward  dx = 0
 *   constant_values    dvalue[i] = sum of dy[i] over a shard, tile by tile, then lanes
 *
 * Tensors: stored [tiles][count][LANES]; value: reals [count]. Group ids: 0: `each` elements;
 * 1: tile (constant_values: shard). scratch: PARTS values V of local memory.
 */
#include "lib/real.cl"
#include "lib/sum.cl"

KERNEL void constant_forward(__global const real *restrict value, __global S *restrict y,
                             int count, int each)
{
    const int first = get_group_id(0) * each, last = min(count, first + each);
    for (int i = first; i < last; i++)
        STORE(y + ((size_t)get_group_id(1) * count + i) * PARTS + PART, (V)(value[i]));
}

KERNEL void constant_backward(__global S *restrict dx, int count, int each)
{
    const int first = get_group_id(0) * each, last = min(count, first + each);
    for (int i = first; i < last; i++)
        STORE(dx + ((size_t)get_group_id(1) * count + i) * PARTS + PART, (V)(0));
}

KERNEL void constant_values(__global const S *restrict dy, __global real *restrict dw,
                            int count, int each, int shard_tiles, int dw_stride,
                            __local V *scratch)
{
    const int first = get_group_id(0) * each, last = min(count, first + each);
    const int shard = get_group_id(1);
    for (int i = first; i < last; i++) {
        V sum = (V)(0);
        for (int tile = shard * shard_tiles; tile < (shard + 1) * shard_tiles; tile++)
            sum += LOAD(dy + ((size_t)tile * count + i) * PARTS + PART);
        const real all = sum_lanes(sum, scratch);
        if (PART == 0)
            dw[(size_t)shard * dw_stride + i] = all;
    }
}
