/* Weight gradient of a convolution of images in plane tiles: dw[c,r,s,k] = sum over the samples
 * of a shard and their pixels of x[c], as tap (r, s) sees it, times dz[k].
 *
 *   planes_weights   sums of a part of a shard: a.part_vectors vectors of planes of dz, sample
 *                    after sample, lane by lane, then over lanes
 *
 * x: arranged as convolve.cl does, or with one tap perhaps the image itself; dz: [tiles][all
 * filters][vectors][VECTOR], 0 in dead lanes; sums: [c][taps][groups][filters] of every part,
 * `apart` reals from part to part. Rows are pairs of channel and tap. -D: as lib/planes.cl;
 * ROWS, FILTERS: of a block, whose sums are in registers. Group ids: 0: run of blocks of rows,
 * 1: group, 2: part of any shard.
 */
#include "lib/hints.cl"
#include "lib/real.cl"
#include "lib/sum.cl"
#include "products/planes/args.h"
#include "lib/planes.cl"

#define TAPS (TAPS_Y * TAPS_X)

/* Where row `row` begins in the images of a group. */
INLINE int row_at(const struct lk_plane_sums *a, int row)
{
    const int r = row % TAPS / TAPS_X, s = row % TAPS_X;
    return row / TAPS * (int)a->x_plane + s * (int)a->copy +
           r * GAP_Y % STRIDE_Y * (int)a->phase + r * GAP_Y / STRIDE_Y * (int)a->row;
}

/* ROWS x FILTERS sums over vectors `first` to end - 1 of the shard that x and dz begin with; of
 * those, `rows` x `filters` are stored. */
BODY void sum_block(const struct lk_plane_sums *a, __global const real *x,
                    __global const real *dz, __global real *to, int row, int rows, int filters,
                    int first, int end)
{
    const int x_sample = a->groups * a->channels * a->x_plane;
    const int plane = a->out_vectors * VECTOR, dz_sample = a->groups * a->filters * plane;
    int at[ROWS], of[FILTERS];
    V sum[ROWS][FILTERS];
    UNROLL
    for (int i = 0; i < ROWS; i++) {
        at[i] = row_at(a, row + min(i, rows - 1));
        UNROLL
        for (int k = 0; k < FILTERS; k++)
            sum[i][k] = (V)0;
    }
    UNROLL
    for (int k = 0; k < FILTERS; k++)
        of[k] = min(k, filters - 1) * plane;
    for (int p = first; p < end;) {
        const int sample = p / a->out_vectors, from = p % a->out_vectors;
        const int count = min((int)a->out_vectors - from, end - p);
        __global const real *v = x + (size_t)sample * x_sample + from * VECTOR;
        __global const real *d = dz + (size_t)sample * dz_sample + from * VECTOR;
        for (int i = 0; i < count; i++, v += VECTOR, d += VECTOR) {
            V seen[ROWS];
            UNROLL
            for (int j = 0; j < ROWS; j++)
                seen[j] = ROW_LOAD(v + at[j]);
            UNROLL
            for (int k = 0; k < FILTERS; k++) {
                const V z = ROW_LOAD(d + of[k]);
                UNROLL
                for (int j = 0; j < ROWS; j++)
                    sum[j][k] = FMA(seen[j], z, sum[j][k]);
            }
        }
        p += count;
    }
    UNROLL
    for (int i = 0; i < ROWS; i++) {
        UNROLL
        for (int k = 0; k < FILTERS; k++)
            if (i < rows && k < filters)
                to[(size_t)i * a->groups * a->filters + k] = sum_vector(sum[i][k]);
    }
}

KERNEL void planes_weights(__global const real *x, int x_first, __global const real *dz,
                           int dz_first, __global real *sums, int sums_first, int apart,
                           int parts, struct lk_plane_sums a GROUP_ARGS)
{
    const int group = GROUP_ID(1), shard = GROUP_ID(2) / parts, part = GROUP_ID(2) % parts;
    const int all = a.channels * TAPS, vectors = a.shard_tiles * a.out_vectors;
    const int first = part * a.part_vectors;
    const int end = min(first + (int)a.part_vectors, vectors);
    const size_t tile = (size_t)shard * a.shard_tiles;
    x += x_first + (tile * a.groups + group) * a.channels * a.x_plane;
    dz += dz_first + (tile * a.groups + group) * a.filters * a.out_vectors * VECTOR;
    sums += sums_first + (size_t)GROUP_ID(2) * apart + group * a.filters;
    for (int b = 0; b < a.blocks_each; b++) {
        const int row = (GROUP_ID(0) * a.blocks_each + b) * ROWS;
        for (int k = 0; k < a.filters && row < all; k += FILTERS)
            sum_block(&a, x, dz + (size_t)k * a.out_vectors * VECTOR,
                      sums + (size_t)row * a.groups * a.filters + k, row,
                      min(ROWS, all - row), min(FILTERS, (int)a.filters - k), first, end);
    }
}
