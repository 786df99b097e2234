/* What the gradients of a convolution need beside the two large kernels.
 *
 *   conv2d_expand  dz[k, i, j] = dy[k, i, j] where relu let y pass (y > 0), or dy of the
 *                  2x2 pool where it won (`at` is its number); db[shard][part][k] = sum of dz
 *   conv2d_total   dw[shard][i] = sum over the parts of a shard, in order
 *
 * dy, y, at: [tiles][filters][height x width, or pooled]; dz: [tiles][filters][height][width].
 * Null: y: no relu; at: no pool; dz, db: not wanted. db: from db_first on, db_shard and db_part
 * apart. A part is part_pixels pixels of dy of a shard's run (lib/parts.cl), or what is left.
 *
 * Group ids: expand: 0: filter k, 1: shard, 2: part; total: 0: run of `each` numbers, 1: shard.
 */
#include "lib/real.cl"

#include "lib/parts.cl"
#include "lib/sum.cl"

/* `count` windows of an image, from number `first` on. */
INLINE V expand_pooled(__global const S *dy, __global const B *at, __global S *dz, int width,
                       int first, int count, V sum)
{
    int i = first / (width / 2), j = first % (width / 2);
    for (int w = first; w < first + count; w++) {
        const V d = LOAD(dy + w * PARTS);
        const I which = TO_I(at[w * PARTS]);
        sum += which < (I)4 ? d : (V)0;
        if (dz) {
            __global S *to = dz + (size_t)(2 * i * width + 2 * j) * PARTS;
            STORE(to, which == (I)0 ? d : (V)0);
            STORE(to + PARTS, which == (I)1 ? d : (V)0);
            STORE(to + width * PARTS, which == (I)2 ? d : (V)0);
            STORE(to + (width + 1) * PARTS, which == (I)3 ? d : (V)0);
        }
        if (++j == width / 2) {
            j = 0;
            i++;
        }
    }
    return sum;
}

/* Pixels whose loads a work-item starts together, and parts: a GPU waits for its memory. */
#if VECTOR == 1
#define PIXELS_AT_ONCE 8
#define PARTS_AT_ONCE 16
#else
#define PIXELS_AT_ONCE 1
#define PARTS_AT_ONCE 1
#endif
#define EACH(n) UNROLL for (int n = 0; n < PIXELS_AT_ONCE; n++)

INLINE V expand_plain(__global const S *dy, __global const S *y, __global S *dz, int first,
                      int count, V sum)
{
    const int end = first + count;
    V z[PIXELS_AT_ONCE];
    for (int i = first; i < end; i += PIXELS_AT_ONCE) {
        EACH(n) /* past the end the last one again */
            z[n] = LOAD(dy + (n ? min(i + n, end - 1) : i) * PARTS);
        if (y) {
            EACH(n)
                z[n] = LOAD(y + (n ? min(i + n, end - 1) : i) * PARTS) > (V)0 ? z[n] : (V)0;
        }
        EACH(n) if (n == 0 || i + n < end)
        {
            sum += z[n];
            if (dz)
                STORE(dz + (i + n) * PARTS, z[n]);
        }
    }
    return sum;
}

BODY void expand_group(__global const S *restrict dy, __global const S *restrict y,
                       __global const B *restrict at, __global S *restrict dz, int dz_first,
                       __global real *restrict db, int db_first, int db_shard, int db_part,
                       int shard_tiles, int run_pixels, int part_pixels, int filters,
                       int height, int width, __local V *scratch, int group_0, int group_1,
                       int group_2)
{
    const int k = group_0, shard = group_1, part = group_2;
    const int plane = height * width, pixels = at ? plane / 4 : plane;
    const long begin = part_begin(part, run_pixels, part_pixels);
    const long last = part_end(begin, run_pixels, part_pixels, (long)shard_tiles * pixels);
    V sum = 0;
    for (long p = begin; p < last;) {
        const int first = (int)(p % pixels), count = (int)min((long)pixels - first, last - p);
        const size_t image = ((size_t)shard * shard_tiles + p / pixels) * filters + k;
        const size_t from = image * pixels * PARTS + PART;
        __global S *to = dz ? dz + dz_first / VECTOR + image * plane * PARTS + PART : 0;
        sum = at ? expand_pooled(dy + from, at + from, to, width, first, count, sum)
                 : expand_plain(dy + from, y ? y + from : 0, to, first, count, sum);
        p += count;
    }
    const real total = sum_lanes(sum, scratch);
    if (db && PART == 0)
        db[db_first + (size_t)shard * db_shard + (size_t)part * db_part + k] = total;
}

KERNEL void conv2d_expand(__global const S *restrict dy, __global const S *restrict y,
                          __global const B *restrict at, __global S *restrict dz, int dz_first,
                          __global real *restrict db, int db_first, int db_shard, int db_part,
                          int shard_tiles, int run_pixels, int part_pixels, int filters,
                          int height, int width, __local V *scratch)
{
    expand_group(dy, y, at, dz, dz_first, db, db_first, db_shard, db_part, shard_tiles,
                 run_pixels, part_pixels, filters, height, width, scratch, get_group_id(0),
                 get_group_id(1), get_group_id(2));
}

BODY void total_group(__global const real *restrict parts, int first, int count, int each,
                      int parts_of_shard, __global real *restrict dw, int dw_stride,
                      int group_0, int group_1)
{
    const int i0 = group_0 * each, i1 = min(i0 + each, count), shard = group_1;
    parts += first + (size_t)shard * parts_of_shard * count;
    dw += (size_t)shard * dw_stride;
    int i = i0;
#if VECTOR > 1
    for (; i + VECTOR <= i1; i += VECTOR) {
        V sum = PASTE(vload, VECTOR)(0, parts + i);
        for (int p = 1; p < parts_of_shard; p++)
            sum += PASTE(vload, VECTOR)(0, parts + (size_t)p * count + i);
        PASTE(vstore, VECTOR)(sum, 0, dw + i);
    }
#endif
    for (i += PART; i < i1; i += PARTS) {
        real sum = parts[i];
        int p = 1;
#if VECTOR == 1
        for (; p + PARTS_AT_ONCE <= parts_of_shard; p += PARTS_AT_ONCE) {
            real next[PARTS_AT_ONCE];
            UNROLL for (int n = 0; n < PARTS_AT_ONCE; n++)
                next[n] = parts[(size_t)(p + n) * count + i];
            UNROLL for (int n = 0; n < PARTS_AT_ONCE; n++)
                sum += next[n];
        }
#endif
        for (; p < parts_of_shard; p++)
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
