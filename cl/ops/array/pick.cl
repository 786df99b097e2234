/* Elements of a sample in another order, some of them several times or not at all.
 *
 *   pick_forward   y[i] = x[index[i]], or fill where index[i] is none of x
 *   pick_backward  dx[j] = sum of dy[i] over i with index[i] = j, from the first i on
 *   pick_index     the gradient of the index, which is 0
 *
 * x: stored [tiles][inputs][LANES]; y: stored [tiles][count][LANES]; index: reals [count].
 * Group ids: 0: `each` elements of y (pick_backward: of x); 1: tile (pick_index: shard).
 */
#include "lib/real.cl"

INLINE int place(__global const real *index, int i)
{
    return convert_int_sat(rint(index[i]));
}

KERNEL void pick_forward(__global const S *restrict x, __global const real *restrict index,
                         __global S *restrict y, int inputs, int count, int each, real fill)
{
    const int first = get_group_id(0) * each, last = min(count, first + each);
    const size_t tile = get_group_id(1);
    for (int i = first; i < last; i++) {
        const int j = place(index, i);
        const bool is_one = j >= 0 && j < inputs;
        STORE(y + (tile * count + i) * PARTS + PART,
              is_one ? LOAD(x + (tile * inputs + (is_one ? j : 0)) * PARTS + PART) : (V)(fill));
    }
}

KERNEL void pick_backward(__global const S *restrict dy, __global const real *restrict index,
                          __global S *restrict dx, int inputs, int count, int each)
{
    const int first = get_group_id(0) * each, last = min(inputs, first + each);
    const size_t tile = get_group_id(1);
    for (int j = first; j < last; j++)
        STORE(dx + (tile * inputs + j) * PARTS + PART, (V)(0));
    for (int i = 0; i < count; i++) {
        const int j = place(index, i);
        if (j < first || j >= last)
            continue;
        const size_t at = (tile * inputs + j) * PARTS + PART;
        STORE(dx + at, LOAD(dx + at) + LOAD(dy + (tile * count + i) * PARTS + PART));
    }
}

KERNEL void pick_index(__global real *restrict dw, int count, int each, int dw_stride)
{
    const int first = get_group_id(0) * each, last = min(count, first + each);
    if (PART == 0)
        for (int i = first; i < last; i++)
            dw[(size_t)get_group_id(1) * dw_stride + i] = 0;
}
