/* The weight gradient as a product of matrices, dz turned beside the products: areas, parts,
 * blocks, launches. See cl/products/direct/turned_weights.cl. */
#include "products/direct/filter_blocks.h"

#include "base/fail.h"
#include "products/kernel/geometry.h"
#include <stdio.h>

/* Pixels of an area: with three vectors of filters they fill half a first-level cache. They
 * decide the order of sums. */
enum { PIXELS = 9, STRIP = 8, SUMS_BYTES = LK_FILTER_SUMS_BYTES };

struct turned {
    struct lk_product_shape shape; /* in one row, where that can be */
    enum lk_gradient gradient;
    int64_t strip, rows_each; /* of an area */
    struct lk_filter_blocks of;
    size_t sums_bytes, staged_bytes; /* local memory */
    struct lk_kernel *kernel;
};

static bool fits(const struct lk_product_setup *setup, const struct lk_product_job *job)
{
    return lk_filter_blocks_fit(setup, job->shape);
}

/* As many sums as local memory should hold: first two blocks of filters, then channels, then
 * more blocks. */
static void choose_group(const struct lk_product_setup *setup, const struct lk_product_shape *s,
                         struct turned *w)
{
    const int64_t channels = w->of.block.rows, taps = s->axis[0].taps * s->axis[1].taps;
    const int64_t vector = setup->tiling.vector * (int64_t)lk_dtype_bytes(setup->real);
    const int64_t most = lk_divide_up(s->channels, channels);
    int64_t blocks = lk_least(2, w->of.blocks), rows;
    for (;;) {
        rows = SUMS_BYTES / (w->of.block.columns * blocks * taps * channels * vector);
        if (rows > 0 || blocks == 1)
            break;
        blocks--;
    }
    rows = rows < 1 ? 1 : lk_least(rows, most);
    if (rows == most)
        blocks = lk_least(w->of.blocks,
                          SUMS_BYTES / (w->of.block.columns * taps * channels * rows * vector));
    if (blocks < 1)
        blocks = 1;
    rows = lk_divide_up(most, lk_divide_up(most, rows));
    w->of.blocks_each = lk_divide_up(w->of.blocks, lk_divide_up(w->of.blocks, blocks));
    w->of.group_channels = rows * channels;
    w->sums_bytes = (size_t)(w->of.block.columns * w->of.blocks_each * taps *
                             w->of.group_channels * vector);
}

static enum lk_status prepare(const struct lk_product_setup *setup, struct lk_product_job *job,
                              void **state)
{
    char text[64];
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct turned), state));
    struct turned *w = *state;
    const struct lk_product_shape *s = &w->shape;
    const struct lk_product_axis *y = &s->axis[0], *x = &s->axis[1];
    w->shape = lk_direct_in_one_row(job->shape);
    w->gradient = job->gradient;
    w->of.parts.first = job->first;
    lk_filter_blocks_choose(setup, s, false, &w->of);
    choose_group(setup, s, w);
    w->strip = lk_divide_up(x->out, lk_divide_up(x->out, STRIP));
    w->rows_each = lk_least(y->out, PIXELS / w->strip);
    w->staged_bytes = (size_t)(w->of.block.columns * w->strip * w->rows_each *
                               setup->tiling.vector * setup->tiling.vector) *
                      lk_dtype_bytes(setup->real);
    const int64_t areas = lk_divide_up(x->out, w->strip) * lk_divide_up(y->out, w->rows_each);
    lk_filter_blocks_cut(setup, s, areas, &w->of);
    snprintf(text, sizeof text, "-DROWS=%d -DCOLUMNS=%d -DGRADIENT=%d", w->of.block.rows,
             w->of.block.columns, (int)w->gradient);
    LK_TRY(lk_product_kernel(setup, "products/direct/turned_weights", "conv2d_products", text,
                             &w->kernel));
    return lk_partial_sums_prepare(setup, &w->of.parts, &job->count);
}

static enum lk_status enqueue(const struct lk_product_setup *setup, void *state,
                              const struct lk_product_run *run)
{
    const struct turned *w = state;
    const struct lk_product_shape *s = &w->shape;
    const struct lk_geometry geometry = lk_geometry_of(s->axis);
    const struct lk_filter_cut blocks = lk_filter_blocks_args(&w->of);
    const struct lk_turned args = {.channels = s->channels,
                                   .filters = s->filters,
                                   .groups = s->groups,
                                   .strip = w->strip,
                                   .rows_each = w->rows_each,
                                   .shard_tiles = setup->tiling.shard_tiles,
                                   .areas_each = w->of.areas_each};
    LK_TRY(LK_ENQUEUE(w->kernel, lk_filter_blocks_grid(setup, s, &w->of), LK_BUF(run->x),
                      LK_BUF(run->dz), LK_INT(run->dz_first),
                      LK_BUF(w->gradient == LK_GRADIENT_MASKED ? run->y : NULL),
                      LK_BUF(w->gradient == LK_GRADIENT_POOLED ? run->at : NULL),
                      LK_PARTIAL_SUMS_TO(&w->of.parts, run->workspace, run->dw, run->dw_stride),
                      LK_STRUCT(&args), LK_STRUCT(&geometry), LK_STRUCT(&blocks),
                      LK_LOCAL(w->sums_bytes), LK_LOCAL(w->staged_bytes)));
    return lk_partial_sums_enqueue(setup, &w->of.parts, run->workspace, run->dw,
                                   run->dw_stride);
}

const struct lk_product_verbs lk_direct_turned_weights = {
    .fits = fits, .cost = lk_direct_weights_cost, .prepare = prepare, .enqueue = enqueue};
