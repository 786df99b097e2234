/* Weight gradients over plane tiles. See cl/products/planes/weights.cl. */
#include "products/planes/planes.h"

#include "base/fail.h"
#include "products/kernel/partial_sums.h"
#include <stdio.h>

enum {
    ROWS = 3, /* of a block, by FILTERS: 12 sums; twice as many where vectors are long */
    FILTERS = 4,
    TAPS = 9,           /* where a filter has one channel: a block of so many rows, and one */
    PART_PIXELS = 2048, /* of dz, whose filters then stay in a core's caches */
    GROUPS = 16         /* work-groups that there are at least, if there can be */
};

struct weights {
    struct lk_product_shape shape;
    struct lk_planes planes;
    struct lk_plane_sums sums;
    struct lk_partial_sums parts;
    int64_t first, row_blocks;
    struct lk_kernel *arrange, *kernel;
};

static bool fits(const struct lk_product_setup *setup, const struct lk_product_job *job)
{
    return setup->tiling.planes && !job->shape->is_matrix;
}

static double cost(const struct lk_product_setup *setup, const struct lk_product_job *job)
{
    (void)setup;
    return lk_product_adds(job->shape);
}

/* Parts decide the order of sums: they follow from the shape, the shard and the lanes alone. */
static void choose_parts(const struct lk_product_setup *setup, struct weights *s)
{
    const int64_t vectors = setup->tiling.shard_tiles * s->planes.out_vectors;
    const int64_t most = PART_PIXELS / setup->tiling.lanes;
    s->parts.parts = lk_divide_up(vectors, most);
    s->sums.part_vectors = lk_divide_up(vectors, s->parts.parts);
    s->parts.count = s->shape.groups * s->shape.filters * s->shape.channels * s->planes.taps_y *
                     s->planes.taps_x;
}

static void describe(const struct lk_product_setup *setup, bool is_direct, struct weights *s)
{
    const struct lk_planes *planes = &s->planes;
    const int64_t lanes = setup->tiling.lanes;
    s->sums = (struct lk_plane_sums){
        .groups = s->shape.groups,
        .channels = s->shape.channels,
        .filters = s->shape.filters,
        .x_plane = is_direct ? planes->in_vectors * lanes : lk_planes_arranged(planes),
        .copy = planes->copy,
        .row = planes->out_w,
        .phase = planes->rows * planes->out_w,
        .out_vectors = planes->out_vectors,
        .shard_tiles = setup->tiling.shard_tiles,
    };
    choose_parts(setup, s);
}

static enum lk_status prepare(const struct lk_product_setup *setup, struct lk_product_job *job,
                              void **state)
{
    char geometry[LK_GEOMETRY_BYTES], text[LK_GEOMETRY_BYTES + 64];
    int64_t of_parts;
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct weights), state));
    struct weights *s = *state;
    s->shape = *job->shape;
    s->planes = lk_planes_of(&setup->tiling, s->shape.axis);
    const bool is_direct = lk_planes_are_direct(&s->planes);
    const bool is_long = setup->tiling.vector * (int)lk_dtype_bytes(setup->real) >= 64;
    const bool is_alone = s->shape.channels == 1 && s->shape.filters == 1;
    const int rows = is_alone ? TAPS : is_long ? 2 * ROWS : ROWS;
    describe(setup, is_direct, s);
    s->row_blocks = lk_divide_up(s->shape.channels * s->planes.taps_y * s->planes.taps_x, rows);
    const int64_t others = s->shape.groups * s->parts.parts * setup->tiling.shards;
    s->sums.blocks_each =
        lk_divide_up(s->row_blocks, lk_least(s->row_blocks, lk_divide_up(4 * GROUPS, others)));
    s->first = job->first;
    if (!is_direct)
        job->count = setup->tiling.tiles * s->shape.groups * s->shape.channels *
                     lk_planes_arranged(&s->planes);
    s->parts.first = job->first + job->count;
    LK_TRY(lk_partial_sums_prepare(setup, &s->parts, &of_parts));
    job->count += of_parts;
    lk_planes_print(s->shape.axis, geometry);
    snprintf(text, sizeof text, "%s -DROWS=%d -DFILTERS=%d", geometry, rows,
             is_alone ? 1 : FILTERS);
    LK_TRY(lk_product_kernel(setup, "products/planes/weights", "planes_weights", text,
                             &s->kernel));
    snprintf(text, sizeof text, "%s -DFILTERS=1 -DRELU=0 -DADDS=0", geometry);
    return is_direct ? LK_OK
                     : lk_product_kernel(setup, "products/planes/convolve", "planes_arrange",
                                         text, &s->arrange);
}

static enum lk_status enqueue(const struct lk_product_setup *setup, void *state,
                              const struct lk_product_run *run)
{
    const struct weights *s = state;
    const struct lk_tiling *t = &setup->tiling;
    const struct lk_grid copies = {
        {s->planes.taps_x, s->shape.groups * s->shape.channels, t->tiles}, 1};
    const struct lk_grid grid = {{lk_divide_up(s->row_blocks, s->sums.blocks_each),
                                  s->shape.groups, t->shards * s->parts.parts},
                                 1};
    if (s->arrange)
        LK_TRY(LK_ENQUEUE(s->arrange, copies, LK_BUF(run->x), LK_INT(0), LK_BUF(run->workspace),
                          LK_INT(s->first), LK_STRUCT(&s->planes)));
    LK_TRY(LK_ENQUEUE(s->kernel, grid, LK_BUF(s->arrange ? run->workspace : run->x),
                      LK_INT(s->arrange ? s->first : 0), LK_BUF(run->dz), LK_INT(run->dz_first),
                      LK_PARTIAL_SUMS_TO(&s->parts, run->workspace, run->dw, run->dw_stride),
                      LK_INT(s->parts.parts), LK_STRUCT(&s->sums)));
    return lk_partial_sums_enqueue(setup, &s->parts, run->workspace, run->dw, run->dw_stride);
}

const struct lk_product_verbs lk_planes_weights = {
    .fits = fits, .cost = cost, .prepare = prepare, .enqueue = enqueue};
