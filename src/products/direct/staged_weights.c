/* The weight gradient of any convolution, summed by work-groups in local memory: blocking,
 * parts, launches. See cl/products/direct/staged_weights.cl. */
#include "products/direct/direct.h"

#include "base/fail.h"
#include "products/kernel/geometry.h"
#include <stdio.h>

struct staged {
    struct lk_product_shape shape; /* in one row, where that can be */
    enum lk_gradient gradient;
    int64_t group_channels, group_filters; /* of a work-group */
    int64_t part_tiles;
    bool is_staged; /* sums and copied gradients are in local memory */
    struct lk_partial_sums parts;
    size_t sums_bytes, staged_bytes; /* local memory */
    struct lk_kernel *kernel;
};

/* Register block and cache block. */
struct blocking {
    struct lk_product_block block; /* channels x filters, of a row of taps */
    int64_t strip, rows, tiles;    /* tiles: at once, of images that are small */
    int64_t left, right;
    bool check;
};

static void choose_register_block(const struct lk_product_setup *setup,
                                  const struct lk_product_shape *s, struct blocking *b)
{
    const size_t bytes = (size_t)setup->tiling.vector * lk_dtype_bytes(setup->real);
    const int64_t sums = bytes == 64 || setup->tiling.vector == 1 ? 24 : 12;
    const int64_t taps = s->axis[1].taps;
    /* Six filters go over a loaded input best, four where six would leave many idle. */
    const int64_t six = lk_divide_up(s->filters, 6) * 6, four = lk_divide_up(s->filters, 4) * 4;
    b->block.columns = sums == 24 && (six - four) * 16 <= s->filters ? 6 : 4;
    b->block.columns =
        (int)lk_least(lk_least(b->block.columns, s->filters), taps < sums ? sums / taps : 1);
    b->block.rows = (int)lk_least(
        s->channels, taps * b->block.columns < sums ? sums / (taps * b->block.columns) : 1);
}

/* Columns of outputs that see an edge; where they would meet, every column is checked. */
static void find_edges(const struct lk_product_axis *x, struct blocking *b)
{
    const int64_t reach = (x->taps - 1) * x->gap,
                  tail = x->out - (x->out - 1) / b->strip * b->strip;
    b->left = b->right = 0;
    for (int64_t j = 0; j < x->out; j++) {
        if (j * x->stride - x->pad < 0)
            b->left = j + 1;
        if (b->right == 0 && j * x->stride + reach - x->pad >= x->in)
            b->right = x->out - j;
    }
    b->check = b->left + b->right > x->out || b->left > lk_least(4, b->strip) ||
               b->right > lk_least(4, tail);
    if (b->check)
        b->left = b->right = 0;
}

/* The strip decides the order of sums: it follows from the shape alone. */
static void choose_area(const struct lk_product_setup *setup, const struct lk_product_shape *s,
                        struct blocking *b)
{
    const struct lk_product_axis *x = &s->axis[1];
    const int64_t vector = setup->tiling.vector * (int64_t)lk_dtype_bytes(setup->real);
    const bool is_row = s->axis[0].out == 1;
    const int64_t local = (int64_t)lk_device_info(setup->device)->local_bytes;
    const int64_t room = lk_least((is_row ? 12 : 24) << 10, local / 2), most = is_row ? 32 : 16;
    const int64_t multiple = s->pool ? 2 : 1; /* no area cuts through a pool */
    b->strip =
        lk_divide_up(lk_divide_up(x->out, lk_divide_up(x->out, most)), multiple) * multiple;
    b->rows = room / (b->strip * b->block.columns * vector) / multiple * multiple;
    b->rows = lk_least(s->axis[0].out, b->rows < multiple ? multiple : b->rows);
    b->tiles = 1;
    if (b->rows == s->axis[0].out && b->strip == x->out)
        b->tiles = lk_least(8, room / (b->strip * b->rows * b->block.columns * vector));
    if (b->tiles < 1)
        b->tiles = 1;
    find_edges(x, b);
}

/* As many sums as fit in local memory beside the copied gradients. Where not even those of one
 * block do, blocks are summed one after the other in registers, in the same order. */
static void choose_group(const struct lk_product_setup *setup, const struct lk_product_shape *s,
                         const struct blocking *b, struct staged *w)
{
    const size_t local = lk_device_info(setup->device)->local_bytes;
    const size_t vector = (size_t)setup->tiling.vector * lk_dtype_bytes(setup->real);
    const size_t taps = (size_t)(s->axis[0].taps * s->axis[1].taps);
    const size_t staged = vector * (size_t)(b->strip * b->rows * b->tiles * b->block.columns);
    const size_t room = local < staged ? 0 : local - staged;
    const size_t most = room < local / 2 ? room : local / 2;
    w->group_channels = b->block.rows;
    w->group_filters = b->block.columns;
    w->sums_bytes = vector * (size_t)lk_product_items(setup);
    w->staged_bytes = vector;
    w->is_staged = setup->tiling.vector > 1 &&
                   (size_t)(b->block.rows * b->block.columns) * taps * vector <= most;
    if (!w->is_staged)
        return;
    w->staged_bytes = staged;
    for (;;) {
        const bool more_filters =
            w->group_filters < s->filters &&
            (w->group_filters <= w->group_channels || w->group_channels >= s->channels);
        if (!more_filters && w->group_channels >= s->channels)
            break;
        int64_t *grows = more_filters ? &w->group_filters : &w->group_channels;
        *grows *= 2;
        if ((size_t)(w->group_channels * w->group_filters) * taps * vector > most) {
            *grows /= 2;
            break;
        }
    }
    w->group_filters = lk_direct_even_share(s->filters, w->group_filters, b->block.columns);
    w->group_channels = lk_direct_even_share(s->channels, w->group_channels, b->block.rows);
    w->sums_bytes =
        vector * taps *
        (size_t)(lk_divide_up(w->group_channels, b->block.rows) * b->block.rows *
                 lk_divide_up(w->group_filters, b->block.columns) * b->block.columns);
}

/* Parts decide the order of sums: they follow from the shape and the class alone; of a sequence
 * not from how many steps it has, which are taken to be a few dozen. */
static void choose_parts(const struct lk_product_setup *setup, const struct lk_product_shape *s,
                         struct staged *w)
{
    enum { USUAL_STEPS = 64, LEAST_STEPS = 4 };
    w->parts.count = s->groups * s->filters * s->channels * s->axis[0].taps * s->axis[1].taps;
    const int64_t wanted = setup->tiling.vector == 1 ? 512 : 16;
    const int64_t groups = lk_divide_up(w->parts.count, setup->tiling.vector == 1 ? 64 : 8192);
    const int64_t tiles = setup->tiling.shard_tiles;
    w->part_tiles = lk_divide_up(tiles, lk_least(tiles, lk_divide_up(wanted, groups)));
    if (setup->run_tiles > 0)
        w->part_tiles = LEAST_STEPS * lk_divide_up(USUAL_STEPS * groups, LEAST_STEPS * wanted);
    w->parts.parts = lk_count_parts(setup, 1, w->part_tiles);
}

static enum lk_status prepare_kernel(const struct lk_product_setup *setup,
                                     const struct lk_product_shape *s, struct staged *w)
{
    struct blocking b;
    char geometry[LK_GEOMETRY_BYTES], text[512];
    const struct lk_geometry numbers = lk_geometry_of(s->axis);
    choose_register_block(setup, s, &b);
    choose_area(setup, s, &b);
    choose_group(setup, s, &b, w);
    choose_parts(setup, s, w);
    lk_geometry_print(&numbers, LK_GEOMETRY_ALL, geometry);
    snprintf(text, sizeof text,
             "%s -DGROUPS=%d -DROWS=%d -DCOLUMNS=%d -DSTRIP=%d -DROWS_EACH=%d -DTILES_EACH=%d "
             "-DLEFT=%d -DRIGHT=%d -DCHECK=%d -DGRADIENT=%d -DSTAGED=%d",
             geometry, (int)s->groups, b.block.rows, b.block.columns, (int)b.strip, (int)b.rows,
             (int)b.tiles, (int)b.left, (int)b.right, b.check, (int)w->gradient, w->is_staged);
    return lk_product_kernel(setup, "products/direct/staged_weights", "conv2d_weights", text,
                             &w->kernel);
}

static enum lk_status prepare(const struct lk_product_setup *setup, struct lk_product_job *job,
                              void **state)
{
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct staged), state));
    struct staged *w = *state;
    w->shape = lk_direct_in_one_row(job->shape);
    w->gradient = job->gradient;
    w->parts.first = job->first;
    LK_TRY(prepare_kernel(setup, &w->shape, w));
    return lk_partial_sums_prepare(setup, &w->parts, &job->count);
}

static enum lk_status enqueue(const struct lk_product_setup *setup, void *state,
                              const struct lk_product_run *run)
{
    const struct staged *w = state;
    const struct lk_product_shape *s = &w->shape;
    const struct lk_tiling *t = &setup->tiling;
    const struct lk_grid grid = {{s->groups * lk_divide_up(s->filters, w->group_filters),
                                  lk_divide_up(s->channels, w->group_channels),
                                  w->parts.parts * t->shards},
                                 lk_product_items(setup)};
    LK_TRY(LK_ENQUEUE(w->kernel, grid, LK_BUF(run->x), LK_BUF(run->dz), LK_INT(run->dz_first),
                      LK_BUF(w->gradient == LK_GRADIENT_MASKED ? run->y : NULL),
                      LK_BUF(w->gradient == LK_GRADIENT_POOLED ? run->at : NULL),
                      LK_PARTIAL_SUMS_TO(&w->parts, run->workspace, run->dw, run->dw_stride),
                      LK_INT(s->channels), LK_INT(s->filters), LK_INT(w->group_channels),
                      LK_INT(w->group_filters), LK_INT(t->shard_tiles),
                      LK_INT(lk_run_pixels(setup, 1)), LK_INT(w->part_tiles),
                      LK_LOCAL(w->sums_bytes), LK_LOCAL(w->staged_bytes)));
    return lk_partial_sums_enqueue(setup, &w->parts, run->workspace, run->dw, run->dw_stride);
}

/* Without local memory, a GPU waits for its caches: a block reads its operands for itself. */
static double gpu_cost(const struct lk_product_setup *setup, const struct lk_product_job *job)
{
    const struct lk_product_shape *s = job->shape;
    struct blocking b;
    struct staged w;
    choose_register_block(setup, s, &b);
    choose_parts(setup, s, &w);
    const int64_t channels = lk_divide_up(s->channels, b.block.rows);
    const int64_t filters = lk_divide_up(s->filters, b.block.columns);
    const double waste = (double)(channels * b.block.rows * filters * b.block.columns) /
                         (double)(s->channels * s->filters);
    const double numbers =
        1 / (double)(b.block.rows * s->axis[1].taps) + 1 / (double)b.block.columns;
    const double items =
        (double)(s->groups * channels * filters * w.parts.parts * setup->tiling.lanes);
    return lk_product_adds(s) * waste * (1 / 0.25 + LK_GPU_CACHE * numbers) *
           lk_product_idleness(setup, items);
}

static double cost(const struct lk_product_setup *setup, const struct lk_product_job *job)
{
    return setup->tiling.vector == 1 ? gpu_cost(setup, job)
                                     : lk_direct_weights_cost(setup, job);
}

const struct lk_product_verbs lk_direct_staged_weights = {
    .cost = cost, .prepare = prepare, .enqueue = enqueue};
