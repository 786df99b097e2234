/* Makes dz of dy in the workspace, and sums it for the bias, in parts that are then added. */
#include "products/expand.h"

#include "base/fail.h"

/* Parts decide the order of sums: they follow from the shape, the shard and the class alone; of
 * a sequence not from how many steps it has. A GPU gets more of them, since its work-groups are
 * small and wait for memory. */
static void choose_parts(const struct lk_product_setup *setup, struct lk_expand *expand)
{
    enum { MOST_PARTS = 64, LEAST_PIXELS = 64 };
    const bool is_gpu = setup->tiling.vector == 1;
    const int64_t plane = (expand->height >> expand->pools) * (expand->width >> expand->pools);
    const int64_t pixels = plane * setup->tiling.shard_tiles;
    expand->run_pixels = is_gpu ? lk_run_pixels(setup, plane) : pixels;
    expand->part_pixels = pixels;
    if (is_gpu)
        expand->part_pixels =
            setup->run_tiles > 0 ? LEAST_PIXELS : lk_divide_up(pixels, MOST_PARTS);
    if (expand->part_pixels < LEAST_PIXELS)
        expand->part_pixels = lk_least(LEAST_PIXELS, pixels);
    expand->parts.parts = is_gpu ? lk_count_parts(setup, plane, expand->part_pixels) : 1;
    expand->parts.count = expand->filters;
}

/* Over plane tiles pooled gradients have a kernel of their own: a shard is one part. */
static bool unpools(const struct lk_product_setup *setup, const struct lk_expand *expand)
{
    return setup->tiling.planes && expand->pools;
}

static enum lk_status prepare_unpool(const struct lk_product_setup *setup,
                                     struct lk_expand *expand, int64_t *reals)
{
    const int64_t lanes = setup->tiling.lanes;
    expand->dz_first = *reals;
    if (expand->makes_dz)
        *reals += setup->tiling.tiles * expand->filters *
                  lk_divide_up(expand->height * expand->width, lanes) * lanes;
    return expand->makes_dz || expand->makes_db
               ? lk_product_kernel(setup, "products/planes/gradient", "planes_unpool", NULL,
                                   &expand->kernel)
               : LK_OK;
}

static enum lk_status enqueue_unpool(const struct lk_product_setup *setup,
                                     const struct lk_expand *expand,
                                     const struct lk_expand_run *run)
{
    const struct lk_grid grid = {{expand->filters, setup->tiling.shards, 1}, 1};
    return LK_ENQUEUE(expand->kernel, grid, LK_BUF(run->dy), LK_BUF(run->at),
                      LK_BUF(run->wants_dz ? run->workspace : NULL), LK_INT(expand->dz_first),
                      LK_BUF(run->db), LK_INT(run->dw_stride),
                      LK_INT(setup->tiling.shard_tiles), LK_INT(expand->filters),
                      LK_INT(expand->height), LK_INT(expand->width));
}

enum lk_status lk_expand_prepare(const struct lk_product_setup *setup, struct lk_expand *expand,
                                 int64_t *reals)
{
    const int64_t in_real =
        (int64_t)(lk_dtype_bytes(setup->real) / lk_dtype_bytes(lk_product_stored(setup)));
    int64_t of_parts = 0;
    choose_parts(setup, expand);
    if (unpools(setup, expand))
        return prepare_unpool(setup, expand, reals);
    if (expand->makes_dz || expand->makes_db)
        LK_TRY(lk_product_kernel(setup, "products/gradient", "conv2d_expand", NULL,
                                 &expand->kernel));
    expand->dz_first = *reals * in_real;
    if (expand->makes_dz)
        *reals += lk_divide_up(expand->filters * expand->height * expand->width *
                                   setup->tiling.tiles * setup->tiling.lanes,
                               in_real);
    expand->parts.first = *reals;
    if (expand->makes_db)
        LK_TRY(lk_partial_sums_prepare(setup, &expand->parts, &of_parts));
    *reals += of_parts;
    return LK_OK;
}

enum lk_status lk_expand_enqueue(const struct lk_product_setup *setup,
                                 const struct lk_expand *expand,
                                 const struct lk_expand_run *run)
{
    const struct lk_tiling *t = &setup->tiling;
    const struct lk_partial_sums *p = &expand->parts;
    if (unpools(setup, expand))
        return enqueue_unpool(setup, expand, run);
    const bool in_parts = run->db && p->parts > 1;
    const struct lk_grid grid = {{expand->filters, t->shards, p->parts},
                                 lk_product_items(setup)};
    const int64_t row = t->lanes * (int64_t)lk_dtype_bytes(setup->real);
    LK_TRY(LK_ENQUEUE(
        expand->kernel, grid, LK_BUF(run->dy), LK_BUF(expand->masks ? run->y : NULL),
        LK_BUF(expand->pools ? run->at : NULL), LK_BUF(run->wants_dz ? run->workspace : NULL),
        LK_INT(expand->dz_first), LK_BUF(in_parts ? run->workspace : run->db),
        LK_INT(in_parts ? p->first : 0),
        LK_INT(in_parts ? p->count * p->parts : run->dw_stride),
        LK_INT(in_parts ? p->count : 0), LK_INT(t->shard_tiles), LK_INT(expand->run_pixels),
        LK_INT(expand->part_pixels), LK_INT(expand->filters), LK_INT(expand->height),
        LK_INT(expand->width), LK_LOCAL(row)));
    return in_parts ? lk_partial_sums_enqueue(setup, p, run->workspace, run->db, run->dw_stride)
                    : LK_OK;
}
