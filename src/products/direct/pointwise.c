/* Convolutions of single taps inside the image: panels, launches. See
 * cl/products/direct/pointwise.cl.
 */
#include "products/direct/direct.h"

#include "base/fail.h"
#include <stdio.h>

/* MOST_PANEL_BYTES: two panels share the second-level cache with weights. PACKED_BYTES: packed
 * weights stay in the caches until they are used. */
enum { MOST_PANEL_BYTES = 448 << 10, PACKED_BYTES = 2 << 20 };

/* Of work-groups, see choose_runs(). */
enum {
    FEW_PANELS = 32,       /* for a compute unit: one more would be felt */
    MANY_BLOCKS = 16,      /* of filters: panels may be copied for so many alone */
    USEFUL_PRODUCTS = 400, /* of panels and blocks of filters */
    MOST_GROUPS = 16       /* for a compute unit */
};

/* Pixels of a panel. Its inputs stay in registers beside the sums and a weight: of 16
 * registers, 12 sums leave room for two. */
static int panel_pixels(const struct lk_product_setup *setup)
{
    return lk_direct_gather_sums(setup) == 24 ? 3 : 2;
}

static int64_t panel_bytes(const struct lk_product_setup *setup,
                           const struct lk_direct_gather *g)
{
    const int64_t row = setup->tiling.vector * (int64_t)lk_dtype_bytes(setup->real);
    return panel_pixels(setup) * g->ins * row;
}

bool lk_direct_is_pointwise(const struct lk_product_setup *setup,
                            const struct lk_direct_gather *g)
{
    const struct lk_product_axis *y = &g->axis[0], *x = &g->axis[1];
    const int64_t local = (int64_t)lk_device_info(setup->device)->local_bytes;
    return setup->tiling.vector > 1 && !g->pool && y->taps == 1 && x->taps == 1 &&
           y->pad == 0 && x->pad == 0 &&
           (g->fills || g->out_stride[0] * g->out_stride[1] == 1) &&
           (y->out - 1) * y->stride < y->in && (x->out - 1) * x->stride < x->in &&
           panel_bytes(setup, g) <= lk_least(MOST_PANEL_BYTES, local / 2);
}

static enum lk_status prepare(const struct lk_product_setup *setup, struct lk_direct_gather *g)
{
    char text[96 + LK_DIRECT_END_BYTES], end[LK_DIRECT_END_BYTES];
    const int pixels = panel_pixels(setup);
    lk_direct_choose_block(setup, g);
    g->block.rows = (int)lk_least(g->block.rows, lk_direct_gather_sums(setup) / pixels);
    g->in_place = g->from.in_stride == 1;
    const int64_t blocks = lk_divide_up(g->outs, g->block.rows);
    const int64_t bytes =
        g->groups * blocks * g->block.rows * g->ins * (int64_t)lk_dtype_bytes(setup->real);
    const int64_t parts = g->in_place ? 1 : lk_divide_up(bytes, PACKED_BYTES);
    LK_TRY(lk_direct_prepare_pack(setup, g, lk_divide_up(blocks, parts)));
    lk_direct_print_end(g, end);
    snprintf(text, sizeof text, "-DROWS=%d -DCOLUMNS=%d -DIN_PLACE=%d %s", g->block.rows,
             pixels, g->in_place, end);
    return lk_product_kernel(setup, "products/direct/pointwise", "conv2d_pointwise", text,
                             &g->gather);
}

/* A work-group begins with copying its first panel while no products are made; so it should
 * have many panels and blocks of filters. Drivers hand out groups in order, one by one, or
 * half of those that are left to all compute units at once. So all groups should be of one
 * size, and every compute unit should get as many. */
static void choose_runs(const struct lk_product_setup *setup, const struct lk_direct_gather *g,
                        int64_t panels, int64_t blocks, int64_t *panel_runs,
                        int64_t *blocks_each)
{
    const int64_t images = setup->tiling.tiles * g->groups;
    const int64_t units = lk_device_info(setup->device)->compute_units;
    const int64_t filter_runs = panels * images >= FEW_PANELS * units || blocks < MANY_BLOCKS
                                    ? 1
                                    : lk_least(blocks / MANY_BLOCKS, units);
    const int64_t useful = panels * images * blocks / USEFUL_PRODUCTS;
    const int64_t wanted = useful < units ? units : lk_least(useful, MOST_GROUPS * units);
    *blocks_each = lk_divide_up(blocks, filter_runs);
    *panel_runs = lk_divide_up(wanted, images * filter_runs);
    if (images * filter_runs % units != 0)
        *panel_runs = lk_divide_up(*panel_runs, units) * units;
    *panel_runs = lk_least(*panel_runs, panels);
}

/* Enqueues `blocks` blocks of filters, beginning with number `block`. */
static enum lk_status enqueue_blocks(const struct lk_product_setup *setup,
                                     const struct lk_direct_gather *g,
                                     const struct lk_direct_gather_run *run, int64_t block,
                                     int64_t blocks)
{
    const struct lk_product_axis *y = &g->axis[0], *x = &g->axis[1];
    const int64_t pixels = y->out * x->out;
    const int64_t panels = lk_divide_up(pixels, panel_pixels(setup));
    int64_t panel_runs, blocks_each;
    choose_runs(setup, g, panels, blocks, &panel_runs, &blocks_each);
    const struct lk_grid grid = {
        {panel_runs, g->groups * lk_divide_up(blocks, blocks_each), setup->tiling.tiles},
        lk_product_items(setup)};
    const int64_t first = block * g->block.rows, packed_group = blocks * g->block.rows * g->ins;
    const struct lk_pointwise args = {.channels = g->ins,
                                      .filters =
                                          lk_least(blocks * g->block.rows, g->outs - first),
                                      .all_filters = g->outs,
                                      .filter_first = first,
                                      .in_plane = y->in * x->in,
                                      .in_row = y->stride * x->in,
                                      .in_stride = x->stride,
                                      .width = x->out,
                                      .pixels = pixels,
                                      .cell_h = g->out_stride[0],
                                      .cell_w = g->out_stride[1],
                                      .out_h = g->plane / g->plane_width,
                                      .out_w = g->plane_width,
                                      .groups = g->groups,
                                      .panel_runs = panel_runs,
                                      .blocks_each = blocks_each,
                                      .stream = g->stream};
    return LK_ENQUEUE(g->gather, grid, LK_BUF(run->x), LK_INT(run->x_first),
                      LK_BUF(g->in_place ? run->w : run->packed),
                      LK_INT(g->in_place ? g->from.first : lk_direct_packed_at(g, block)),
                      LK_INT(g->in_place ? g->from.group_stride : packed_group),
                      LK_INT(g->from.out_stride), LK_BUF(run->bias), LK_BUF(run->y),
                      LK_BUF(lk_direct_gate(g, run)), LK_BUF(run->norms), LK_STRUCT(&args),
                      LK_LOCAL(2 * panel_bytes(setup, g)));
}

static enum lk_status enqueue(const struct lk_product_setup *setup,
                              const struct lk_direct_gather *g,
                              const struct lk_direct_gather_run *run)
{
    const int64_t all = lk_divide_up(g->outs, g->block.rows);
    for (int64_t block = 0; block < all; block += g->packed_blocks) {
        const int64_t blocks = lk_least(all - block, g->packed_blocks);
        if (g->pack)
            LK_TRY(lk_direct_enqueue_pack(setup, g, run, block, blocks));
        LK_TRY(enqueue_blocks(setup, g, run, block, blocks));
    }
    return LK_OK;
}

const struct lk_direct_kind lk_direct_pointwise_kind = {.prepare = prepare, .enqueue = enqueue};
