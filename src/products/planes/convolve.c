/* Convolutions over plane tiles and their data gradients. See
 * cl/products/planes/convolve.cl. */
#include "products/planes/planes.h"

#include "base/fail.h"
#include <stdio.h>

enum {
    MOST_VECTORS = 3,       /* of a block */
    CACHED_REALS = 1 << 17, /* of x that a work-group reads again for each block: all of it */
    RUN_REALS = 1 << 16,    /* or, where that is more, of a run of vectors */
    GROUPS = 16             /* work-groups that there are at least, if there can be */
};

struct convolve {
    struct lk_product_shape shape;
    struct lk_planes planes;
    struct lk_plane_images images;
    struct lk_plane_weights weights;
    struct lk_plane_product product;
    int lone;        /* 1 or 4 where the last vector has no more pixels, else 0 */
    bool is_direct;  /* x is read as it is */
    int64_t first;   /* of the workspace: x arranged */
    int64_t y_first; /* and y before the pool */
    struct lk_kernel *arrange, *convolve, *pool;
};

static bool fits(const struct lk_product_setup *setup, const struct lk_product_job *job)
{
    return setup->tiling.planes && !job->shape->is_matrix;
}

/* Of whole vectors, at the peak; weights that few of them share cost as much as two: the time
 * to fetch them. */
static double cost(const struct lk_product_setup *setup, const struct lk_product_job *job)
{
    const struct lk_product_shape s = lk_planes_turned(job);
    const int64_t lanes = setup->tiling.lanes, pixels = s.axis[0].all_out * s.axis[1].all_out;
    const int64_t vectors = lk_divide_up(pixels, lanes);
    return lk_product_adds(&s) / (double)pixels * (double)((vectors > 2 ? vectors : 2) * lanes);
}

/* Runs of vectors whose x stays in a core's caches, and runs of filters. Each run of vectors
 * reads all weights, so small planes are not cut. They decide no bit. */
static void cut(const struct lk_product_setup *setup, struct convolve *s)
{
    struct lk_plane_product *p = &s->product;
    const int64_t of_vector = p->channels * s->planes.taps_x * setup->tiling.vector;
    const int64_t blocks = lk_divide_up(p->filters, s->weights.block);
    const int64_t whole = RUN_REALS / of_vector / MOST_VECTORS * MOST_VECTORS;
    p->vectors_each = p->out_vectors * of_vector <= CACHED_REALS ? p->out_vectors
                      : whole > 0                                ? whole
                                                                 : MOST_VECTORS;
    const int64_t others = lk_plane_runs(p) * p->groups * setup->tiling.tiles;
    const int64_t fewest = lk_least(blocks, lk_divide_up(GROUPS, others));
    const int64_t adds =
        p->vectors_each * p->channels * s->planes.taps_y * s->planes.taps_x * s->weights.block;
    p->blocks_each = lk_plane_blocks_each(lk_divide_up(blocks, fewest), adds);
}

static void describe(const struct lk_product_setup *setup, struct convolve *s)
{
    const struct lk_planes *planes = &s->planes;
    const int64_t lanes = setup->tiling.lanes;
    s->lone = lk_plane_lone(setup, s->weights.block, planes->out_h * planes->out_w);
    s->product = (struct lk_plane_product){.groups = s->shape.groups,
                                           .channels = s->shape.channels,
                                           .filters = s->shape.filters,
                                           .x_plane = s->is_direct ? planes->in_vectors * lanes
                                                                   : lk_planes_arranged(planes),
                                           .copy = planes->copy,
                                           .row = planes->out_w,
                                           .phase = planes->rows * planes->out_w,
                                           .out_vectors = planes->out_vectors,
                                           .is_lone = s->lone > 0};
    s->product.x_group = s->product.channels * s->product.x_plane;
    s->product.y_group = s->product.filters * planes->out_vectors * lanes;
    cut(setup, s);
}

static enum lk_status prepare(const struct lk_product_setup *setup, struct lk_product_job *job,
                              void **state)
{
    char geometry[LK_GEOMETRY_BYTES], end[LK_FINISH_BYTES];
    char text[LK_GEOMETRY_BYTES + LK_FINISH_BYTES + 32];
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct convolve), state));
    struct convolve *s = *state;
    s->shape = lk_planes_turned(job);
    s->planes = lk_planes_of(&setup->tiling, s->shape.axis);
    s->is_direct = lk_planes_are_direct(&s->planes);
    s->weights.shape = &s->shape;
    s->weights.block = lk_plane_block(setup);
    describe(setup, s);
    const int64_t planes = setup->tiling.tiles * s->shape.groups;
    LK_TRY(lk_plane_images_prepare(setup, job, &s->images));
    s->first = job->first + job->count;
    if (!s->is_direct)
        job->count += planes * s->shape.channels * lk_planes_arranged(&s->planes);
    s->y_first = job->first + job->count;
    if (s->shape.pool)
        job->count += planes * s->shape.filters * s->planes.out_vectors * setup->tiling.lanes;
    lk_planes_print(s->shape.axis, geometry);
    lk_finish_print(&s->shape, true, end);
    snprintf(text, sizeof text, "%s -DFILTERS=%lld -DLONE=%d %s", geometry,
             (long long)s->weights.block, s->lone, end);
    LK_TRY(lk_plane_weights_prepare(setup, job, &s->weights));
    static const char source[] = "products/planes/convolve";
    LK_TRY(lk_product_kernel(setup, source, "planes_convolve", text, &s->convolve));
    if (!s->is_direct)
        LK_TRY(lk_product_kernel(setup, source, "planes_arrange", text, &s->arrange));
    return s->shape.pool ? lk_product_kernel(setup, source, "planes_pool", text, &s->pool)
                         : LK_OK;
}

static enum lk_status enqueue_pool(const struct lk_product_setup *setup,
                                   const struct convolve *s, const struct lk_product_run *run)
{
    struct lk_planes pooled = s->planes;
    pooled.in_h = pooled.out_h;
    pooled.in_w = pooled.out_w;
    pooled.in_vectors = pooled.out_vectors;
    return lk_planes_enqueue_pool(setup, s->pool, &pooled, s->shape.groups * s->shape.filters,
                                  s->y_first, run);
}

static enum lk_status enqueue(const struct lk_product_setup *setup, void *state,
                              const struct lk_product_run *run)
{
    const struct convolve *s = state;
    const struct lk_plane_product *p = &s->product;
    const int64_t tiles = setup->tiling.tiles;
    const int64_t blocks = lk_divide_up(p->filters, s->weights.block);
    const struct lk_grid copies = {{s->planes.taps_x, p->groups * p->channels, tiles}, 1};
    const struct lk_grid grid = {
        {lk_divide_up(blocks, p->blocks_each), lk_plane_runs(p), tiles * p->groups}, 1};
    struct lk_buffer *const y = s->weights.turned ? run->dx : run->y;
    struct lk_plane_source x = lk_plane_images_source(&s->images, run);
    LK_TRY(lk_plane_weights_enqueue(&s->weights, run));
    LK_TRY(lk_plane_images_enqueue(setup, &s->images, run));
    if (s->arrange) {
        LK_TRY(LK_ENQUEUE(s->arrange, copies, LK_BUF(x.buffer), LK_INT(x.first),
                          LK_BUF(run->workspace), LK_INT(s->first), LK_STRUCT(&s->planes)));
        x = (struct lk_plane_source){run->workspace, s->first};
    }
    LK_TRY(LK_ENQUEUE(s->convolve, grid, LK_BUF(x.buffer), LK_INT(x.first),
                      LK_PLANE_WEIGHTS(&s->weights, run), LK_BUF(run->more),
                      LK_BUF(s->pool ? run->workspace : y), LK_INT(s->pool ? s->y_first : 0),
                      LK_STRUCT(p)));
    return s->pool ? enqueue_pool(setup, s, run) : LK_OK;
}

const struct lk_product_verbs lk_planes_convolve = {
    .fits = fits, .cost = cost, .prepare = prepare, .enqueue = enqueue};
