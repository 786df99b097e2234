/* Depthwise convolutions over plane tiles and their data gradients. See
 * cl/products/planes/depthwise.cl. */
#include "products/planes/planes.h"

#include "base/fail.h"
#include <stdio.h>

enum {
    GROUPS = 16, /* work-groups that there are at least, if there can be */
    ROWS = 7 /* of outputs at a time: 224, which images often are, is 7 times a power of 2 */
};

struct depthwise {
    struct lk_product_shape shape;
    struct lk_planes planes;
    struct lk_plane_images images;
    struct lk_plane_weights weights;
    int64_t first; /* of the workspace: planes with their edges */
    int64_t each;  /* channels of a work-group */
    int64_t rows;  /* of outputs at a time */
    struct lk_kernel *kernel;
};

/* A data gradient of a convolution that is padded by more than its taps has negative padding,
 * which the copy of a plane has no place for. */
static bool fits(const struct lk_product_setup *setup, const struct lk_product_job *job)
{
    const struct lk_product_shape *s = job->shape, turned = lk_planes_turned(job);
    return setup->tiling.planes && !s->is_matrix && s->groups > 1 && s->channels == 1 &&
           s->filters == 1 && (job->pass == LK_PASS_DATA || !s->pool) &&
           turned.axis[0].pad >= 0 && turned.axis[1].pad >= 0;
}

static double cost(const struct lk_product_setup *setup, const struct lk_product_job *job)
{
    (void)setup;
    return lk_product_adds(job->shape);
}

/* The plane with its edges, as the kernel reads it; its rows are of whole vectors, and longer
 * by one than what lies in them. */
static void describe(const struct lk_tiling *tiling, struct depthwise *s)
{
    const struct lk_product_axis *y = &s->shape.axis[0], *x = &s->shape.axis[1];
    const int64_t lanes = tiling->lanes, last_tap = (y->taps - 1) * y->gap;
    struct lk_planes *p = &s->planes;
    *p = lk_planes_of(tiling, s->shape.axis);
    s->rows = lk_least(ROWS, p->out_h);
    const int64_t read = (lk_divide_up(p->out_h, s->rows) * s->rows - 1) * y->stride + last_tap;
    const int64_t there = p->in_h + p->pad_y;
    p->rows = read + 1 > there ? read + 1 : there;
    const int64_t columns = p->out_w + (x->taps - 1) * x->gap / x->stride;
    const int64_t placed = lk_divide_up(p->in_w + p->pad_x, x->stride);
    p->copy = (lk_divide_up(columns > placed ? columns : placed, lanes) + 1) * lanes;
}

static enum lk_status prepare(const struct lk_product_setup *setup, struct lk_product_job *job,
                              void **state)
{
    char geometry[LK_GEOMETRY_BYTES], end[LK_FINISH_BYTES];
    char text[LK_GEOMETRY_BYTES + LK_FINISH_BYTES + 32];
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct depthwise), state));
    struct depthwise *s = *state;
    s->shape = lk_planes_turned(job);
    describe(&setup->tiling, s);
    s->weights = (struct lk_plane_weights){.shape = &s->shape, .block = 1};
    s->each = lk_divide_up(s->shape.groups, lk_least(s->shape.groups, GROUPS));
    LK_TRY(lk_plane_images_prepare(setup, job, &s->images));
    s->first = job->first + job->count;
    job->count += setup->tiling.tiles * lk_divide_up(s->shape.groups, s->each) *
                  s->planes.rows * s->shape.axis[1].stride * s->planes.copy;
    lk_planes_print(s->shape.axis, geometry);
    lk_finish_print(&s->shape, true, end);
    snprintf(text, sizeof text, "%s %s -DROWS=%d", geometry, end, (int)s->rows);
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
