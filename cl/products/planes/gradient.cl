/* What gradients over plane tiles need beside the products.
 *
 *   planes_spread_rows   the plane to = x, a.stride_y rows and a.stride_x columns apart, with
 *                        zeros between: a.out_h x a.out_w of a.in_h x a.in_w
 *   planes_clear         0 in the lanes beyond planes of `pixels` pixels
 *   planes_unpool        dz[k] = dy of its 2x2 pool where it won, of height x width pixels, at:
 *                        its number; db[shard][k] = sum of dz. Null: dz, db: not wanted
 *
 * x, to, planes, dz, dy, at: [tiles][planes][vectors][VECTOR], from x_first and so on. Group
 * ids: 0: plane, or run of `each` planes, 1: tile; unpool: 0: filter k, 1: shard.
 */
#include "lib/real.cl"
#include "products/planes/args.h"

KERNEL void planes_spread_rows(__global const real *x, int x_first, __global real *to,
                               int to_first, struct lk_planes a GROUP_ARGS)
{
    const size_t plane = (size_t)GROUP_ID(1) * GROUP_COUNT(0) + GROUP_ID(0);
    x += x_first + plane * a.in_vectors * VECTOR;
    to += to_first + plane * a.out_vectors * VECTOR;
    for (int i = 0; i < a.out_vectors; i++)
        ROW_STORE(to + i * VECTOR, (V)0);
    for (int i = 0; i < a.in_h; i++)
        for (int j = 0; j < a.in_w; j++)
            to[i * a.stride_y * a.out_w + j * a.stride_x] = x[i * a.in_w + j];
}

KERNEL void planes_clear(__global real *planes, int count, int pixels, int each GROUP_ARGS)
{
    const int vectors = (pixels + VECTOR - 1) / VECTOR, first = GROUP_ID(0) * each;
    for (int i = first; i < min(first + each, count); i++) {
        __global real *plane = planes + ((size_t)GROUP_ID(1) * count + i) * vectors * VECTOR;
        for (int p = pixels; p < vectors * VECTOR; p++)
            plane[p] = 0;
    }
}

KERNEL void planes_unpool(__global const real *restrict dy, __global const uchar *restrict at,
                          __global real *dz, int dz_first, __global real *db, int db_shard,
                          int shard_tiles, int filters, int height, int width GROUP_ARGS)
{
    const int k = GROUP_ID(0), across = width / 2, pooled = height / 2 * across;
    const int from_plane = (pooled + VECTOR - 1) / VECTOR * VECTOR;
    const int to_plane = (height * width + VECTOR - 1) / VECTOR * VECTOR;
    real sum = 0;
    for (int t = 0; t < shard_tiles; t++) {
        const size_t plane = ((size_t)GROUP_ID(1) * shard_tiles + t) * filters + k;
        __global real *to = dz ? dz + dz_first + plane * to_plane : 0;
        for (int p = 0; to && p < to_plane; p++)
            to[p] = 0;
        for (int p = 0; p < pooled; p++) {
            const int which = at[plane * from_plane + p];
            const real d = which < 4 ? dy[plane * from_plane + p] : 0;
            sum += d;
            if (to && which < 4)
                to[(p / across * 2 + which / 2) * width + p % across * 2 + which % 2] = d;
        }
    }
    if (db)
        db[(size_t)GROUP_ID(1) * db_shard + k] = sum;
}
