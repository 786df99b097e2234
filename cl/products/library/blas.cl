/* Finishes CLBlast's products: y = max(y + bias, least), [tiles][filters][pixels]. Group ids:
 * 0: filter, 1: tile. */
#include "lib/real.cl"

KERNEL void conv2d_finish(__global V *restrict y, __global const real *restrict bias,
                          real least, int pixels)
{
    const int k = get_group_id(0), filters = get_num_groups(0);
    const V b = bias ? bias[k] : (real)0;
    y += ((size_t)get_group_id(1) * filters + k) * (pixels * PARTS) + PART;
    for (int i = 0; i < pixels; i++) {
        const V v = y[i * PARTS] + b;
        y[i * PARTS] = v < (V)least ? (V)least : v;
    }
}
