/* Depthwise convolutions over plane tiles and their data gradients. See
 * cl/products/planes/depthwise.cl. */
#include "products/planes/planes.h"

#include "base/fail.h"
#include <stdio.h>

enum {
    GROUPS = 16 /* work-groups that there are at least, if there can be */
};

struct depthwise {
    struct lk_product_shape shape;
    struct lk_planes planes;
    struct lk_plane_images images;
    struct lk_plane_weights weights;
    int64_t first;   /* of the workspace: scratch of work-groups */
    int64_t each;    /* channels of a work-group */
    int64_t columns; /* vectors of a row of outputs at a time */
    struct lk_kernel *kernel;
};

static bool fits(const struct lk_product_setup *setup, const struct lk_product_job *job)
{
    const struct lk_product_shape *s = job->shape;
    return setup->tiling.planes && !s->is_matrix && s->groups > 1 && s->channels == 1 &&
           s->filters == 1 && (job->pass == LK_PASS_DATA || !s->pool);
}

static double cost(const struct lk_product_setup *setup, const struct lk_product_job *job)
{
    (void)setup;
    return lk_product_adds(job->shape);
}

/* Two vectors where they are as many as one by one, and there are registers for them. */
static int64_t columns(const struct lk_product_setup *setup, const struct lk_planes *p)
{
    const struct lk_tiling *tiling = &setup->tiling;
    const bool is_even = lk_divide_up(p->out_w, tiling->lanes) % 2 == 0;
    const bool has_room = tiling->vector * (int)lk_dtype_bytes(setup->real) == 64 &&
                          (p->taps_y - 1) * p->gap_y / p->stride_y < 8;
    return is_even && has_room ? 2 : 1;
}

/* Scratch: zeros for a row that there is not, then room before, in and behind a plane. */
static void describe(const struct lk_product_setup *setup, struct depthwise *s)
{
    const struct lk_tiling *tiling = &setup->tiling;
    struct lk_planes *p = &s->planes;
    *p = lk_planes_of(tiling, s->shape.axis);
    s->columns = columns(setup, p);
    const int64_t taps = lk_divide_up((p->taps_x - 1) * p->gap_x, tiling->lanes);
    const int64_t read = (s->columns * p->stride_x + taps) * tiling->lanes;
    const int64_t before = lk_divide_up(p->pad_x > 0 ? p->pad_x : 0, tiling->lanes);
    const int64_t skipped = p->pad_x < 0 ? -p->pad_x : 0;
    const int64_t behind = skipped + p->out_w * p->stride_x + read;
    p->copy =
        read + (before + p->in_vectors + lk_divide_up(behind, tiling->lanes)) * tiling->lanes;
}

static enum lk_status prepare(const struct lk_product_setup *setup, struct lk_product_job *job,
                              void **state)
{
    char geometry[LK_GEOMETRY_BYTES], end[LK_FINISH_BYTES];
    char text[LK_GEOMETRY_BYTES + LK_FINISH_BYTES + 32];
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct depthwise), state));
    struct depthwise *s = *state;
    s->shape = lk_planes_turned(job);
    describe(setup, s);
    s->weights = (struct lk_plane_weights){.shape = &s->shape, .block = 1};
    s->each = lk_divide_up(s->shape.groups, lk_least(s->shape.groups, GROUPS));
    LK_TRY(lk_plane_images_prepare(setup, job, &s->images));
    s->first = job->first + job->count;
    job->count += setup->tiling.tiles * lk_divide_up(s->shape.groups, s->each) * s->planes.copy;
    lk_planes_print(s->shape.axis, geometry);
    lk_finish_print(&s->shape, true, end);
    snprintf(text, sizeof text, "%s %s -DCOLUMNS=%d", geometry, end, (int)s->columns);
    LK_TRY(lk_plane_weights_prepare(setup, job, &s->weights));
    return lk_product_kernel(setup, "products/planes/depthwise", "planes_depthwise", text,
                             &s->kernel);
}

static enum lk_status enqueue(const struct lk_product_setup *setup, void *state,
                              const struct lk_product_run *run)
{
    const struct depthwise *s = state;
    const struct lk_grid grid = {
        {lk_divide_up(s->shape.groups, s->each), setup->tiling.tiles, 1}, 1};
    const struct lk_plane_source x = lk_plane_images_source(&s->images, run);
    LK_TRY(lk_plane_weights_enqueue(&s->weights, run));
    LK_TRY(lk_plane_images_enqueue(setup, &s->images, run));
    return LK_ENQUEUE(
        s->kernel, grid, LK_BUF(x.buffer), LK_INT(x.first), LK_PLANE_WEIGHTS(&s->weights, run),
        LK_BUF(run->more), LK_BUF(s->weights.turned ? run->dx : run->y), LK_BUF(run->workspace),
        LK_INT(s->first), LK_STRUCT(&s->planes), LK_INT(s->shape.groups), LK_INT(s->each));
}

const struct lk_product_verbs lk_planes_depthwise = {
    .fits = fits, .cost = cost, .prepare = prepare, .enqueue = enqueue};
