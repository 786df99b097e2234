/* The weight gradient as a product of matrices: areas, parts, blocks, launches. See
 * cl/products/direct/turned_weights.cl and, where taps are single,
 * cl/products/direct/pointwise_weights.cl. */
#include "ops/conv2d_direct.h"

#include "base/fail.h"
#include <stdio.h>

/* Pixels of an area: with three vectors of filters they fill half a first-level cache. They
 * belong to the numerics. */
enum { PIXELS = 9, STRIP = 8 };

/* Of single taps: two blocks of dz and some channels of x fill a first-level cache. This
 * belongs to the numerics too. What a group keeps, AREA pixels of POINT_CHANNELS twice and its
 * sums, leaves half of a second-level cache to what passes through. */
enum { AREA = 4, POINT_CHANNELS = 256, POINT_SUMS_BYTES = 128 << 10 };

/* With as few channels and filters as NARROW the inputs of RUN areas fit beside these. */
enum { RUN = 4, NARROW = 160, PARTS = 16 };

/* LEAST_CHANNELS: sums at once that keep the multipliers busy. */
enum { SUMS_BYTES = 256 << 10, LEAST_CHANNELS = 3 };

bool lk_conv2d_are_products(const struct lk_op_setup *setup, const struct lk_conv2d_shape *s)
{
    const int64_t vector = setup->tiling.vector * (int64_t)lk_dtype_bytes(setup->real);
    const int64_t taps = s->axis[0].taps * s->axis[1].taps;
    return setup->tiling.vector > 1 && !setup->stores_half && s->channels >= LEAST_CHANNELS &&
           2 * s->filters >= 3 * setup->tiling.vector &&
           lk_conv2d_gather_sums(setup) * taps * vector <= SUMS_BYTES && /* a block's */
           lk_device_info(setup->device)->local_bytes >= 2 * SUMS_BYTES;
}

/* Blocks of three vectors of filters, then some of two. Of few channels four at once, where
 * there are four: sums of two would be too few to keep the multipliers busy. Of single taps
 * four wherever no others are left, and four channels: few blocks of most layers are then not
 * whole, and what goes on beside the products is spread evenly. */
static void choose_blocks(const struct lk_op_setup *setup, const struct lk_conv2d_shape *s,
                          struct lk_conv2d_weights *w)
{
    const int64_t vectors = lk_divide_up(s->filters, setup->tiling.vector);
    const int sums = lk_conv2d_gather_sums(setup);
    const bool are_four =
        sums >= 24 && (w->points ? vectors % 4 == 0 : vectors == 4 && s->channels <= 4);
    const int64_t twos = vectors % 3 == 0 || are_four       ? 0
                         : vectors % 3 == 2 || vectors == 1 ? 1
                                                            : 2;
    w->vectors = are_four ? 4 : 3;
    w->wide = vectors < 2 * twos ? 0 : (vectors - 2 * twos) / w->vectors;
    w->blocks = w->wide + twos;
    w->block_channels = lk_least(w->points && are_four ? 4 : sums / w->vectors, s->channels);
}

/* As many sums as local memory should hold: first two blocks of filters, then channels, then
 * more blocks. */
static void choose_group(const struct lk_op_setup *setup, const struct lk_conv2d_shape *s,
                         struct lk_conv2d_weights *w)
{
    const int64_t channels = w->block_channels, taps = s->axis[0].taps * s->axis[1].taps;
    const int64_t vector = setup->tiling.vector * (int64_t)lk_dtype_bytes(setup->real);
    const int64_t most = lk_divide_up(s->channels, channels);
    int64_t blocks = lk_least(2, w->blocks), rows;
    for (;;) {
        rows = SUMS_BYTES / (w->vectors * blocks * taps * channels * vector);
        if (rows > 0 || blocks == 1)
            break;
        blocks--;
    }
    rows = rows < 1 ? 1 : lk_least(rows, most);
    if (rows == most)
        blocks =
            lk_least(w->blocks, SUMS_BYTES / (w->vectors * taps * channels * rows * vector));
    if (blocks < 1)
        blocks = 1;
    rows = lk_divide_up(most, lk_divide_up(most, rows));
    w->blocks_each = lk_divide_up(w->blocks, lk_divide_up(w->blocks, blocks));
    w->group_channels = rows * channels;
    w->sums_bytes = (size_t)(w->vectors * w->blocks_each * taps * w->group_channels * vector);
}

/* Parts, such that there are about PARTS work-groups, belong to the numerics: they follow from
 * the shape and the class alone. */
static void choose_parts(const struct lk_op_setup *setup, const struct lk_conv2d_shape *s,
                         int64_t areas_of_image, struct lk_conv2d_weights *w)
{
    const int64_t areas = setup->tiling.shard_tiles * areas_of_image;
    const int64_t groups = s->groups * lk_divide_up(w->blocks, w->blocks_each) *
                           lk_divide_up(s->channels, w->group_channels);
    const int64_t wanted = lk_least(lk_divide_up(PARTS, groups), lk_divide_up(areas, 4));
    w->parts.count = s->groups * s->filters * s->channels * s->axis[0].taps * s->axis[1].taps;
    w->areas_each = lk_divide_up(areas, lk_least(areas, wanted));
    w->parts.parts = lk_divide_up(areas, w->areas_each);
}

/* Of the launch: runs of blocks of filters, runs of channels, parts. */
static struct lk_grid grid_of(const struct lk_op_setup *setup, const struct lk_conv2d_shape *s,
                              const struct lk_conv2d_weights *w)
{
    return (struct lk_grid){{s->groups * lk_divide_up(w->blocks, w->blocks_each),
                             lk_divide_up(s->channels, w->group_channels),
                             w->parts.parts * setup->tiling.shards},
                            lk_op_items(setup)};
}

/* --- single taps ------------------------------------------------------------------------ */

static bool are_points(const struct lk_conv2d_shape *s, const struct lk_conv2d_weights *w)
{
    const struct lk_conv2d_axis *y = &s->axis[0], *x = &s->axis[1];
    return w->gradient != LK_CONV2D_POOLED && y->taps == 1 && x->taps == 1 && y->pad == 0 &&
           x->pad == 0 && (y->out - 1) * y->step < y->in && (x->out - 1) * x->step < x->in;
}

/* Whether pixels that follow each other lie side by side in x. */
static bool are_in_place(const struct lk_conv2d_shape *s)
{
    const struct lk_conv2d_axis *y = &s->axis[0], *x = &s->axis[1];
    return y->step * x->in == x->out && x->step == 1;
}

/* How many areas' inputs are fetched together. */
static int run_of(const struct lk_conv2d_shape *s)
{
    return s->channels + s->filters <= NARROW && are_in_place(s) &&
                   s->axis[0].out * s->axis[1].out >= RUN * AREA
               ? RUN
               : 1;
}

static enum lk_status prepare_points(struct lk_op_setup *setup, const struct lk_conv2d_shape *s,
                                     struct lk_conv2d_weights *w)
{
    char text[96];
    const int64_t lanes = setup->tiling.vector, rows = w->block_channels;
    const int64_t vector = lanes * (int64_t)lk_dtype_bytes(setup->real);
    const int64_t runs = lk_divide_up(s->channels, POINT_CHANNELS);
    w->group_channels = lk_divide_up(lk_divide_up(s->channels, rows), runs) * rows;
    while (s->channels % w->group_channels > 0 && s->channels % w->group_channels < rows)
        w->group_channels += rows; /* the last run has a whole block */
    const int64_t most = POINT_SUMS_BYTES / (w->vectors * w->group_channels * vector);
    w->blocks_each = lk_divide_up(w->blocks, lk_divide_up(w->blocks, most < 1 ? 1 : most));
    w->sums_bytes = (size_t)(w->vectors * w->blocks_each * w->group_channels * vector);
    w->copied_bytes =
        (size_t)(are_in_place(s) ? vector : 2 * w->group_channels * AREA * vector);
    w->staged_bytes = (size_t)((2 * w->vectors * AREA + 1) * lanes * vector);
    choose_parts(setup, s, lk_divide_up(s->axis[0].out * s->axis[1].out, AREA), w);
    snprintf(text, sizeof text,
             "-DMR=%d -DNV=%d -DAREA=%d -DRUN=%d -DIN_PLACE=%d -DGRADIENT=%d", (int)rows,
             (int)w->vectors, AREA, run_of(s), are_in_place(s), (int)w->gradient);
    return lk_op_kernel(setup, "products/direct/pointwise_weights", "conv2d_pointwise_weights",
                        text, &w->weights);
}

static enum lk_status enqueue_points(const struct lk_op_setup *setup,
                                     const struct lk_conv2d_shape *s,
                                     const struct lk_conv2d_weights *w,
                                     const struct lk_conv2d_operands *run)
{
    const struct lk_conv2d_axis *y = &s->axis[0], *x = &s->axis[1];
    const struct lk_tiling *t = &setup->tiling;
    const int64_t pixels = y->out * x->out;
    return LK_ENQUEUE(
        w->weights, grid_of(setup, s, w), LK_BUF(run->x), LK_BUF(run->dz),
        LK_INT(run->dz_first), LK_BUF(w->gradient == LK_CONV2D_MASKED ? run->y : NULL),
        LK_CONV2D_PARTS_TO(&w->parts, run->workspace, run->dw, run->dw_stride),
        LK_INT(s->channels), LK_INT(s->filters), LK_INT(s->groups), LK_INT(y->in * x->in),
        LK_INT(y->step * x->in), LK_INT(x->step), LK_INT(x->out), LK_INT(pixels),
        LK_INT(lk_divide_up(pixels, AREA)), LK_INT(t->shard_tiles), LK_INT(w->parts.parts),
        LK_INT(w->wide), LK_INT(w->blocks), LK_INT(w->blocks_each), LK_INT(w->group_channels),
        LK_LOCAL(w->sums_bytes), LK_LOCAL(w->copied_bytes), LK_LOCAL(w->staged_bytes));
}

/* --- all -------------------------------------------------------------------------------- */

enum lk_status lk_conv2d_products_prepare(struct lk_op_setup *setup,
                                          const struct lk_conv2d_shape *s,
                                          struct lk_conv2d_weights *w)
{
    char text[64];
    const struct lk_conv2d_axis *y = &s->axis[0], *x = &s->axis[1];
    w->points = are_points(s, w);
    choose_blocks(setup, s, w);
    if (w->points)
        return prepare_points(setup, s, w);
    choose_group(setup, s, w);
    w->strip = lk_divide_up(x->out, lk_divide_up(x->out, STRIP));
    w->rows_each = lk_least(y->out, PIXELS / w->strip);
    w->staged_bytes = (size_t)(w->vectors * w->strip * w->rows_each * setup->tiling.vector *
                               setup->tiling.vector) *
                      lk_dtype_bytes(setup->real);
    choose_parts(setup, s, lk_divide_up(x->out, w->strip) * lk_divide_up(y->out, w->rows_each),
                 w);
    snprintf(text, sizeof text, "-DMR=%d -DNV=%d -DGRADIENT=%d", (int)w->block_channels,
             (int)w->vectors, (int)w->gradient);
    return lk_op_kernel(setup, "products/direct/turned_weights", "conv2d_products", text,
                        &w->weights);
}

enum lk_status lk_conv2d_products_enqueue(const struct lk_op_setup *setup,
                                          const struct lk_conv2d_shape *s,
                                          const struct lk_conv2d_weights *w,
                                          const struct lk_conv2d_operands *run)
{
    const struct lk_conv2d_axis *y = &s->axis[0], *x = &s->axis[1];
    const struct lk_tiling *t = &setup->tiling;
    if (w->points)
        return enqueue_points(setup, s, w, run);
    return LK_ENQUEUE(
        w->weights, grid_of(setup, s, w), LK_BUF(run->x), LK_BUF(run->dz),
        LK_INT(run->dz_first), LK_BUF(w->gradient == LK_CONV2D_MASKED ? run->y : NULL),
        LK_BUF(w->gradient == LK_CONV2D_POOLED ? run->at : NULL),
        LK_CONV2D_PARTS_TO(&w->parts, run->workspace, run->dw, run->dw_stride),
        LK_INT(s->channels), LK_INT(s->filters), LK_INT(s->groups), LK_INT(y->taps),
        LK_INT(x->taps), LK_INT(y->step), LK_INT(x->step), LK_INT(y->gap), LK_INT(x->gap),
        LK_INT(y->pad), LK_INT(x->pad), LK_INT(y->in), LK_INT(x->in), LK_INT(y->out),
        LK_INT(x->out), LK_INT(w->strip), LK_INT(w->rows_each), LK_INT(w->wide),
        LK_INT(w->blocks), LK_INT(w->blocks_each), LK_INT(w->group_channels),
        LK_INT(t->shard_tiles), LK_INT(w->areas_each), LK_LOCAL(w->sums_bytes),
        LK_LOCAL(w->staged_bytes));
}
