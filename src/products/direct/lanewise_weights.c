/* The weight gradient with dz read in place: register blocks, areas, parts, launches. See
 * cl/products/direct/lanewise_weights.cl. */
#include "products/direct/direct.h"

#include "base/fail.h"
#include "products/kernel/geometry.h"
#include <stdio.h>

/* SUMS_BYTES, INPUTS_BYTES: of a work-group, in its second-level cache; less where that is
 * small, which changes no bit. In the first:
 * AREA_BYTES, an area's inputs and dz of a block and of the one that is fetched; POOLED_BYTES,
 * inputs of a channel, which leave room for dz of some filters. These two and the strips'
 * outputs decide the order of sums. */
enum {
    SUMS_BYTES = 256 << 10,
    INPUTS_BYTES = 192 << 10,
    AREA_BYTES = 32 << 10,
    STRIP = 16,
    POOLED_BYTES = 28 << 10,
    POOLED_STRIP = 32,
    LEAST_LOCAL_BYTES = 128 << 10
};

enum { MOST_CHANNELS = 3, MOST_TAPS = 25 };

struct lanewise {
    struct lk_product_shape shape;
    enum lk_gradient gradient;
    struct lk_product_block block;         /* rows of taps x filters */
    int64_t strip, rows_each;              /* of an area */
    int64_t group_channels, group_filters; /* of a work-group */
    int64_t areas_each;                    /* of a part */
    size_t sums_bytes, staged_bytes;       /* local memory */
    struct lk_partial_sums parts, bias;
    struct lk_kernel *kernel;
};

static int64_t extent(const struct lk_product_axis *axis, int64_t outputs)
{
    return (outputs - 1) * axis->stride + (axis->taps - 1) * axis->gap + 1;
}

/* What a work-group's sums and inputs may take of local memory. A CPU whose cache is small must
 * not be refused for it: it would take another algorithm, and other bits. From 512 KB on all
 * choose the same (tests/products/table.c); below, other algorithms are refused. */
static int64_t sums_room(const struct lk_product_setup *setup)
{
    return lk_least(SUMS_BYTES, (int64_t)lk_device_info(setup->device)->local_bytes / 2);
}

static int64_t inputs_room(const struct lk_product_setup *setup)
{
    return lk_least(INPUTS_BYTES, (int64_t)lk_device_info(setup->device)->local_bytes * 3 / 8);
}

/* Few channels, or gradients of a pool. */
static bool fits(const struct lk_product_setup *setup, const struct lk_product_job *job)
{
    const struct lk_product_shape *s = job->shape;
    const int64_t taps = s->axis[0].taps * s->axis[1].taps;
    const int64_t vector = setup->tiling.vector * (int64_t)lk_dtype_bytes(setup->real);
    const int64_t least = vector * extent(&s->axis[0], 2) * extent(&s->axis[1], POOLED_STRIP);
    return setup->tiling.vector > 1 && taps > 1 && least <= inputs_room(setup) &&
           s->axis[1].taps <= lk_direct_gather_sums(setup) &&
           (job->gradient == LK_GRADIENT_POOLED ||
            (s->channels <= MOST_CHANNELS && taps <= MOST_TAPS)) &&
           lk_device_info(setup->device)->local_bytes >= LEAST_LOCAL_BYTES;
}

/* As many rows of taps as registers hold, then filters. */
static void choose_block(const struct lk_product_setup *setup, const struct lk_product_shape *s,
                         struct lanewise *w)
{
    const int64_t y = s->axis[0].taps, x = s->axis[1].taps;
    const int64_t sums = lk_direct_gather_sums(setup);
    const int64_t most = w->gradient == LK_GRADIENT_POOLED ? 2 : 4;
    w->block.rows = (int)lk_least(y, sums / x);
    while (y % w->block.rows)
        w->block.rows--;
    w->block.columns = (int)lk_least(most, lk_least(s->filters, sums / (w->block.rows * x)));
}

static void choose_area(const struct lk_product_setup *setup, const struct lk_product_shape *s,
                        struct lanewise *w)
{
    const int64_t vector = setup->tiling.vector * (int64_t)lk_dtype_bytes(setup->real);
    const bool pooled = w->gradient == LK_GRADIENT_POOLED;
    const int64_t multiple = s->pool ? 2 : 1; /* no area cuts through a pool */
    const struct lk_product_axis *y = &s->axis[0], *x = &s->axis[1];
    w->strip = lk_direct_even_share(x->out, pooled ? POOLED_STRIP : STRIP, multiple);
    const int64_t room = (pooled ? POOLED_BYTES : AREA_BYTES) / vector;
    const int64_t inputs = extent(x, w->strip) * (pooled ? 1 : s->channels); /* of a row */
    const int64_t gradients = pooled ? 0 : 2 * w->block.columns * w->strip;
    const int64_t rows =
        (room - inputs * (extent(y, 1) - y->stride)) / (inputs * y->stride + gradients);
    w->rows_each = lk_direct_even_share(y->out, rows, multiple);
}

static void choose_group(const struct lk_product_setup *setup, const struct lk_product_shape *s,
                         struct lanewise *w)
{
    const int64_t vector = setup->tiling.vector * (int64_t)lk_dtype_bytes(setup->real);
    const int64_t taps = s->axis[0].taps * s->axis[1].taps;
    const int64_t inputs = vector * extent(&s->axis[0], w->rows_each) *
                           extent(&s->axis[1], w->strip);       /* of a channel */
    const int64_t row_blocks = s->axis[0].taps / w->block.rows; /* of a channel */
    const int64_t least_sums = vector * (taps + row_blocks) * w->block.columns;
    w->group_channels = lk_direct_even_share(
        s->channels, lk_least(inputs_room(setup) / inputs, sums_room(setup) / least_sums), 1);
    const int64_t sums = vector * w->group_channels * (taps + row_blocks); /* of a filter */
    w->group_filters =
        lk_direct_even_share(s->filters, sums_room(setup) / sums, w->block.columns);
    w->sums_bytes = (size_t)(sums * w->group_filters);
    w->staged_bytes = (size_t)(inputs * w->group_channels);
}

static int64_t areas_of_image(const struct lk_product_shape *s, const struct lanewise *w)
{
    return lk_divide_up(s->axis[0].out, w->rows_each) * lk_divide_up(s->axis[1].out, w->strip);
}

/* Parts decide the order of sums: they follow from the shape and the class alone. */
static void choose_parts(const struct lk_product_setup *setup, const struct lk_product_shape *s,
                         struct lanewise *w)
{
    const int64_t areas = setup->tiling.shard_tiles * areas_of_image(s, w);
    w->areas_each = lk_divide_up(areas, lk_least(areas, 16));
    w->parts.parts = w->bias.parts = lk_divide_up(areas, w->areas_each);
    w->parts.count = s->groups * s->filters * s->channels * s->axis[0].taps * s->axis[1].taps;
    w->bias.count = s->groups * s->filters;
}

static enum lk_status prepare_parts(const struct lk_product_setup *setup,
                                    struct lk_product_job *job, struct lanewise *w)
{
    int64_t of_bias = 0;
    w->parts.first = job->first;
    LK_TRY(lk_partial_sums_prepare(setup, &w->parts, &job->count));
    job->gives_db = true;
    w->bias.first = job->first + job->count;
    LK_TRY(lk_partial_sums_prepare(setup, &w->bias, &of_bias));
    job->count += of_bias;
    return LK_OK;
}

static enum lk_status prepare(const struct lk_product_setup *setup, struct lk_product_job *job,
                              void **state)
{
    char geometry[LK_GEOMETRY_BYTES], text[512];
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct lanewise), state));
    struct lanewise *w = *state;
    const struct lk_product_shape *s = &w->shape;
    w->shape = *job->shape;
    w->gradient = job->gradient;
    const struct lk_geometry numbers = lk_geometry_of(job->shape->axis);
    choose_block(setup, s, w);
    choose_area(setup, s, w);
    choose_group(setup, s, w);
    choose_parts(setup, s, w);
    lk_geometry_print(&numbers, LK_GEOMETRY_TAPS | LK_GEOMETRY_STRIDES, geometry);
    snprintf(text, sizeof text,
             "%s -DGRADIENT=%d -DROWS=%d -DCOLUMNS=%d -DROWS_EACH=%d -DSTRIP=%d", geometry,
             (int)w->gradient, w->block.rows, w->block.columns, (int)w->rows_each,
             (int)w->strip);
    LK_TRY(lk_product_kernel(setup, "products/direct/lanewise_weights", "conv2d_lanewise", text,
                             &w->kernel));
    return prepare_parts(setup, job, w);
}

static enum lk_status enqueue(const struct lk_product_setup *setup, void *state,
                              const struct lk_product_run *run)
{
    const struct lanewise *w = state;
    const struct lk_product_shape *s = &w->shape;
    const struct lk_product_axis *y = &s->axis[0], *x = &s->axis[1];
    const int64_t pool = w->gradient == LK_GRADIENT_POOLED ? 2 : 1;
    const struct lk_lanewise args = {.channels = s->channels,
                                     .filters = s->filters,
                                     .groups = s->groups,
                                     .pad_y = y->pad,
                                     .pad_x = x->pad,
                                     .in_h = y->in,
                                     .in_w = x->in,
                                     .dz_h = y->out / pool,
                                     .dz_w = x->out / pool,
                                     .group_channels = w->group_channels,
                                     .group_filters = w->group_filters,
                                     .areas = setup->tiling.shard_tiles * areas_of_image(s, w),
                                     .areas_each = w->areas_each};
    const struct lk_grid grid = {{s->groups * lk_divide_up(s->filters, w->group_filters),
                                  lk_divide_up(s->channels, w->group_channels),
                                  w->parts.parts * setup->tiling.shards},
                                 lk_product_items(setup)};
    LK_TRY(LK_ENQUEUE(
        w->kernel, grid, LK_BUF(run->x), LK_BUF(run->dz), LK_INT(run->dz_first),
        LK_BUF(w->gradient == LK_GRADIENT_MASKED ? run->y : NULL),
        LK_BUF(w->gradient == LK_GRADIENT_POOLED ? run->at : NULL),
        LK_PARTIAL_SUMS_TO(&w->parts, run->workspace, run->dw, run->dw_stride),
        LK_PARTIAL_SUMS_TO(&w->bias, run->db ? run->workspace : NULL, run->db, run->dw_stride),
        LK_STRUCT(&args), LK_LOCAL(w->sums_bytes), LK_LOCAL(w->staged_bytes)));
    if (run->db)
        LK_TRY(
            lk_partial_sums_enqueue(setup, &w->bias, run->workspace, run->db, run->dw_stride));
    return lk_partial_sums_enqueue(setup, &w->parts, run->workspace, run->dw, run->dw_stride);
}

const struct lk_product_verbs lk_direct_lanewise_weights = {
    .fits = fits, .cost = lk_direct_weights_cost, .prepare = prepare, .enqueue = enqueue};
