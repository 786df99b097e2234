/* Dropout, forward and backward alike.
 *
 *   y[e] = x[e] * scale where the element's random number is at least `threshold`, else 0
 *
 * The number of element e of a sample is word e % 4 of its quadruple e / 4 (lib/drop.cl).
 *
 * Group ids: 0: `each` quadruples of elements; 1: tile. Work-items: PARTS of a tile.
 */
#include "lib/real.cl"
#include "lib/random.cl"
#include "ops/args.h"
#include "lib/drop.cl"

KERNEL void dropout(__global const S *restrict x, __global S *restrict y, int count, int each,
                    struct lk_drop d, real scale)
{
    const int tile = get_group_id(1);
    const int quads = (count + 3) / 4, begin = (int)get_group_id(0) * each;
    x += (size_t)tile * count * PARTS + PART;
    y += (size_t)tile * count * PARTS + PART;
    for (int quad = begin; quad < min(begin + each, quads); quad++) {
        I kept[4];
        draw_kept(kept, d, tile, (uint)quad, 0);
        for (int k = 0; k < min(4, count - 4 * quad); k++) {
            const size_t at = (size_t)(4 * quad + k) * PARTS;
            STORE(y + at, kept[k] ? LOAD(x + at) * scale : (V)0);
        }
    }
}
