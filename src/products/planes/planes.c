/* Windows over plane tiles, and weights and images as products over them read them. */
#include "products/planes/planes.h"

#include "base/fail.h"
#include <stdio.h>

struct lk_planes lk_planes_of(const struct lk_tiling *tiling,
                              const struct lk_product_axis axis[2])
{
    const struct lk_product_axis *y = &axis[0], *x = &axis[1];
    const int64_t lanes = tiling->lanes, last_tap = (y->taps - 1) * y->gap;
    struct lk_planes p = {.taps_y = y->taps,
                          .taps_x = x->taps,
                          .stride_y = y->stride,
                          .stride_x = x->stride,
                          .gap_y = y->gap,
                          .gap_x = x->gap,
                          .pad_y = y->pad,
                          .pad_x = x->pad,
                          .in_h = y->in,
                          .in_w = x->in,
                          .out_h = y->all_out,
                          .out_w = x->all_out};
    p.in_vectors = lk_divide_up(p.in_h * p.in_w, lanes);
    p.out_vectors = lk_divide_up(p.out_h * p.out_w, lanes);
    p.phases = y->gap % y->stride == 0 ? 1 : lk_least(y->stride, last_tap + 1);
    p.rows = p.out_h + last_tap / y->stride;
    p.copy = lk_divide_up(p.phases * p.rows * p.out_w + lanes - 1, lanes) * lanes;
    return p;
}

void lk_planes_print(const struct lk_product_axis axis[2], char text[LK_GEOMETRY_BYTES])
{
    const struct lk_geometry geometry = lk_geometry_of(axis);
    lk_geometry_print(&geometry, LK_GEOMETRY_TAPS | LK_GEOMETRY_STRIDES, text);
}

int64_t lk_planes_arranged(const struct lk_planes *planes)
{
    return planes->taps_x * planes->copy;
}

int64_t lk_plane_block(const struct lk_product_setup *setup)
{
    return setup->tiling.vector * (int)lk_dtype_bytes(setup->real) < 64 ? 4 : 8;
}

int lk_plane_lone(const struct lk_product_setup *setup, int64_t block, int64_t pixels)
{
    const int64_t lanes = setup->tiling.lanes, count = pixels % lanes;
    return count == 1 ? 1 : block == 8 && lanes == 16 && count > 0 && count <= 4 ? 4 : 0;
}

int64_t lk_plane_runs(const struct lk_plane_product *product)
{
    const int64_t shared = product->out_vectors - product->is_lone;
    return shared > 0 ? lk_divide_up(shared, product->vectors_each) : 1;
}

int64_t lk_plane_blocks_each(int64_t most, int64_t adds)
{
    enum { LEAST_ADDS = 1 << 15 }; /* 4 us on a core of 2026 */
    return lk_least(most, lk_divide_up(LEAST_ADDS, adds));
}

bool lk_planes_are_direct(const struct lk_planes *planes)
{
    const struct lk_planes *g = planes;
    return g->taps_y == 1 && g->taps_x == 1 && g->stride_y == 1 && g->stride_x == 1 &&
           g->pad_y == 0 && g->pad_x == 0 && g->in_h == g->out_h && g->in_w == g->out_w;
}

struct lk_product_shape lk_planes_turned(const struct lk_product_job *job)
{
    struct lk_product_shape s = *job->shape;
    if (job->pass != LK_PASS_DATA)
        return s;
    s.channels = job->shape->filters;
    s.filters = job->shape->channels;
    s.bias = s.relu = s.pool = false;
    for (int i = 0; i < 2; i++) {
        const struct lk_product_axis *of = &job->shape->axis[i];
        s.axis[i].in = (of->all_out - 1) * of->stride + 1;
        s.axis[i].out = s.axis[i].all_out = of->in;
        s.axis[i].stride = 1;
        s.axis[i].pad = (of->taps - 1) * of->gap - of->pad;
    }
    return s;
}

/* --- images ------------------------------------------------------------------------------ */

static struct lk_planes spread_of(const struct lk_tiling *tiling,
                                  const struct lk_product_axis *axis)
{
    struct lk_planes p = {.stride_y = axis[0].stride,
                          .stride_x = axis[1].stride,
                          .in_h = axis[0].all_out,
                          .in_w = axis[1].all_out};
    p.out_h = (p.in_h - 1) * p.stride_y + 1;
    p.out_w = (p.in_w - 1) * p.stride_x + 1;
    p.in_vectors = lk_divide_up(p.in_h * p.in_w, tiling->lanes);
    p.out_vectors = lk_divide_up(p.out_h * p.out_w, tiling->lanes);
    return p;
}

enum lk_status lk_plane_images_prepare(const struct lk_product_setup *setup,
                                       struct lk_product_job *job,
                                       struct lk_plane_images *images)
{
    const struct lk_product_shape *s = job->shape;
    images->pass = job->pass;
    if (job->pass != LK_PASS_DATA || (s->axis[0].stride == 1 && s->axis[1].stride == 1))
        return LK_OK;
    images->channels = s->groups * s->filters;
    images->planes = spread_of(&setup->tiling, s->axis);
    images->first = job->first + job->count;
    job->count += setup->tiling.tiles * images->channels * images->planes.out_vectors *
                  setup->tiling.lanes;
    return lk_product_kernel(setup, "products/planes/gradient", "planes_spread_rows", NULL,
                             &images->spread);
}

enum lk_status lk_plane_images_enqueue(const struct lk_product_setup *setup,
                                       const struct lk_plane_images *images,
                                       const struct lk_product_run *run)
{
    const struct lk_grid grid = {{images->channels, setup->tiling.tiles, 1}, 1};
    return images->spread ? LK_ENQUEUE(images->spread, grid, LK_BUF(run->dz),
                                       LK_INT(run->dz_first), LK_BUF(run->workspace),
                                       LK_INT(images->first), LK_STRUCT(&images->planes))
                          : LK_OK;
}

struct lk_plane_source lk_plane_images_source(const struct lk_plane_images *images,
                                              const struct lk_product_run *run)
{
    if (images->spread)
        return (struct lk_plane_source){run->workspace, images->first};
    return images->pass == LK_PASS_DATA ? (struct lk_plane_source){run->dz, run->dz_first}
                                        : (struct lk_plane_source){run->x, 0};
}

enum lk_status lk_planes_prepare_clear(const struct lk_product_setup *setup,
                                       struct lk_kernel **clear)
{
    return lk_product_kernel(setup, "products/planes/gradient", "planes_clear", NULL, clear);
}

enum lk_status lk_planes_enqueue_clear(const struct lk_tiling *tiling, struct lk_kernel *clear,
                                       int64_t count, int64_t pixels, struct lk_buffer *planes)
{
    enum { EACH = 64 };
    const struct lk_grid grid = {{lk_divide_up(count, EACH), tiling->tiles, 1}, 1};
    return pixels % tiling->lanes > 0 ? LK_ENQUEUE(clear, grid, LK_BUF(planes), LK_INT(count),
                                                   LK_INT(pixels), LK_INT(EACH))
                                      : LK_OK;
}

/* --- weights ----------------------------------------------------------------------------- */

static int64_t blocks_of(const struct lk_plane_weights *weights)
{
    const struct lk_product_shape *s = weights->shape;
    return s->groups * lk_divide_up(s->filters, weights->block);
}

/* Of a filter. */
static int64_t weights_of(const struct lk_product_shape *s)
{
    return s->channels * s->axis[0].taps * s->axis[1].taps;
}

void lk_planes_place_weights(struct lk_product_job *job, int64_t reals, bool *turned,
                             int64_t *first)
{
    *turned = job->pass == LK_PASS_DATA;
    if (*turned) {
        *first = job->first + job->count;
        job->count += lk_divide_up(reals, 16) * 16;
    } else {
        job->packed = reals;
    }
}

enum lk_status lk_plane_weights_prepare(const struct lk_product_setup *setup,
                                        struct lk_product_job *job,
                                        struct lk_plane_weights *weights)
{
    char text[64];
    const int64_t reals =
        blocks_of(weights) * weights->block * (weights_of(weights->shape) + 1);
    lk_planes_place_weights(job, reals, &weights->turned, &weights->first);
    snprintf(text, sizeof text, "-DFILTERS=%lld -DNORM=%d -DTURNED=%d",
             (long long)weights->block, weights->shape->norm, weights->turned);
    return lk_product_kernel(setup, "products/planes/pack", "planes_pack", text,
                             &weights->pack);
}

enum lk_status lk_plane_weights_enqueue(const struct lk_plane_weights *weights,
                                        const struct lk_product_run *run)
{
    const struct lk_product_shape *s = weights->shape;
    const struct lk_grid grid = {{blocks_of(weights), 1, 1}, 1};
    if (!run->weights_are_new && !weights->turned)
        return LK_OK;
    return LK_ENQUEUE(
        weights->pack, grid, LK_BUF(run->w), LK_BUF(weights->turned ? NULL : run->bias),
        LK_BUF(run->norm[LK_NORM_GAMMA]), LK_BUF(run->norm[LK_NORM_BETA]),
        LK_BUF(run->norm[LK_NORM_MEAN]), LK_BUF(run->norm[LK_NORM_VARIANCE]),
        LK_REAL(s->epsilon), LK_PLANE_WEIGHTS(weights, run), LK_INT(s->groups),
        LK_INT(weights_of(s)), LK_INT(s->filters), LK_INT(s->axis[0].taps * s->axis[1].taps));
}

enum lk_status lk_planes_enqueue_pool(const struct lk_product_setup *setup,
                                      struct lk_kernel *kernel, const struct lk_planes *planes,
                                      int64_t count, int64_t first,
                                      const struct lk_product_run *run)
{
    const int64_t lanes = setup->tiling.lanes;
    const int64_t pixels = planes->in_h / 2 * (planes->in_w / 2);
    const struct lk_grid grid = {{count, setup->tiling.tiles, 1}, 1};
    return LK_ENQUEUE(kernel, grid, LK_BUF(run->workspace), LK_INT(first), LK_BUF(run->y),
                      LK_BUF(run->at), LK_INT(planes->in_h), LK_INT(planes->in_w),
                      LK_INT(planes->in_vectors * lanes),
                      LK_INT(lk_divide_up(pixels, lanes) * lanes));
}
