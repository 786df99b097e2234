/* Depthwise convolution of images in plane tiles: y[c] = act(b[c] + sum over r, s of w[c,r,s]
 * x[c]), each x[c] as tap (r, s) sees it (lib/planes.cl).
 *
 * x, y: [tiles][channels][vectors][VECTOR]; packed: pack.cl with blocks of 1; scratch: an
 * arranged plane for every group, which stays in its caches. Sums run over r, s. -D: as
 * lib/planes.cl; RELU, ADDS as in convolve.cl. Group ids: 0: `each` channels, 1: tile.
 */
#include "lib/real.cl"
#include "products/planes/args.h"
#include "lib/planes.cl"
#include "products/planes/finish.cl"

#define TAPS (TAPS_Y * TAPS_X)

INLINE void convolve(const struct lk_planes *a, __global const real *x, __global const real *w,
                     real shift, __global const V *more, __global V *y)
{
    for (int i = 0; i < a->out_vectors; i++) {
        V sum = (V)shift;
        for (int r = 0; r < TAPS_Y; r++) {
            UNROLL
            for (int s = 0; s < TAPS_X; s++)
                sum = FMA((V)w[r * TAPS_X + s],
                          ROW_LOAD(x + TAP_AT(a, r, s) + i * VECTOR), sum);
        }
        y[i] = finish(sum, more + i);
    }
}

KERNEL void planes_depthwise(__global const real *restrict x,
                             __global const real *restrict packed,
                             __global const V *restrict more, __global V *restrict y,
                             __global real *restrict scratch, struct lk_planes a, int channels,
                             int each)
{
    const int first = get_group_id(0) * each, tile = get_group_id(1);
    scratch += (tile * get_num_groups(0) + get_group_id(0)) * ARRANGED(&a);
    for (int c = first; c < min(first + each, channels); c++) {
        const size_t plane = (size_t)tile * channels + c, to = plane * a.out_vectors;
        for (int s = 0; s < TAPS_X; s++)
            arrange_copy(&a, x + plane * a.in_vectors * VECTOR, scratch + s * a.copy, s, 0);
        convolve(&a, scratch, packed + c * TAPS, packed[channels * TAPS + c], more + to,
                 y + to);
    }
}
