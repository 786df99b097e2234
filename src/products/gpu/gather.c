/* Direct sums of the GPU class, as products of matrices: cl/products/gpu/. One gather forward,
 * one for each phase of the strides in the data gradient. */
#include "products/direct/direct.h"
#include "products/gpu/args.h"
#include "products/gpu/cost.h"
#include "products/gpu/gpu.h"
#include "products/gpu/units.h"
#include "products/gpu/weights.h"

#include "base/fail.h"
#include "products/kernel/geometry.h"
#include <stdio.h>

enum { MOST_TAPS = 64, CHUNK = 8 };

struct gather {
    struct lk_direct_gather of;  /* pack: NULL where weights are read in place */
    int64_t pitch, group_stride; /* of the weights that are read */
    struct lk_gpu_tile tile;
};

struct gpu {
    enum lk_pass pass;
    int matrix; /* as in lk_gpu_product */
    struct lk_product_shape shape;
    struct gather *gathers;
    int gather_count;
    struct lk_gpu_weights weights;
};

/* The numbers of the kernels are of 32 bits, and so are offsets within tiles of one block. */
static bool is_small(const struct lk_product_setup *setup, const struct lk_product_shape *s)
{
    const double row = (double)setup->tiling.lanes * (double)lk_dtype_bytes(setup->real);
    const double x = (double)s->channels * (double)(s->axis[0].in * s->axis[1].in);
    const double y = (double)s->filters * (double)(s->axis[0].all_out * s->axis[1].all_out);
    const double outs = (double)(s->axis[0].all_out * s->axis[1].all_out);
    const double ins = (double)(s->axis[0].in * s->axis[1].in);
    const double lanes = (double)setup->tiling.lanes;
    const double tiles = 2 + 256 / ((outs < ins ? outs : ins) * lanes); /* of a block */
    const double w = (double)(s->channels + CHUNK) * (double)(s->filters + CHUNK) *
                     (double)(s->axis[0].taps * s->axis[1].taps * s->groups);
    const double most = (x > y ? x : y) * (double)s->groups;
    return tiles * most * row < 0x7fffffff &&
           w * (double)lk_dtype_bytes(setup->real) < 0x7fffffff;
}

/* Columns are counted in 32 bits as well. A choice of algorithms never depends on the batch, so
 * a batch that is too large for this one is refused: its activations would fill hundreds of
 * gigabytes. */
static enum lk_status check_columns(const struct lk_product_setup *setup, int64_t columns)
{
    enum { MOST_COLUMNS = 0x7fffffff - 256 };
    if (columns <= MOST_COLUMNS)
        return LK_OK;
    return lk_fail(LK_E_UNSUPPORTED,
                   "%s: %lld pixels and samples of a launch, at most %d: take a smaller batch",
                   setup->node, (long long)columns, MOST_COLUMNS);
}

static struct lk_gpu_product gather_product(const struct lk_product_setup *setup,
                                            const struct lk_direct_gather *g, int matrix)
{
    return (struct lk_gpu_product){.use = LK_GPU_GATHER,
                                   .matrix = matrix,
                                   .rows = g->outs,
                                   .columns = g->axis[0].out * g->axis[1].out *
                                              setup->tiling.tiles * setup->tiling.lanes,
                                   .count = g->groups};
}

/* --- forward and data gradient --------------------------------------------------------- */

/* Whether the weights lie as the kernel reads them. */
static bool is_in_place(const struct lk_direct_gather *g)
{
    const struct lk_direct_taps *w = &g->from;
    return w->out_stride == 1 && w->first == 0 && w->column_stride % 4 == 0 &&
           (g->groups == 1 || w->group_stride % 4 == 0) &&
           w->row_stride == g->axis[1].taps * w->column_stride &&
           w->in_stride == g->axis[0].taps * w->row_stride;
}

static enum lk_status prepare_gather(const struct lk_product_setup *setup, const char *blocking,
                                     int matrix, struct gather *gather)
{
    struct lk_direct_gather *g = &gather->of;
    const struct lk_gpu_product product = gather_product(setup, g, matrix);
    const int taps_y = (int)g->axis[0].taps, taps_x = (int)g->axis[1].taps;
    const int chunk = g->ins < CHUNK ? 1 : CHUNK;
    const struct lk_geometry numbers = lk_geometry_of(g->axis);
    char geometry[LK_GEOMETRY_BYTES], tile[96], text[512];
    LK_TRY(check_columns(setup, product.columns));
    if (!lk_gpu_tile_choose(setup, &product, blocking, &gather->tile))
        return lk_fail(LK_E_UNSUPPORTED, "%s: no tile fits the device", setup->node);
    lk_gpu_tile_print(&gather->tile, matrix, tile, sizeof tile);
    lk_geometry_print(&numbers, LK_GEOMETRY_TAPS, geometry);
    snprintf(text, sizeof text, "%s -DCHUNK=%d -DEVEN=%d -DRELU=%d -DPOOL=%d%s%s", geometry,
             chunk, g->ins % chunk == 0 && g->ins * taps_y * taps_x % gather->tile.depth == 0,
             g->ends && g->ends->relu, g->pool, g->is_gated ? " -DGATED=1" : "", tile);
    LK_TRY(lk_product_kernel(setup, "products/gpu/gather", "conv2d_gpu", text, &g->gather));
    gather->pitch = g->from.column_stride;
    gather->group_stride = g->from.group_stride;
    if (is_in_place(g) || taps_y * taps_x == 0)
        return LK_OK;
    gather->pitch = lk_divide_up(g->outs, 4) * 4;
    gather->group_stride = g->ins * taps_y * taps_x * gather->pitch;
    g->packed_count = g->groups * gather->group_stride;
    return lk_product_kernel(setup, "products/gpu/gather", "conv2d_turn", text, &g->pack);
}

static enum lk_status prepare_gathers(const struct lk_product_setup *setup,
                                      struct lk_product_job *job, struct gpu *gpu)
{
    const bool forward = job->pass == LK_PASS_FORWARD;
    const int count = forward ? 1 : lk_direct_phases(job->shape);
    void *gathers;
    LK_TRY(lk_arena_allocate(setup->arena, (size_t)count * sizeof *gpu->gathers, &gathers));
    gpu->gathers = gathers;
    for (int i = 0; i < count; i++) {
        struct lk_direct_gather *g = &gpu->gathers[i].of;
        if (forward)
            lk_direct_describe_forward(job->shape, g);
        else
            lk_direct_describe_phase(job->shape, i, g);
        gpu->gather_count++;
        g->packed_first = job->first + job->count;
        g->is_gated = job->is_gated;
        LK_TRY(prepare_gather(setup, job->blocking, gpu->matrix, &gpu->gathers[i]));
        job->count += g->packed_count;
    }
    return LK_OK;
}

static enum lk_status enqueue_turn(const struct lk_product_setup *setup,
                                   const struct gather *gather,
                                   const struct lk_product_run *run)
{
    const struct lk_direct_gather *g = &gather->of;
    const struct lk_direct_taps *from = &g->from;
    const struct lk_grid grid = {{g->ins * g->axis[0].taps * g->axis[1].taps, g->groups, 1},
                                 lk_product_items(setup)};
    const struct lk_gpu_turn args = {.w_pitch = gather->pitch,
                                     .outs = g->outs,
                                     .group_stride = from->group_stride,
                                     .out_stride = from->out_stride,
                                     .in_stride = from->in_stride,
                                     .first = from->first,
                                     .row_stride = from->row_stride,
                                     .column_stride = from->column_stride};
    return LK_ENQUEUE(g->pack, grid, LK_BUF(run->w), LK_BUF(run->workspace),
                      LK_INT(g->packed_first), LK_STRUCT(&args));
}

static enum lk_status enqueue_gather(const struct lk_product_setup *setup, enum lk_pass pass,
                                     const struct gather *gather,
                                     const struct lk_product_run *run)
{
    const bool forward = pass == LK_PASS_FORWARD;
    const struct lk_direct_gather *g = &gather->of;
    const int64_t columns =
        g->axis[0].out * g->axis[1].out * setup->tiling.tiles * setup->tiling.lanes;
    const struct lk_grid grid = {{lk_divide_up(columns, gather->tile.columns),
                                  lk_divide_up(g->outs, gather->tile.rows), g->groups},
                                 lk_gpu_tile_items(&gather->tile)};
    const struct lk_geometry geometry = lk_geometry_of(g->axis);
    const struct lk_gpu_gather args = {.tiles = setup->tiling.tiles,
                                       .channels = g->ins,
                                       .filters = g->outs,
                                       .w_group = gather->group_stride,
                                       .w_pitch = gather->pitch,
                                       .y_row = g->out_stride[0] * g->plane_width,
                                       .y_column = g->out_stride[1],
                                       .plane = g->plane};
    if (g->pack)
        LK_TRY(enqueue_turn(setup, gather, run));
    return LK_ENQUEUE(
        g->gather, grid, LK_BUF(forward ? run->x : run->dz),
        LK_INT(forward ? 0 : run->dz_first), LK_BUF(g->pack ? run->workspace : run->w),
        LK_INT(g->pack ? g->packed_first : 0), LK_BUF(forward ? run->bias : NULL),
        LK_BUF(forward ? run->y : run->dx),
        LK_INT((g->out_first[0] * g->plane_width + g->out_first[1]) * setup->tiling.lanes),
        LK_BUF(forward ? run->at : NULL), LK_BUF(g->is_gated ? run->x : NULL), LK_STRUCT(&args),
        LK_STRUCT(&geometry));
}

/* --- the verbs --------------------------------------------------------------------- */

static bool fits_with(const struct lk_product_setup *setup, const struct lk_product_job *job,
                      int matrix)
{
    const struct lk_gpu_product product = lk_gpu_product(setup, job, matrix);
    const int64_t taps = job->shape->axis[0].taps * job->shape->axis[1].taps;
    struct lk_gpu_tile tile;
    return (job->pass == LK_PASS_WEIGHTS || taps <= MOST_TAPS) && is_small(setup, job->shape) &&
           lk_gpu_tile_choose(setup, &product, "", &tile);
}

static bool fits(const struct lk_product_setup *setup, const struct lk_product_job *job)
{
    return fits_with(setup, job, 0);
}

static bool matrix_fits(const struct lk_product_setup *setup, const struct lk_product_job *job)
{
    const int matrix = lk_gpu_matrix(setup);
    return matrix && fits_with(setup, job, matrix);
}

static double cost(const struct lk_product_setup *setup, const struct lk_product_job *job)
{
    return lk_gpu_cost(setup, job, 0);
}

static double matrix_cost(const struct lk_product_setup *setup,
                          const struct lk_product_job *job)
{
    return lk_gpu_cost(setup, job, lk_gpu_matrix(setup));
}

/* Blocks of units are full of work only where there are many of them. */
bool lk_gpu_takes_matrix(const struct lk_product_setup *setup,
                         const struct lk_product_shape *shape)
{
    const struct lk_product_job forward = {.shape = shape, .pass = LK_PASS_FORWARD};
    return setup->tiling.vector == 1 && fits(setup, &forward) &&
           lk_divide_up(shape->filters, 64) * 20 < shape->filters;
}

static bool blocking_of(const struct lk_product_setup *setup, const struct lk_product_job *job,
                        int matrix, int index, char text[LK_BLOCKING_BYTES])
{
    const bool of_weights = job->pass == LK_PASS_WEIGHTS;
    const struct lk_gpu_product product = {.use = of_weights ? LK_GPU_WEIGHTS : LK_GPU_GATHER,
                                           .matrix = matrix};
    return lk_gpu_tile_name(setup, &product, index, text);
}

static bool blocking(const struct lk_product_setup *setup, const struct lk_product_job *job,
                     int index, char text[LK_BLOCKING_BYTES])
{
    return blocking_of(setup, job, 0, index, text);
}

static bool matrix_blocking(const struct lk_product_setup *setup,
                            const struct lk_product_job *job, int index,
                            char text[LK_BLOCKING_BYTES])
{
    return blocking_of(setup, job, lk_gpu_matrix(setup), index, text);
}

static enum lk_status prepare_with(const struct lk_product_setup *setup,
                                   struct lk_product_job *job, int matrix, void **state)
{
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct gpu), state));
    struct gpu *gpu = *state;
    gpu->pass = job->pass;
    gpu->matrix = matrix;
    gpu->shape = *job->shape;
    return job->pass == LK_PASS_WEIGHTS
               ? lk_gpu_weights_prepare(setup, job, matrix, &gpu->weights)
               : prepare_gathers(setup, job, gpu);
}

static enum lk_status prepare(const struct lk_product_setup *setup, struct lk_product_job *job,
                              void **state)
{
    return prepare_with(setup, job, 0, state);
}

static enum lk_status matrix_prepare(const struct lk_product_setup *setup,
                                     struct lk_product_job *job, void **state)
{
    return prepare_with(setup, job, lk_gpu_matrix(setup), state);
}

static enum lk_status enqueue(const struct lk_product_setup *setup, void *state,
                              const struct lk_product_run *run)
{
    const struct gpu *gpu = state;
    if (gpu->pass == LK_PASS_WEIGHTS)
        return lk_gpu_weights_enqueue(setup, &gpu->shape, &gpu->weights, run);
    for (int i = 0; i < gpu->gather_count; i++)
        LK_TRY(enqueue_gather(setup, gpu->pass, &gpu->gathers[i], run));
    return LK_OK;
}

const struct lk_product_verbs lk_gpu_gemm = {
    .fits = fits, .cost = cost, .blocking = blocking, .prepare = prepare, .enqueue = enqueue};

const struct lk_product_verbs lk_gpu_matrix_gemm = {.fits = matrix_fits,
                                                    .cost = matrix_cost,
                                                    .blocking = matrix_blocking,
                                                    .prepare = matrix_prepare,
                                                    .enqueue = enqueue};
