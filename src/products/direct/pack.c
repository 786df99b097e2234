/* What the kernels of direct sums forward and of the data gradient have in common: register
 * blocks of sums, and weights packed in that order. See cl/products/direct/pack.cl. */
#include "products/direct/direct.h"

#include "base/fail.h"
#include <stdio.h>

/* Outputs larger than this are gone from the caches when they are read again. */
enum { CACHED_BYTES = 12 << 20 };

void lk_direct_print_end(const struct lk_direct_gather *g, char text[LK_DIRECT_END_BYTES])
{
    char end[LK_FINISH_BYTES] = "-DRELU=0";
    if (g->ends)
        lk_finish_print(g->ends, false, end);
    snprintf(text, LK_DIRECT_END_BYTES, "%s%s", end, g->is_gated ? " -DGATED=1" : "");
}

const struct lk_buffer *lk_direct_gate(const struct lk_direct_gather *g,
                                       const struct lk_direct_gather_run *run)
{
    return g->is_gated || (g->ends && g->ends->adds) ? run->gate : NULL;
}

int lk_direct_gather_sums(const struct lk_product_setup *setup)
{
    const size_t bytes = (size_t)setup->tiling.vector * lk_dtype_bytes(setup->real);
    return bytes == 64 || setup->tiling.vector == 1 ? 24 : 12;
}

/* "filters x columns" instead, where the registers hold their sums. */
static void read_blocking(struct lk_direct_gather *g, int sums)
{
    int block = 0, columns = 0;
    if (sscanf(g->blocking, "%dx%d", &block, &columns) != 2 || block < 1 || columns < 1 ||
        block > sums || columns > sums / block)
        return;
    g->block.rows = (int)lk_least(block, g->outs);
    g->block.columns = (int)lk_least(columns, g->axis[1].out);
}

void lk_direct_choose_block(const struct lk_product_setup *setup, struct lk_direct_gather *g)
{
    const int sums = lk_direct_gather_sums(setup);
    const size_t row = (size_t)setup->tiling.lanes * lk_dtype_bytes(lk_product_stored(setup));
    const size_t bytes = (size_t)(g->plane * g->outs * g->groups * setup->tiling.tiles) * row;
    g->stream = setup->tiling.vector > 1 && bytes > CACHED_BYTES;
    if (g->pool) {
        g->block.rows = (int)lk_least(sums / 4 < 4 ? sums / 4 : 4, g->outs);
        g->block.columns = 2;
        return;
    }
    /* The inputs of a row of the block stay in registers, beside the sums and a weight. Of 16
     * registers 6x2 leave one free; with 4x3 compilers keep a sum in memory. */
    g->block.rows = (int)lk_least(sums == 24 ? 8 : 6, g->outs);
    g->block.columns = (int)lk_least(lk_least(sums / g->block.rows, 8), g->axis[1].out);
    read_blocking(g, sums);
}

/* Of a block of filters in each group. */
static int64_t block_reals(const struct lk_direct_gather *g)
{
    return g->groups * g->block.rows * g->ins * g->axis[0].taps * g->axis[1].taps;
}

int64_t lk_direct_packed_at(const struct lk_direct_gather *g, int64_t block)
{
    return g->packed_first + (g->keeps ? block * block_reals(g) : 0);
}

/* Of the groups, `most_blocks` blocks of filters at once. */
enum lk_status lk_direct_prepare_pack(const struct lk_product_setup *setup,
                                      struct lk_direct_gather *g, int64_t most_blocks)
{
    const int64_t all = lk_divide_up(g->outs, g->block.rows);
    g->packed_blocks = lk_least(all, most_blocks);
    g->packed_count = g->in_place ? 0 : (g->keeps ? all : g->packed_blocks) * block_reals(g);
    if (g->packed_count == 0)
        return LK_OK;
    return lk_product_kernel(setup, "products/direct/pack", "conv2d_pack", NULL, &g->pack);
}

enum lk_status lk_direct_enqueue_pack(const struct lk_product_setup *setup,
                                      const struct lk_direct_gather *g,
                                      const struct lk_direct_gather_run *run, int64_t block,
                                      int64_t blocks)
{
    if (g->keeps && !run->weights_are_new)
        return LK_OK;
    const int64_t first = block * g->block.rows;
    const int64_t outs = lk_least(blocks * g->block.rows, g->outs - first);
    /* Runs along what lies next to each other in memory. */
    const bool is_cpu = setup->tiling.vector > 1, along_ins = g->from.in_stride == 1;
    const int64_t blocks_each = !is_cpu ? 1 : along_ins ? 2 : 8;
    const int64_t ins_each = is_cpu ? 512 : g->ins;
    const struct lk_grid grid = {
        {lk_divide_up(blocks, blocks_each), g->groups, lk_divide_up(g->ins, ins_each)},
        lk_product_items(setup)};
    const struct lk_pack args = {.block = g->block.rows,
                                 .outs = outs,
                                 .ins = g->ins,
                                 .rows = g->axis[0].taps,
                                 .columns = g->axis[1].taps,
                                 .group_stride = g->from.group_stride,
                                 .out_stride = g->from.out_stride,
                                 .in_stride = g->from.in_stride,
                                 .first = g->from.first + first * g->from.out_stride,
                                 .row_stride = g->from.row_stride,
                                 .column_stride = g->from.column_stride,
                                 .blocks_each = blocks_each,
                                 .ins_each = ins_each};
    return LK_ENQUEUE(g->pack, grid, LK_BUF(run->w), LK_BUF(run->packed),
                      LK_INT(lk_direct_packed_at(g, block)), LK_STRUCT(&args));
}
