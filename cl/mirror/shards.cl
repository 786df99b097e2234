/* Sums over shards along the fixed binary tree over shard numbers, ((0+1)+(2+3))+...
 *
 *   shards_sum      y[y_first + i] = tree over s of x[(shard + s) * stride + x_first + i];
 *                   adds: y[y_first + i] + that
 *   shards_join     y[lower + i] += y[higher + i]
 *   shards_place    y[s * stride + i] = x[(s - shift) * stride + i] where first <= s < end,
 *                   0 in the other shards; adds: y[..] + that
 *   shards_metrics  y[s * 32 + j] = tree over lanes of the sum over shard s's tiles of x
 *
 * sum: s < SHARDS = 2^LEVELS; offsets and stride in vectors; groups: GROUP vectors.
 * place: group ids: 0: GROUP vectors of a shard, 1: shard.
 * metrics: x: real [shards][shard_tiles][2][LANES], y: real [shards][32]; tiles in ascending
 * order, then the lanes as in lib/sum.cl; group ids: 0: shard s, 1: j.
 */
#include "lib/real.cl"
#include "lib/sum.cl"
#include "lib/update.cl"

/* Adds shard by shard, as a binary counter carries: level l of `open` holds the sum over a
 * finished subtree of 2^l shards, which waits for its other half. Shard s joins those of its
 * size to its left. */
UPDATE_KERNEL void shards_sum(__global const V *restrict x, __global V *restrict y, int vectors,
                              int stride, int shard, int x_first, int y_first, int adds)
{
    x += (size_t)shard * stride + x_first;
    y += y_first;
    FOR_EACH (i, vectors) {
        V open[LEVELS + 1];
        V sum = x[i];
        open[0] = sum;
        UNROLL for (int s = 1; s < 1 << LEVELS; s++)
        {
            sum = x[(size_t)s * stride + i];
            int level = 0;
            UNROLL for (; level < LEVELS && (s >> level & 1); level++)
                sum = open[level] + sum;
            open[level] = sum;
        }
        y[i] = adds ? y[i] + sum : sum;
    }
}

UPDATE_KERNEL void shards_join(__global V *y, int vectors, int lower, int higher)
{
    FOR_EACH (i, vectors)
        y[lower + i] = y[lower + i] + y[higher + i];
}

UPDATE_KERNEL void shards_place(__global const V *restrict x, __global V *restrict y,
                                int stride, int shift, int first, int end, int y_first,
                                int adds)
{
    const int s = (int)get_group_id(1);
    const bool is_here = s >= first && s < end;
    x += (size_t)(is_here ? s - shift : 0) * stride;
    y += y_first + (size_t)s * stride;
    FOR_EACH(i, stride)
    {
        const V placed = is_here ? x[i] : (V)0;
        y[i] = adds ? y[i] + placed : placed;
    }
}

KERNEL void shards_metrics(__global const V *restrict x, __global real *restrict y,
                           int shard_tiles)
{
    const int s = get_group_id(0), j = get_group_id(1);
#if PARTS > 1
    __local V scratch[PARTS];
#else
    __local V scratch[1];
#endif
    __global const V *from = x + ((size_t)s * shard_tiles * 2 + j) * PARTS + PART;
    V sum = from[0];
    for (int t = 1; t < shard_tiles; t++)
        sum = sum + from[(size_t)t * 2 * PARTS];
    const real total = sum_lanes(sum, scratch);
    if (PART == 0)
        y[s * 32 + j] = total;
}
