/* The gather kernel: register blocks, edges, launches. See cl/products/direct/gather.cl. */
#include "ops/conv2d_direct.h"

#include "base/fail.h"
#include <stdio.h>

/* Outputs larger than this are gone from the caches when they are read again. */
enum { CACHED_BYTES = 12 << 20 };

/* Packed weights of single taps that stay in the caches until they are used. */
enum { PACKED_BYTES = 2 << 20 };

int lk_conv2d_gather_sums(const struct lk_op_setup *setup)
{
    const size_t bytes = (size_t)setup->tiling.vector * lk_dtype_bytes(setup->real);
    return bytes == 64 || setup->tiling.vector == 1 ? 24 : 12;
}

/* "filters x columns" instead, where the registers hold their sums. */
static void read_blocking(struct lk_conv2d_gather *g, int sums)
{
    int block = 0, columns = 0;
    if (sscanf(g->blocking, "%dx%d", &block, &columns) != 2 || block < 1 || columns < 1 ||
        block > sums || columns > sums / block)
        return;
    g->block = (int)lk_least(block, g->outs);
    g->columns = (int)lk_least(columns, g->axis[1].out);
}

static void choose_block(const struct lk_op_setup *setup, struct lk_conv2d_gather *g)
{
    const int sums = lk_conv2d_gather_sums(setup);
    if (g->pool) {
        g->block = (int)lk_least(sums / 4 < 4 ? sums / 4 : 4, g->outs);
        g->columns = 2;
        return;
    }
    g->block = (int)lk_least(sums == 24 ? 8 : 4, g->outs);
    g->columns = (int)lk_least(lk_least(sums / g->block, 8), g->axis[1].out);
    read_blocking(g, sums);
}

/* Blocks of a row that see the left or right edge; see cl/products/direct/gather.cl. */
static void find_edges(const struct lk_conv2d_gather *g, int64_t *left, int64_t *right)
{
    const struct lk_conv2d_axis *x = &g->axis[1];
    const int64_t blocks = lk_divide_up(x->out, g->columns);
    const int64_t reach = (x->taps - 1) * x->gap;
    *left = *right = 0;
    for (int64_t b = 0; b < blocks; b++) {
        const int64_t first = b * g->columns, last = lk_least(first + g->columns, x->out) - 1;
        if (x->taps > 0 && first * x->step - x->pad < 0)
            *left = b + 1;
        if (*right == 0 && ((x->taps > 0 && last * x->step + reach - x->pad >= x->in) ||
                            last - first + 1 < g->columns))
            *right = blocks - b;
    }
    if (blocks > 1)
        *left = lk_least(*left, blocks - 1);
    *right = lk_least(*right, blocks - *left);
}

static enum lk_status prepare_kernel(struct lk_op_setup *setup, struct lk_conv2d_gather *g)
{
    char text[512];
    int64_t left, right;
    find_edges(g, &left, &right);
    const struct lk_conv2d_axis *y = &g->axis[0], *x = &g->axis[1];
    snprintf(text, sizeof text,
             "-DTAPS_Y=%d -DTAPS_X=%d -DSTEP_Y=%d -DSTEP_X=%d -DGAP_Y=%d -DGAP_X=%d -DPAD_Y=%d "
             "-DPAD_X=%d -DIN_H=%d -DIN_W=%d -DOUT_H=%d -DOUT_W=%d -DPLANE=%d -DPITCH=%d "
             "-DOUT_STEP=%d -DGROUPS=%d -DRELU=%d -DMR=%d -DNV=%d -DROWS=%d -DLEFT=%d "
             "-DRIGHT=%d -DSTREAM=%d%s",
             (int)y->taps, (int)x->taps, (int)y->step, (int)x->step, (int)y->gap, (int)x->gap,
             (int)y->pad, (int)x->pad, (int)y->in, (int)x->in, (int)y->out, (int)x->out,
             (int)g->plane, (int)(g->out_step[0] * g->plane_width), (int)g->out_step[1],
             (int)g->groups, g->relu, g->block, g->columns, g->pool ? 2 : 1, (int)left,
             (int)right, g->stream, g->is_gated ? " -DGATED=1" : "");
    return lk_op_kernel(setup, "products/direct/gather", "conv2d_gather", text, &g->gather);
}

/* Blocks of filters that are packed at once, and what they take. */
static void choose_packed(const struct lk_op_setup *setup, struct lk_conv2d_gather *g)
{
    const int64_t block = g->groups * g->block * g->ins * g->axis[0].taps * g->axis[1].taps;
    const int64_t bytes = block * (int64_t)lk_dtype_bytes(setup->real);
    g->packed_blocks = lk_divide_up(g->outs, g->block);
    if (g->pointwise && !g->in_place) {
        const int64_t parts = lk_divide_up(g->packed_blocks * bytes, PACKED_BYTES);
        g->packed_blocks = lk_divide_up(g->packed_blocks, parts);
    }
    g->packed_count = g->in_place ? 0 : g->packed_blocks * block;
}

enum lk_status lk_conv2d_gather_prepare(struct lk_op_setup *setup, struct lk_conv2d_gather *g)
{
    const size_t row = (size_t)setup->tiling.lanes * lk_dtype_bytes(lk_op_stored(setup));
    const size_t bytes = (size_t)(g->plane * g->outs * g->groups * setup->tiling.tiles) * row;
    choose_block(setup, g);
    g->pointwise = lk_conv2d_is_pointwise(setup, g);
    if (g->pointwise)
        g->block = (int)lk_least(g->block, lk_conv2d_gather_sums(setup) / LK_CONV2D_PANEL);
    g->stream = setup->tiling.vector > 1 && bytes > CACHED_BYTES;
    g->in_place = g->pointwise && g->from.in_step == 1;
    choose_packed(setup, g);
    if (g->packed_count > 0)
        LK_TRY(lk_op_kernel(setup, "products/direct/pack", "conv2d_pack", NULL, &g->pack));
    return g->pointwise ? lk_conv2d_pointwise_prepare(setup, g) : prepare_kernel(setup, g);
}

void lk_conv2d_gather_release(struct lk_conv2d_gather *gather)
{
    lk_kernel_destroy(gather->pack);
    lk_kernel_destroy(gather->gather);
}

static enum lk_status enqueue_pack(const struct lk_op_setup *setup,
                                   const struct lk_conv2d_gather *g,
                                   const struct lk_conv2d_gather_run *run, int64_t block,
                                   int64_t blocks)
{
    const int64_t first = block * g->block, outs = lk_least(blocks * g->block, g->outs - first);
    /* Runs along what lies next to each other in memory. */
    const bool is_cpu = setup->tiling.vector > 1, along_ins = g->from.in_step == 1;
    const int64_t blocks_each = !is_cpu ? 1 : along_ins ? 2 : 8;
    const int64_t ins_each = is_cpu ? 512 : g->ins;
    const struct lk_grid grid = {
        {lk_divide_up(blocks, blocks_each), g->groups, lk_divide_up(g->ins, ins_each)},
        lk_op_items(setup)};
    return LK_ENQUEUE(g->pack, grid, LK_BUF(run->w), LK_BUF(run->workspace),
                      LK_INT(g->packed_first), LK_INT(g->block), LK_INT(outs), LK_INT(g->ins),
                      LK_INT(g->axis[0].taps), LK_INT(g->axis[1].taps),
                      LK_INT(g->from.group_step), LK_INT(g->from.out_step),
                      LK_INT(g->from.in_step), LK_INT(g->from.first + first * g->from.out_step),
                      LK_INT(g->from.row_step), LK_INT(g->from.column_step),
                      LK_INT(blocks_each), LK_INT(ins_each));
}

static enum lk_status enqueue_pointwise(const struct lk_op_setup *setup,
                                        const struct lk_conv2d_gather *g,
                                        const struct lk_conv2d_gather_run *run)
{
    const int64_t all = lk_divide_up(g->outs, g->block);
    for (int64_t block = 0; block < all; block += g->packed_blocks) {
        const int64_t blocks = lk_least(all - block, g->packed_blocks);
        if (g->pack)
            LK_TRY(enqueue_pack(setup, g, run, block, blocks));
        LK_TRY(lk_conv2d_pointwise_enqueue(setup, g, run, block, blocks));
    }
    return LK_OK;
}

/* Work-groups of a useful size, and enough of them for every compute unit. */
static void choose_runs(const struct lk_op_setup *setup, const struct lk_conv2d_gather *g,
                        int64_t rows, int64_t blocks, int64_t *rows_each, int64_t *blocks_each)
{
    const struct lk_device_info *info = lk_device_info(setup->device);
    const int64_t images = setup->tiling.tiles * g->groups;
    *rows_each = *blocks_each = 1;
    if (setup->tiling.vector == 1)
        return;
    const double row = 2.0 * setup->tiling.lanes * (double)(g->axis[1].out * g->ins * g->outs) *
                       (double)(g->axis[0].taps * g->axis[1].taps) * (g->pool ? 2 : 1);
    const int64_t wanted = 8 * (int64_t)info->compute_units;
    *rows_each = lk_least(rows, (int64_t)(2e7 / (row + 1)) + 1);
    while (*rows_each > 1 && lk_divide_up(rows, *rows_each) * images < wanted)
        *rows_each = (*rows_each + 1) / 2;
    const int64_t groups = lk_divide_up(rows, *rows_each) * images;
    int64_t runs = lk_divide_up(wanted, groups);
    while (runs > 1 && runs * groups % info->compute_units != 0)
        runs++;
    *blocks_each = lk_divide_up(blocks, runs);
}

enum lk_status lk_conv2d_gather_enqueue(const struct lk_op_setup *setup,
                                        const struct lk_conv2d_gather *g,
                                        const struct lk_conv2d_gather_run *run)
{
    if (g->pointwise)
        return enqueue_pointwise(setup, g, run);
    const int64_t rows = g->axis[0].out >> g->pool, blocks = lk_divide_up(g->outs, g->block);
    if (g->pack)
        LK_TRY(enqueue_pack(setup, g, run, 0, blocks));
    int64_t rows_each, blocks_each;
    choose_runs(setup, g, rows, blocks, &rows_each, &blocks_each);
    const struct lk_grid grid = {{lk_divide_up(rows, rows_each),
                                  g->groups * lk_divide_up(blocks, blocks_each),
                                  setup->tiling.tiles},
                                 lk_op_items(setup)};
    return LK_ENQUEUE(g->gather, grid, LK_BUF(run->x), LK_INT(run->x_first),
                      LK_BUF(run->workspace), LK_INT(g->packed_first), LK_BUF(run->bias),
                      LK_BUF(run->y),
                      LK_INT(g->out_first[0] * g->plane_width + g->out_first[1]),
                      LK_BUF(run->at), LK_BUF(g->is_gated ? run->gate : NULL), LK_INT(g->ins),
                      LK_INT(g->outs), LK_INT(rows_each), LK_INT(blocks_each));
}
