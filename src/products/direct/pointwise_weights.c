/* The weight gradient of single taps, a product of matrices whose operands are both copied
 * beside the products: parts, blocks, launches. See cl/products/direct/pointwise_weights.cl. */
#include "products/direct/filter_blocks.h"

#include "base/fail.h"
#include <stdio.h>

/* Two blocks of dz and some channels of x fill a first-level cache. This decides the
 * order of sums. What a group keeps, AREA pixels of POINT_CHANNELS twice and its sums, leaves
 * half of a second-level cache to what passes through. */
enum { AREA = 4, POINT_CHANNELS = 256, POINT_SUMS_BYTES = 128 << 10 };

/* With as few channels and filters as NARROW the inputs of RUN areas fit beside these. */
enum { RUN = 4, NARROW = 160 };

struct pointwise {
    struct lk_product_shape shape; /* in one row, where that can be */
    enum lk_gradient gradient;
    struct lk_filter_blocks of;
    size_t sums_bytes, copied_bytes, staged_bytes; /* local memory */
    struct lk_kernel *kernel;
};

static bool fits(const struct lk_product_setup *setup, const struct lk_product_job *job)
{
    const struct lk_product_axis *y = &job->shape->axis[0], *x = &job->shape->axis[1];
    return lk_filter_blocks_fit(setup, job->shape) && job->gradient != LK_GRADIENT_POOLED &&
           y->taps == 1 && x->taps == 1 && y->pad == 0 && x->pad == 0 &&
           (y->out - 1) * y->stride < y->in && (x->out - 1) * x->stride < x->in;
}

/* Whether pixels that follow each other lie side by side in x. */
static bool are_in_place(const struct lk_product_shape *s)
{
    const struct lk_product_axis *y = &s->axis[0], *x = &s->axis[1];
    return y->stride * x->in == x->out && x->stride == 1;
}

/* How many areas' inputs are fetched together. */
static int run_of(const struct lk_product_shape *s)
{
    return s->channels + s->filters <= NARROW && are_in_place(s) &&
                   s->axis[0].out * s->axis[1].out >= RUN * AREA
               ? RUN
               : 1;
}

static void choose_group(const struct lk_product_setup *setup, const struct lk_product_shape *s,
                         struct pointwise *w)
{
    const int64_t lanes = setup->tiling.vector, rows = w->of.block.rows;
    const int64_t vector = lanes * (int64_t)lk_dtype_bytes(setup->real);
    const int64_t runs = lk_divide_up(s->channels, POINT_CHANNELS);
    w->of.group_channels = lk_divide_up(lk_divide_up(s->channels, rows), runs) * rows;
    while (s->channels % w->of.group_channels > 0 && s->channels % w->of.group_channels < rows)
        w->of.group_channels += rows; /* the last run has a whole block */
    const int64_t most =
        POINT_SUMS_BYTES / (w->of.block.columns * w->of.group_channels * vector);
    w->of.blocks_each =
        lk_divide_up(w->of.blocks, lk_divide_up(w->of.blocks, most < 1 ? 1 : most));
    w->sums_bytes =
        (size_t)(w->of.block.columns * w->of.blocks_each * w->of.group_channels * vector);
    w->copied_bytes =
        (size_t)(are_in_place(s) ? vector : 2 * w->of.group_channels * AREA * vector);
    w->staged_bytes = (size_t)((2 * w->of.block.columns * AREA + 1) * lanes * vector);
}

static enum lk_status prepare(const struct lk_product_setup *setup, struct lk_product_job *job,
                              void **state)
{
    char text[96];
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct pointwise), state));
    struct pointwise *w = *state;
    const struct lk_product_shape *s = &w->shape;
    w->shape = lk_direct_in_one_row(job->shape);
    w->gradient = job->gradient;
    w->of.parts.first = job->first;
    lk_filter_blocks_choose(setup, s, true, &w->of);
    choose_group(setup, s, w);
    lk_filter_blocks_cut(setup, s, lk_divide_up(s->axis[0].out * s->axis[1].out, AREA), &w->of);
    snprintf(text, sizeof text,
             "-DROWS=%d -DCOLUMNS=%d -DAREA=%d -DRUN=%d -DIN_PLACE=%d -DGRADIENT=%d",
             w->of.block.rows, w->of.block.columns, AREA, run_of(s), are_in_place(s),
             (int)w->gradient);
    LK_TRY(lk_product_kernel(setup, "products/direct/pointwise_weights",
                             "conv2d_pointwise_weights", text, &w->kernel));
    return lk_partial_sums_prepare(setup, &w->of.parts, &job->count);
}

static enum lk_status enqueue(const struct lk_product_setup *setup, void *state,
                              const struct lk_product_run *run)
{
    const struct pointwise *w = state;
    const struct lk_product_shape *s = &w->shape;
    const struct lk_product_axis *y = &s->axis[0], *x = &s->axis[1];
    const int64_t pixels = y->out * x->out;
    const struct lk_filter_cut blocks = lk_filter_blocks_args(&w->of);
    const struct lk_point_weights args = {.channels = s->channels,
                                          .filters = s->filters,
                                          .groups = s->groups,
                                          .in_plane = y->in * x->in,
                                          .in_row = y->stride * x->in,
                                          .in_stride = x->stride,
                                          .width = x->out,
                                          .pixels = pixels,
                                          .areas = lk_divide_up(pixels, AREA),
                                          .shard_tiles = setup->tiling.shard_tiles,
                                          .parts = w->of.parts.parts};
    LK_TRY(LK_ENQUEUE(w->kernel, lk_filter_blocks_grid(setup, s, &w->of), LK_BUF(run->x),
                      LK_BUF(run->dz), LK_INT(run->dz_first),
                      LK_BUF(w->gradient == LK_GRADIENT_MASKED ? run->y : NULL),
                      LK_PARTIAL_SUMS_TO(&w->of.parts, run->workspace, run->dw, run->dw_stride),
                      LK_STRUCT(&args), LK_STRUCT(&blocks), LK_LOCAL(w->sums_bytes),
                      LK_LOCAL(w->copied_bytes), LK_LOCAL(w->staged_bytes)));
    return lk_partial_sums_enqueue(setup, &w->of.parts, run->workspace, run->dw,
                                   run->dw_stride);
}

const struct lk_product_verbs lk_direct_pointwise_weights = {
    .fits = fits, .cost = lk_direct_weights_cost, .prepare = prepare, .enqueue = enqueue};
