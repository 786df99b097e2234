/* What the gradients of a convolution need beside the two large kernels.
 *
 *   conv2d_expand  dz[k, i, j] = dy[k, i, j] where relu let y pass (y > 0), or dy of the
 *                  2x2 pool where it won (`at` is its number); db[shard][k] = sum of dz
 *   conv2d_total   dw[shard][i] = sum over the parts of a shard, in order
 *
 * dy, y, at: [tiles][filters][height x width, or pooled]; dz: [tiles][filters][height][width].
 * Null: y: no relu; at: no pool; dz, db: not wanted.
 *
 * Group ids: expand: 0: filter k, 1: shard; total: 0: run of `each` numbers, 1: shard.
 */
#include "lib/real.cl"
#include "lib/sum.cl"

INLINE V expand_pooled(__global const V *dy, __global const B *at, __global V *dz, int height,
                       int width, V sum)
{
    for (int i = 0; i < height; i += 2)
        for (int j = 0; j < width; j += 2) {
            const int from = (i / 2 * (width / 2) + j / 2) * PARTS;
            const V d = dy[from];
            const I which = TO_I(at[from]);
            sum += which < (I)4 ? d : (V)0;
            if (dz) {
                __global V *to = dz + (i * width + j) * PARTS;
                to[0] = which == (I)0 ? d : (V)0;
                to[PARTS] = which == (I)1 ? d : (V)0;
                to[width * PARTS] = which == (I)2 ? d : (V)0;
                to[(width + 1) * PARTS] = which == (I)3 ? d : (V)0;
            }
        }
    return sum;
}

INLINE V expand_plain(__global const V *dy, __global const V *y, __global V *dz, int count,
                      V sum)
{
    for (int i = 0; i < count; i++) {
        const V d = dy[i * PARTS];
        const V z = y ? (y[i * PARTS] > (V)0 ? d : (V)0) : d;
        sum += z;
        if (dz)
            dz[i * PARTS] = z;
    }
    return sum;
}

BODY void expand_group(__global const V *restrict dy, __global const V *restrict y,
                       __global const B *restrict at, __global V *restrict dz, int dz_first,
                       __global real *restrict db, int db_stride, int shard_tiles, int filters,
                       int height, int width, __local V *scratch, int group_0, int group_1)
{
    const int k = group_0, shard = group_1;
    const int plane = height * width, pooled = at ? plane / 4 : plane;
    V sum = 0;
    for (int t = shard * shard_tiles; t < (shard + 1) * shard_tiles; t++) {
        const size_t image = (size_t)t * filters + k, from = image * pooled * PARTS + PART;
        __global V *to = dz ? dz + dz_first / VECTOR + image * plane * PARTS + PART : 0;
        sum = at ? expand_pooled(dy + from, at + from, to, height, width, sum)
                 : expand_plain(dy + from, y ? y + from : 0, to, plane, sum);
    }
    const real total = sum_lanes(sum, scratch);
    if (db && PART == 0)
        db[(size_t)shard * db_stride + k] = total;
}

KERNEL void conv2d_expand(__global const V *restrict dy, __global const V *restrict y,
                          __global const B *restrict at, __global V *restrict dz, int dz_first,
                          __global real *restrict db, int db_stride, int shard_tiles,
                          int filters, int height, int width, __local V *scratch)
{
    expand_group(dy, y, at, dz, dz_first, db, db_stride, shard_tiles, filters, height, width,
                 scratch, get_group_id(0), get_group_id(1));
}

BODY void total_group(__global const real *restrict parts, int first, int count, int each,
                      int parts_of_shard, __global real *restrict dw, int dw_stride,
                      int group_0, int group_1)
{
    const int i0 = group_0 * each, i1 = min(i0 + each, count), shard = group_1;
    parts += first + (size_t)shard * parts_of_shard * count;
    dw += (size_t)shard * dw_stride;
    for (int i = i0 + PART; i < i1; i += PARTS) {
        real sum = parts[i];
        for (int p = 1; p < parts_of_shard; p++)
            sum += parts[(size_t)p * count + i];
        dw[i] = sum;
    }
}

KERNEL void conv2d_total(__global const real *restrict parts, int first, int count, int each,
                         int parts_of_shard, __global real *restrict dw, int dw_stride)
{
    total_group(parts, first, count, each, parts_of_shard, dw, dw_stride, get_group_id(0),
                get_group_id(1));
}
