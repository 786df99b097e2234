/* Plans and adds sums that are made in parts. */
#include "products/kernel/partial_sums.h"

#include "base/fail.h"

int64_t lk_run_pixels(const struct lk_product_setup *setup, int64_t tile_pixels)
{
    return tile_pixels * (setup->run_tiles > 0 ? setup->run_tiles : setup->tiling.shard_tiles);
}

int64_t lk_count_parts(const struct lk_product_setup *setup, int64_t tile_pixels,
                       int64_t part_pixels)
{
    return lk_parts_of_runs(tile_pixels * setup->tiling.shard_tiles,
                            lk_run_pixels(setup, tile_pixels), part_pixels);
}

enum lk_status lk_partial_sums_prepare(const struct lk_product_setup *setup,
                                       struct lk_partial_sums *parts, int64_t *reals)
{
    *reals = 0;
    if (parts->parts == 1)
        return LK_OK;
    *reals = parts->count * parts->parts * setup->tiling.shards;
    return lk_product_kernel(setup, "products/gradient", "conv2d_total", NULL, &parts->total);
}

enum lk_status lk_partial_sums_enqueue(const struct lk_product_setup *setup,
                                       const struct lk_partial_sums *parts,
                                       const struct lk_buffer *workspace,
                                       struct lk_buffer *result, int64_t stride)
{
    const struct lk_tiling *t = &setup->tiling;
    /* On a GPU a number for each work-item: they wait for memory, part after part. */
    const int64_t each = t->vector > 1 ? 1024 : (int64_t)t->lanes;
    const struct lk_grid grid = {{lk_divide_up(parts->count, each), t->shards, 1},
                                 lk_product_items(setup)};
    if (parts->parts == 1)
        return LK_OK;
    return LK_ENQUEUE(parts->total, grid, LK_BUF(workspace), LK_INT(parts->first),
                      LK_INT(parts->count), LK_INT(each), LK_INT(parts->parts), LK_BUF(result),
                      LK_INT(stride));
}
