/* The gather kernel, for any taps: register blocks, edges, launches. See
 * cl/products/direct/gather.cl. Where strides are, a kernel for any geometry takes its place:
 * see cl/products/direct/strided.cl. */
#include "products/direct/direct.h"

#include "base/fail.h"
#include "products/kernel/geometry.h"
#include <stdio.h>

/* With fewer input channels too little is left to do beside what is found out when it runs. */
enum { LEAST_CHANNELS = 4 };

/* Whether the kernel for any geometry makes the outputs: of convolutions with strides, which
 * are few in a model, and of data gradients their phases. */
static bool is_strided(const struct lk_product_setup *setup, const struct lk_direct_gather *g)
{
    return setup->tiling.vector > 1 && !g->pool && g->ins >= LEAST_CHANNELS &&
           (g->axis[0].stride * g->axis[1].stride > 1 ||
            g->out_stride[0] * g->out_stride[1] > 1);
}

/* Blocks of a row that see the left or right edge; see cl/products/direct/gather.cl. */
static void find_edges(const struct lk_direct_gather *g, int64_t *left, int64_t *right)
{
    const struct lk_product_axis *x = &g->axis[1];
    const int64_t blocks = lk_divide_up(x->out, g->block.columns);
    const int64_t reach = (x->taps - 1) * x->gap;
    *left = *right = 0;
    for (int64_t b = 0; b < blocks; b++) {
        const int64_t first = b * g->block.columns;
        const int64_t last = lk_least(first + g->block.columns, x->out) - 1;
        if (x->taps > 0 && first * x->stride - x->pad < 0)
            *left = b + 1;
        if (*right == 0 && ((x->taps > 0 && last * x->stride + reach - x->pad >= x->in) ||
                            last - first + 1 < g->block.columns))
            *right = blocks - b;
    }
    if (blocks > 1)
        *left = lk_least(*left, blocks - 1);
    *right = lk_least(*right, blocks - *left);
}

static enum lk_status prepare_kernel(const struct lk_product_setup *setup,
                                     struct lk_direct_gather *g)
{
    char geometry[LK_GEOMETRY_BYTES], text[640], end[LK_DIRECT_END_BYTES];
    const struct lk_geometry numbers = lk_geometry_of(g->axis);
    int64_t left, right;
    find_edges(g, &left, &right);
    lk_geometry_print(&numbers, LK_GEOMETRY_ALL, geometry);
    lk_direct_print_end(g, end);
    snprintf(text, sizeof text,
             "%s -DPLANE=%d -DPITCH=%d -DOUT_STRIDE=%d -DGROUPS=%d -DROWS=%d -DCOLUMNS=%d "
             "-DPIXEL_ROWS=%d -DLEFT=%d -DRIGHT=%d -DSTREAM=%d %s",
             geometry, (int)g->plane, (int)(g->out_stride[0] * g->plane_width),
             (int)g->out_stride[1], (int)g->groups, g->block.rows, g->block.columns,
             g->pool ? 2 : 1, (int)left, (int)right, g->stream, end);
    return lk_product_kernel(setup, "products/direct/gather", "conv2d_gather", text,
                             &g->gather);
}

/* A relu alone is told when the kernel runs, so that a model has fewer kernels. */
static bool has_late_relu(const struct lk_direct_gather *g)
{
    return g->ends && g->ends->relu && !lk_has_finish(g->ends);
}

static enum lk_status prepare_strided(const struct lk_product_setup *setup,
                                      struct lk_direct_gather *g)
{
    const struct lk_product_axis *x = &g->axis[1];
    char text[96 + LK_DIRECT_END_BYTES], end[LK_DIRECT_END_BYTES];
    struct lk_direct_gather of = *g;
    of.ends = has_late_relu(g) ? NULL : g->ends;
    lk_direct_print_end(&of, end);
    snprintf(text, sizeof text,
             "-DTAPS_X=%d -DSTRIDE_X=%d -DGAP_X=%d -DROWS=%d -DCOLUMNS=%d %s", (int)x->taps,
             (int)x->stride, x->taps > 1 ? (int)x->gap : 1, g->block.rows, g->block.columns,
             end);
    return lk_product_kernel(setup, "products/direct/strided", "conv2d_strided", text,
                             &g->gather);
}

static enum lk_status prepare(const struct lk_product_setup *setup, struct lk_direct_gather *g)
{
    lk_direct_choose_block(setup, g);
    LK_TRY(lk_direct_prepare_pack(setup, g, INT64_MAX));
    if (is_strided(setup, g))
        return prepare_strided(setup, g);
    return prepare_kernel(setup, g);
}

/* Work-groups of a useful size, and enough of them for every compute unit. */
static void choose_runs(const struct lk_product_setup *setup, const struct lk_direct_gather *g,
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

static enum lk_status enqueue_strided(const struct lk_direct_gather *g,
                                      const struct lk_direct_gather_run *run,
                                      struct lk_grid grid, int64_t first, int64_t rows_each,
                                      int64_t blocks_each)
{
    const struct lk_geometry geometry = lk_geometry_of(g->axis);
    int64_t left, right;
    find_edges(g, &left, &right);
    const struct lk_strided args = {.channels = g->ins,
                                    .filters = g->outs,
                                    .groups = g->groups,
                                    .plane = g->plane,
                                    .pitch = g->out_stride[0] * g->plane_width,
                                    .out_stride = g->out_stride[1],
                                    .left = left,
                                    .right = right,
                                    .relu = has_late_relu(g),
                                    .stream = g->stream,
                                    .rows_each = rows_each,
                                    .blocks_each = blocks_each};
    return LK_ENQUEUE(g->gather, grid, LK_BUF(run->x), LK_INT(run->x_first),
                      LK_BUF(run->packed), LK_INT(g->packed_first), LK_BUF(run->bias),
                      LK_BUF(run->y), LK_INT(first), LK_BUF(lk_direct_gate(g, run)),
                      LK_BUF(run->norms), LK_STRUCT(&geometry), LK_STRUCT(&args));
}

static enum lk_status enqueue(const struct lk_product_setup *setup,
                              const struct lk_direct_gather *g,
                              const struct lk_direct_gather_run *run)
{
    const int64_t rows = g->axis[0].out >> g->pool;
    const int64_t blocks = lk_divide_up(g->outs, g->block.rows);
    if (g->pack)
        LK_TRY(lk_direct_enqueue_pack(setup, g, run, 0, blocks));
    int64_t rows_each, blocks_each;
    choose_runs(setup, g, rows, blocks, &rows_each, &blocks_each);
    const struct lk_grid grid = {{lk_divide_up(rows, rows_each),
                                  g->groups * lk_divide_up(blocks, blocks_each),
                                  setup->tiling.tiles},
                                 lk_product_items(setup)};
    const int64_t first = g->out_first[0] * g->plane_width + g->out_first[1];
    if (is_strided(setup, g))
        return enqueue_strided(g, run, grid, first, rows_each, blocks_each);
    return LK_ENQUEUE(g->gather, grid, LK_BUF(run->x), LK_INT(run->x_first),
                      LK_BUF(run->packed), LK_INT(g->packed_first), LK_BUF(run->bias),
                      LK_BUF(run->y), LK_INT(first), LK_BUF(run->at),
                      LK_BUF(lk_direct_gate(g, run)), LK_BUF(run->norms), LK_INT(g->ins),
                      LK_INT(g->outs), LK_INT(rows_each), LK_INT(blocks_each));
}

const struct lk_direct_kind lk_direct_gather_kind = {.prepare = prepare, .enqueue = enqueue};
