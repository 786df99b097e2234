/* The weight gradient of the GPU class: parts, blocks, launches. See
 * cl/products/gpu/weights.cl.
 */
#include "products/gpu/weights.h"

#include "products/gpu/args.h"

#include "base/fail.h"
#include "products/kernel/geometry.h"
#include <stdio.h>

/* Parts decide the order of sums: they follow from the shape and the shard alone; of a sequence
 * not from how many steps it has, so the more blocks there are, the longer its parts. */
static int64_t count_parts(const struct lk_product_setup *setup,
                           const struct lk_product_shape *s, int64_t *part_pixels)
{
    enum { LEAST_PIXELS = 32, MOST_GROUPS = 512, FEW_BLOCKS = 16 };
    const int64_t rows = s->channels * s->axis[0].taps * s->axis[1].taps;
    const int64_t blocks = lk_divide_up(rows, 128) * lk_divide_up(s->filters, 128) * s->groups;
    const int64_t plane = s->axis[0].out * s->axis[1].out;
    *part_pixels = setup->run_tiles > 0 ? LEAST_PIXELS * lk_divide_up(blocks, FEW_BLOCKS)
                                        : lk_divide_up(plane * setup->tiling.shard_tiles,
                                                       lk_divide_up(MOST_GROUPS, blocks));
    if (*part_pixels < LEAST_PIXELS)
        *part_pixels = LEAST_PIXELS;
    return lk_count_parts(setup, plane, *part_pixels);
}

struct lk_gpu_product lk_gpu_weights_product(const struct lk_product_setup *setup,
                                             const struct lk_product_shape *s, int matrix)
{
    int64_t part_pixels;
    const int64_t parts = count_parts(setup, s, &part_pixels);
    return (struct lk_gpu_product){.use = LK_GPU_WEIGHTS,
                                   .matrix = matrix,
                                   .rows = s->channels * s->axis[0].taps * s->axis[1].taps,
                                   .columns = s->filters,
                                   .count = s->groups * parts * setup->tiling.shards};
}

enum lk_status lk_gpu_weights_prepare(const struct lk_product_setup *setup,
                                      struct lk_product_job *job, int matrix,
                                      struct lk_gpu_weights *w)
{
    const struct lk_product_shape *s = job->shape;
    const struct lk_gpu_product product = lk_gpu_weights_product(setup, s, matrix);
    const struct lk_geometry numbers = lk_geometry_of(s->axis);
    char geometry[LK_GEOMETRY_BYTES], tile[96], text[512];
    if (!lk_gpu_tile_choose(setup, &product, job->blocking, &w->tile))
        return lk_fail(LK_E_UNSUPPORTED, "%s: no tile fits the device", setup->node);
    lk_gpu_tile_print(&w->tile, matrix, tile, sizeof tile);
    lk_geometry_print(&numbers, LK_GEOMETRY_TAPS, geometry);
    snprintf(text, sizeof text, "%s%s", geometry, tile);
    LK_TRY(lk_product_kernel(setup, "products/gpu/weights", "conv2d_gpu_weights", text,
                             &w->kernel));
    w->parts = (struct lk_partial_sums){.parts = count_parts(setup, s, &w->part_pixels),
                                        .first = job->first,
                                        .count = s->groups * product.rows * product.columns};
    return lk_partial_sums_prepare(setup, &w->parts, &job->count);
}

enum lk_status lk_gpu_weights_enqueue(const struct lk_product_setup *setup,
                                      const struct lk_product_shape *s,
                                      const struct lk_gpu_weights *w,
                                      const struct lk_product_run *run)
{
    const struct lk_product_axis *y = &s->axis[0], *x = &s->axis[1];
    const struct lk_tiling *t = &setup->tiling;
    const struct lk_grid grid = {{s->groups * lk_divide_up(s->filters, w->tile.columns),
                                  lk_divide_up(s->channels * y->taps * x->taps, w->tile.rows),
                                  w->parts.parts * t->shards},
                                 lk_gpu_tile_items(&w->tile)};
    const struct lk_geometry geometry = lk_geometry_of(s->axis);
    const struct lk_gpu_sums args = {.groups = s->groups,
                                     .channels = s->channels,
                                     .filters = s->filters,
                                     .shard_tiles = t->shard_tiles,
                                     .parts = w->parts.parts,
                                     .run_pixels = lk_run_pixels(setup, y->out * x->out),
                                     .part_pixels = w->part_pixels};
    LK_TRY(LK_ENQUEUE(w->kernel, grid, LK_BUF(run->x), LK_INT(0), LK_BUF(run->dz),
                      LK_INT(run->dz_first),
                      LK_PARTIAL_SUMS_TO(&w->parts, run->workspace, run->dw, run->dw_stride),
                      LK_STRUCT(&args), LK_STRUCT(&geometry)));
    return lk_partial_sums_enqueue(setup, &w->parts, run->workspace, run->dw, run->dw_stride);
}
