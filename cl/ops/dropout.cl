/* Dropout, forward and backward alike.
 *
 *   y[e] = x[e] * scale where the element's random number is at least `threshold`, else 0
 *
 * The number of element e of a sample is word e % 4 of its quadruple e / 4 (lib/drop.cl). Where
 * elements are dropped together, that of unit (e / run) % units is theirs.
 *
 * Group ids: 0: `each` quadruples of elements; 1: tile. Work-items: PARTS of a tile.
 */
#include "lib/real.cl"
#include "lib/random.cl"
#include "ops/args.h"
#include "lib/drop.cl"

/* Elements from `begin` up to `end` that are dropped together. */
INLINE void drop_units(__global const S *restrict x, __global S *restrict y, int begin, int end,
                       int tile, struct lk_drop d, real scale, int run, int units)
{
    I kept[4];
    int drawn = -1;
    for (int e = begin; e < end; e++) {
        const int unit = e / run % units;
        if (unit / 4 != drawn)
            draw_kept(kept, d, tile, (uint)(unit / 4), 0);
        drawn = unit / 4;
        const I here = unit % 4 < 2 ? (unit % 2 ? kept[1] : kept[0])
                                    : (unit % 2 ? kept[3] : kept[2]);
        STORE(y + (size_t)e * PARTS, here ? LOAD(x + (size_t)e * PARTS) * scale : (V)0);
    }
}

/* run: elements that follow one another and are dropped together; units: of a sample, 0: each
 * element is one */
KERNEL void dropout(__global const S *restrict x, __global S *restrict y, int count, int each,
                    struct lk_drop d, real scale, int run, int units)
{
    const int tile = get_group_id(1);
    const int quads = (count + 3) / 4, begin = (int)get_group_id(0) * each;
    x += (size_t)tile * count * PARTS + PART;
    y += (size_t)tile * count * PARTS + PART;
    if (units > 0) {
        drop_units(x, y, 4 * begin, min(4 * (begin + each), count), tile, d, scale, run, units);
        return;
    }
    for (int quad = begin; quad < min(begin + each, quads); quad++) {
        I kept[4];
        draw_kept(kept, d, tile, (uint)quad, 0);
        for (int k = 0; k < min(4, count - 4 * quad); k++) {
            const size_t at = (size_t)(4 * quad + k) * PARTS;
            STORE(y + at, kept[k] ? LOAD(x + at) * scale : (V)0);
        }
    }
}
