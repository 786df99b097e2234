/* Dropout, forward and backward alike.
 *
 *   y[e] = x[e] * scale where the element's random number is at least `threshold`, else 0
 *
 * The number of element e of sample n is word e % 4 of lk_random(key, purpose, n, e/4);
 * n counts over the whole batch, from `first` on this device.
 *
 * Group ids: 0: `each` quadruples of elements; 1: tile. Work-items: PARTS of a tile.
 */
#include "lib/real.cl"
#include "lib/random.cl"

KERNEL void dropout(__global const S *restrict x, __global S *restrict y, int count, int each,
                    int first, int shard_samples, int shard_tiles, int key_low, int key_high,
                    int threshold, real scale)
{
    const int tile = get_group_id(1);
    const int start = first + tile / shard_tiles * shard_samples + tile % shard_tiles * LANES;
    const U sample = (uint)start + LANES_HERE;
    const int quads = (count + 3) / 4, begin = (int)get_group_id(0) * each;
    x += (size_t)tile * count * PARTS + PART;
    y += (size_t)tile * count * PARTS + PART;
    for (int quad = begin; quad < min(begin + each, quads); quad++) {
        const struct random4 r = random_bits((uint)key_low, (uint)key_high, RANDOM_DROPOUT,
                                             sample, (uint)quad, 0);
        const U bits[4] = {r.v0, r.v1, r.v2, r.v3};
        for (int k = 0; k < min(4, count - 4 * quad); k++) {
            const size_t at = (size_t)(4 * quad + k) * PARTS;
            const I kept = TO_I(bits[k] >= (U)(uint)threshold);
            STORE(y + at, kept ? LOAD(x + at) * scale : (V)0);
        }
    }
}
