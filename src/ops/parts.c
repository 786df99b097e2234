/* Divides sums into parts. */
#include "ops/parts.h"

enum { LEAST_PIXELS = 64 }; /* of a part */

int64_t lk_op_part_pixels(const struct lk_op_setup *setup, int64_t channels, int64_t pixels)
{
    const int64_t wanted = setup->tiling.vector == 1 ? 512 : 16;
    const int64_t parts =
        lk_least(lk_divide_up(wanted, channels), lk_divide_up(pixels, LEAST_PIXELS));
    return lk_divide_up(pixels, parts);
}

struct lk_op_parts lk_op_parts(const struct lk_op_setup *setup, int64_t channels,
                               int64_t tile_pixels, bool of_steps)
{
    const int64_t tiles = setup->tiling.shard_tiles, all = tiles * tile_pixels;
    struct lk_op_parts parts = {.run_pixels = of_steps ? tile_pixels : all};
    parts.pixels = of_steps ? LEAST_PIXELS : lk_op_part_pixels(setup, channels, all);
    parts.count = lk_parts_of_runs(all, parts.run_pixels, parts.pixels);
    return parts;
}
