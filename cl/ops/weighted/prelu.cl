/* A relu with a learned slope for negative x.
 *
 *   prelu_forward   y = x where x > 0, else slope[c] x
 *   prelu_backward  dx = dy where x > 0, else slope[c] dy; dslope[c] = sum of dy x where not
 *                   x > 0, over a shard, or a part of it
 *   prelu_total     adds the parts
 *
 * x, y, dy, dx: stored [tiles][channels][pixels][LANES]; slope: [channels]; dslope: [channels]
 * of every shard and part, to_shard and to_part apart. dx, dslope: null: not wanted. A part is
 * part_pixels pixels of a shard's run (lib/parts.cl), or what is left. Sums run over 64 terms,
 * then over those, then over lanes. In a dead lane dy is 0.
 *
 * -D: COLUMNS: channels of a group of backward.
 * Group ids: forward: 0: `each` rows; backward: 0: block of channels, 1: shard, 2: part; total:
 * 0: run of `each` channels, 1: shard.
 */
#include "lib/real.cl"

#include "lib/parts.cl"
#include "lib/sum.cl"
#include "ops/args.h"

#define CHUNK 64

KERNEL void prelu_forward(__global const S *restrict x, __global const real *restrict slope,
                          __global S *restrict y, int rows, int each, struct lk_prelu a)
{
    const int first = get_group_id(0) * each, last = min(rows, first + each);
    int c = first / a.pixels % a.channels, left = a.pixels - first % a.pixels;
    for (int row = first; row < last; row++) {
        const size_t at = (size_t)row * PARTS + PART;
        const V v = LOAD(x + at);
        STORE(y + at, v > (V)0 ? v : v * slope[c]);
        if (--left == 0) {
            left = a.pixels;
            c = c + 1 == a.channels ? 0 : c + 1;
        }
    }
}

/* `count` channels, a constant, from channel c on; to: where their sums go, or null. */
INLINE void differentiate(__global const S *restrict x, __global const real *restrict slope,
                          __global const S *restrict dy, __global S *restrict dx,
                          __global real *restrict to, const struct lk_prelu *a, int c,
                          const int count, __local V *scratch)
{
    const long begin = part_begin(get_group_id(2), a->run_pixels, a->part_pixels);
    const long end =
        part_end(begin, a->run_pixels, a->part_pixels, (long)a->shard_tiles * a->pixels);
    V sum[COLUMNS];
    for (int j = 0; j < count; j++)
        sum[j] = (V)0;
    for (long p = begin; p < end;) {
        const long tile = (long)get_group_id(1) * a->shard_tiles + p / a->pixels;
        const long first = p % a->pixels;
        const int run = (int)min(min((long)CHUNK, end - p), a->pixels - first);
        V s[COLUMNS];
        for (int j = 0; j < count; j++)
            s[j] = (V)0;
        for (int i = 0; i < run; i++)
            for (int j = 0; j < count; j++) {
                const size_t k =
                    ((tile * a->channels + c + j) * a->pixels + first + i) * PARTS + PART;
                const V v = LOAD(x + k), d = LOAD(dy + k);
                s[j] = FMA(d, v > (V)0 ? (V)0 : v, s[j]);
                if (dx)
                    STORE(dx + k, v > (V)0 ? d : d * slope[c + j]);
            }
        for (int j = 0; j < count; j++)
            sum[j] += s[j];
        p += run;
    }
    if (!to)
        return;
    for (int j = 0; j < count; j++) {
        const real all = sum_lanes(sum[j], scratch);
        if (PART == 0)
            to[c + j] = all;
    }
}

KERNEL void prelu_backward(__global const S *restrict x, __global const real *restrict slope,
                           __global const S *restrict dy, __global S *restrict dx,
                           __global real *restrict dslope, int to_shard, int to_part,
                           struct lk_prelu a, __local V *scratch)
{
    const int c = get_group_id(0) * COLUMNS;
    __global real *to =
        dslope ? dslope + get_group_id(1) * to_shard + get_group_id(2) * to_part : 0;
    if (c + COLUMNS <= a.channels)
        differentiate(x, slope, dy, dx, to, &a, c, COLUMNS, scratch);
    else
        for (int i = c; i < a.channels; i++)
            differentiate(x, slope, dy, dx, to, &a, i, 1, scratch);
}

KERNEL void prelu_total(__global const real *restrict parts, __global real *restrict dslope,
                        int dw_shard, int each, struct lk_prelu a)
{
    const int begin = get_group_id(0) * each, end = min(begin + each, a.channels);
    const size_t shard = get_group_id(1);
    for (int c = begin + PART; c < end; c += PARTS) {
        real sum = 0;
        for (int part = 0; part < a.parts; part++)
            sum += parts[(shard * a.parts + part) * a.channels + c];
        dslope[shard * dw_shard + c] = sum;
    }
}
