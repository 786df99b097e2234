/* What a transposed convolution needs beside the products of its convolution:
 *
 *   conv2d_transpose_finish   y = act(y + bias[k]), in place; bias null: none
 *
 * y: stored [tiles][filters][pixels][LANES]. -D: RELU: 0 or 1.
 * Group ids: 0: `each` pixels; 1: filter k; 2: tile. Work-items: PARTS of a pixel.
 */
#include "lib/real.cl"

KERNEL void conv2d_transpose_finish(__global const real *restrict bias, __global S *restrict y,
                                    int pixels, int each)
{
    const int k = get_group_id(1), first = get_group_id(0) * each;
    const int last = min(first + each, pixels);
    const V b = bias ? bias[k] : (real)0;
    y += ((size_t)get_group_id(2) * get_num_groups(1) + k) * pixels * PARTS + PART;
    for (int i = first; i < last; i++) {
        const V v = LOAD(y + i * PARTS) + b;
        STORE(y + i * PARTS, RELU ? (v > (V)0 ? v : (V)0) : v);
    }
}
