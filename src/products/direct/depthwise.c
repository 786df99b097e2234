/* Depthwise convolutions: a channel, a filter. See cl/products/direct/depthwise.cl. */
#include "products/direct/direct.h"

#include "base/fail.h"
#include "products/kernel/finish.h"
#include "products/kernel/geometry.h"
#include <stdio.h>

/* Outputs larger than this are written past the caches, so that the lines they replace need not
 * be read first. That saves a quarter of the time of this kernel alone. The next reader becomes
 * slower by as much if the outputs would still be in the caches, which is not so from 9 MB on.
 */
enum { CACHED_BYTES = 2 << 20 };

enum {
    MOST_TAPS = 49, /* that are unrolled */
    MOST_REACH = 512,
    FEW = 4, /* columns of a block */
    MANY = 8,
    GROUPS = 256,     /* work-groups that there are at least, if there can be */
    MOST_CHANNELS = 4 /* of a work-group, for weights: small planes take no longer than it */
};

struct depthwise {
    enum lk_pass pass;
    struct lk_product_shape shape;
    bool is_gated;      /* of data: dx is 0 where x is not > 0 */
    int64_t part_tiles; /* of weights */
    struct lk_partial_sums parts;
    struct lk_kernel *kernel;
};

static bool fits(const struct lk_product_setup *setup, const struct lk_product_job *job)
{
    const struct lk_product_shape *s = job->shape;
    (void)setup;
    for (int i = 0; i < 2; i++)
        if (s->axis[i].pad + s->axis[i].taps * s->axis[i].gap > MOST_REACH)
            return false;
    return s->groups > 1 && s->channels == 1 && s->filters == 1 &&
           s->axis[0].taps * s->axis[1].taps <= MOST_TAPS &&
           !(job->pass == LK_PASS_FORWARD && s->pool);
}

static double cost(const struct lk_product_setup *setup, const struct lk_product_job *job)
{
    (void)setup;
    return lk_product_adds(job->shape);
}

/* The columns of a block, a multiple of the stride. A CPU makes many outputs at once, and as
 * many in each block of a row. */
static int64_t choose_block(const struct lk_product_setup *setup, const struct depthwise *d,
                            int64_t width, int64_t stride)
{
    int64_t block = FEW;
    if (setup->tiling.vector > 1 && d->pass != LK_PASS_WEIGHTS)
        block = lk_divide_up(width, lk_divide_up(width, MANY));
    return lk_divide_up(block, stride) * stride;
}

static enum lk_status prepare_kernel(const struct lk_product_setup *setup, const char *name,
                                     struct depthwise *d)
{
    char geometry[LK_GEOMETRY_BYTES], text[384 + LK_FINISH_BYTES];
    char end[LK_FINISH_BYTES] = "-DRELU=0";
    const bool is_data = d->pass == LK_PASS_DATA;
    struct lk_product_axis axis[2] = {d->shape.axis[0], d->shape.axis[1]};
    for (int i = 0; i < 2 && is_data; i++) { /* what is read and written */
        axis[i].in = d->shape.axis[i].out;
        axis[i].out = d->shape.axis[i].in;
    }
    const struct lk_geometry numbers = lk_geometry_of(axis);
    const int64_t reals =
        axis[0].out * axis[1].out * d->shape.groups * setup->tiling.tiles * setup->tiling.lanes;
    const bool stream = setup->tiling.vector > 1 &&
                        (size_t)reals * lk_dtype_bytes(lk_product_stored(setup)) > CACHED_BYTES;
    const int64_t block = choose_block(setup, d, axis[1].out, is_data ? axis[1].stride : 1);
    lk_geometry_print(&numbers, LK_GEOMETRY_ALL, geometry);
    if (d->pass == LK_PASS_FORWARD)
        lk_finish_print(&d->shape, false, end);
    snprintf(text, sizeof text, "%s -DDATA=%d -DCOLUMNS=%d -DSTREAM=%d %s%s", geometry, is_data,
             (int)block, stream, end, d->is_gated ? " -DGATED=1" : "");
    return lk_product_kernel(setup, "products/direct/depthwise", name, text, &d->kernel);
}

static enum lk_status prepare(const struct lk_product_setup *setup, struct lk_product_job *job,
                              void **state)
{
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct depthwise), state));
    struct depthwise *d = *state;
    d->pass = job->pass;
    d->is_gated = job->is_gated;
    d->shape = *job->shape;
    if (job->pass != LK_PASS_WEIGHTS)
        return prepare_kernel(setup, "conv2d_depthwise", d);
    /* The cut into parts decides the order of sums: it follows from the shape alone. */
    const int64_t tiles = setup->tiling.shard_tiles;
    const int64_t wanted = lk_divide_up(64, d->shape.groups);
    d->part_tiles = lk_divide_up(tiles, lk_least(tiles, wanted));
    d->parts = (struct lk_partial_sums){.parts = lk_divide_up(tiles, d->part_tiles),
                                        .first = job->first,
                                        .count = d->shape.groups * d->shape.axis[0].taps *
                                                 d->shape.axis[1].taps};
    LK_TRY(prepare_kernel(setup, "conv2d_depthwise_weights", d));
    return lk_partial_sums_prepare(setup, &d->parts, &job->count);
}

static enum lk_status enqueue_weights(const struct lk_product_setup *setup,
                                      const struct depthwise *d,
                                      const struct lk_product_run *run)
{
    const struct lk_tiling *t = &setup->tiling;
    const int64_t parts = d->parts.parts * t->shards, channels = d->shape.groups;
    const int64_t each =
        t->vector == 1 ? 1 : lk_least(MOST_CHANNELS, lk_divide_up(channels * parts, GROUPS));
    const struct lk_grid grid = {{lk_divide_up(channels, each), parts, 1},
                                 lk_product_items(setup)};
    LK_TRY(LK_ENQUEUE(d->kernel, grid, LK_BUF(run->x), LK_BUF(run->dz), LK_INT(run->dz_first),
                      LK_PARTIAL_SUMS_TO(&d->parts, run->workspace, run->dw, run->dw_stride),
                      LK_INT(t->shard_tiles), LK_INT(d->part_tiles), LK_INT(channels),
                      LK_INT(each), LK_LOCAL(t->lanes * (int64_t)lk_dtype_bytes(setup->real))));
    return lk_partial_sums_enqueue(setup, &d->parts, run->workspace, run->dw, run->dw_stride);
}

static enum lk_status enqueue(const struct lk_product_setup *setup, void *state,
                              const struct lk_product_run *run)
{
    const struct depthwise *d = state;
    if (d->pass == LK_PASS_WEIGHTS)
        return enqueue_weights(setup, d, run);
    const bool is_data = d->pass == LK_PASS_DATA;
    const int64_t rows = is_data ? d->shape.axis[0].in : d->shape.axis[0].out;
    const int64_t wanted = lk_divide_up(GROUPS, d->shape.groups * setup->tiling.tiles);
    const int64_t each =
        setup->tiling.vector == 1 ? 1 : lk_divide_up(rows, lk_least(rows, wanted));
    const struct lk_grid grid = {
        {lk_divide_up(rows, each), d->shape.groups, setup->tiling.tiles},
        lk_product_items(setup)};
    return LK_ENQUEUE(d->kernel, grid, LK_BUF(is_data ? run->dz : run->x),
                      LK_INT(is_data ? run->dz_first : 0), LK_BUF(run->w),
                      LK_BUF(is_data ? NULL : run->bias), LK_BUF(is_data ? run->dx : run->y),
                      LK_BUF(d->is_gated ? run->x : run->more), LK_BUF(run->norms),
                      LK_INT(each));
}

const struct lk_product_verbs lk_direct_depthwise = {
    .fits = fits, .cost = cost, .prepare = prepare, .enqueue = enqueue};
