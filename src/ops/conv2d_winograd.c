/* Winograd convolution: forward and data gradient. See cl/products/winograd/convolve.cl. */
#include "ops/conv2d_winograd.h"
#include "ops/gpu_tile.h"

#include "base/fail.h"
#include <stdio.h>

struct winograd {
    const struct lk_conv2d_winograd_part *part; /* that does it all; NULL: what follows does */
    void *inner;                                /* its state */
    struct lk_conv2d_winograd_geometry g;
    int64_t squares, unit; /* Winograd tiles: of a plane; of the kernel's units */
    int64_t groups;        /* that share out all units and blocks of output channels */
    int64_t weights_first, scratch_first; /* in the workspace */
    struct lk_kernel *pack, *convolve;
};

enum {
    ROWS = 4,
    EACH = 4,                /* Winograd tiles that are transformed together */
    MOST_TAPS = 1 << 24,     /* channels x filters that 32-bit offsets reach */
    CACHED_BYTES = 12 << 20, /* larger outputs do not stay in the caches */
};

/* Winograd tiles of a plane. */
static int64_t count_squares(const int64_t plane[2], int64_t tile)
{
    return lk_divide_up(plane[0], tile) * lk_divide_up(plane[1], tile);
}

/* Turned taps make a data gradient's tiles of its outputs; its transpose makes them of dz,
 * which without padding is smaller. Of large planes little, and their overlaps leave the
 * caches: a quarter is to be spared. Where a pool drops outputs, tiles of what is left may not
 * touch the last inputs. */
static bool is_transposed(const struct lk_conv2d_shape *s, int64_t tile)
{
    int64_t in[2], out[2];
    for (int i = 0; i < 2; i++) {
        const struct lk_conv2d_axis *axis = &s->axis[i];
        in[i] = axis->in;
        out[i] = axis->out;
        if (lk_divide_up(axis->out, tile) * tile + 2 - axis->pad < axis->in)
            return false;
    }
    return 4 * count_squares(out, tile) <= 3 * count_squares(in, tile);
}

static void transpose(struct lk_conv2d_winograd_geometry *g, const struct lk_conv2d_shape *s)
{
    g->transposed = !g->forward && is_transposed(s, g->tile);
    if (!g->transposed)
        return;
    g->row_step = -g->row_step;
    g->column_step = -g->column_step;
    g->w_first = 0;
    for (int i = 0; i < 2; i++)
        g->pad[i] = s->axis[i].pad;
}

void lk_conv2d_winograd_describe(const struct lk_conv2d_job *job, int64_t tile,
                                 struct lk_conv2d_winograd_geometry *g)
{
    const struct lk_conv2d_shape *s = job->shape;
    const int64_t column = s->filters, row = 3 * column, channel = 3 * row;
    g->tile = tile;
    g->forward = job->pass == LK_CONV2D_FORWARD;
    for (int i = 0; i < 2; i++) {
        const struct lk_conv2d_axis *axis = &s->axis[i];
        g->in[i] = g->forward ? axis->in : axis->out;
        g->out[i] = g->forward ? axis->out : axis->in;
        g->pad[i] = g->forward ? axis->pad : 2 - axis->pad;
    }
    g->ins = g->forward ? s->channels : s->filters;
    g->outs = g->forward ? s->filters : s->channels;
    g->in_step = g->forward ? channel : 1;
    g->out_step = g->forward ? 1 : channel;
    g->row_step = g->forward ? row : -row;
    g->column_step = g->forward ? column : -column;
    g->w_first = g->forward ? 0 : 2 * row + 2 * column;
    g->relu = g->forward && s->relu;
    g->source = g->forward ? LK_CONV2D_PLAIN : (int)job->gradient;
    g->pool = g->forward && s->pool;
    g->is_gated = job->is_gated;
}

/* Parts that all work can be cut into. */
static int64_t count_parts(const struct winograd *w, int64_t tiles)
{
    return lk_divide_up(tiles * w->squares, w->unit) * lk_divide_up(w->g.outs, ROWS);
}

static enum lk_status prepare_convolution(struct lk_op_setup *setup, struct lk_conv2d_job *job,
                                          int64_t tile, void **state)
{
    LK_TRY(lk_arena_take(setup->arena, sizeof(struct winograd), state));
    struct winograd *w = *state;
    if (setup->tiling.vector == 1)
        w->part = &lk_conv2d_winograd_gpu;
    else if (job->pass == LK_CONV2D_WEIGHTS)
        w->part = lk_conv2d_winograd_fits(setup, job->shape, tile)
                      ? &lk_conv2d_winograd_fused
                      : &lk_conv2d_winograd_weights;
    if (w->part)
        return w->part->prepare(setup, job, tile, &w->inner);
    char text[128];
    const int64_t positions = (tile + 2) * (tile + 2);
    const struct lk_tiling *t = &setup->tiling;
    lk_conv2d_winograd_describe(job, tile, &w->g);
    transpose(&w->g, job->shape);
    const size_t bytes = (size_t)t->vector * lk_dtype_bytes(setup->real);
    const int columns = bytes == 64 ? 4 : 2; /* of the register block; it has ROWS rows */
    w->squares = count_squares(w->g.transposed ? w->g.in : w->g.out, tile);
    for (w->unit = EACH; w->g.transposed && w->unit % w->squares != 0;)
        w->unit += EACH;
    w->groups =
        lk_least(lk_device_info(setup->device)->compute_units, count_parts(w, t->tiles));
    const int64_t outs = lk_divide_up(w->g.outs, ROWS) * ROWS;
    w->weights_first = job->first;
    w->scratch_first = job->first + (positions * outs * w->g.ins + 15) / 16 * 16;
    const int64_t overlaps = w->g.transposed ? w->g.outs * w->g.out[0] * w->g.out[1] : 0;
    job->count =
        w->scratch_first - job->first +
        w->groups * (positions * (EACH * (w->g.ins + outs) + 8) + overlaps) * t->vector;
    const double y = (double)(t->tiles * t->lanes) *
                     (double)(w->g.outs * w->g.out[0] * w->g.out[1]) *
                     (double)lk_dtype_bytes(lk_op_stored(setup));
    snprintf(text, sizeof text, "-DTILE=%d -DMR=%d", (int)tile, ROWS);
    LK_TRY(
        lk_op_kernel(setup, "products/winograd/pack", "conv2d_winograd_pack", text, &w->pack));
    snprintf(text, sizeof text,
             "-DTILE=%d -DEACH=%d -DMR=%d -DNV=%d -DPOOL=%d -DSTREAM=%d -DSOURCE=%d "
             "-DTRANSPOSED=%d%s",
             (int)tile, EACH, ROWS, columns, w->g.pool, y > CACHED_BYTES, w->g.source,
             w->g.transposed, w->g.is_gated ? " -DGATED=1" : "");
    return lk_op_kernel(setup, "products/winograd/convolve", "conv2d_winograd", text,
                        &w->convolve);
}

static enum lk_status enqueue_pack(const struct lk_op_setup *setup, const struct winograd *w,
                                   const struct lk_conv2d_operands *run)
{
    const struct lk_grid grid = {{lk_divide_up(w->g.outs, ROWS), 1, 1}, lk_op_items(setup)};
    return LK_ENQUEUE(w->pack, grid, LK_BUF(run->w), LK_INT(w->g.w_first),
                      LK_BUF(run->workspace), LK_INT(w->weights_first), LK_INT(w->g.ins),
                      LK_INT(w->g.outs), LK_INT(w->g.in_step), LK_INT(w->g.row_step),
                      LK_INT(w->g.column_step), LK_INT(w->g.out_step));
}

static enum lk_status enqueue(const struct lk_op_setup *setup, void *state,
                              const struct lk_conv2d_operands *run)
{
    const struct winograd *w = state;
    if (w->part)
        return w->part->enqueue(setup, w->inner, run);
    const int64_t parts = count_parts(w, setup->tiling.tiles);
    const struct lk_grid grid = {{lk_least(w->groups, parts), 1, 1}, lk_op_items(setup)};
    LK_TRY(enqueue_pack(setup, w, run));
    return LK_ENQUEUE(
        w->convolve, grid, LK_BUF(w->g.forward ? run->x : run->dz),
        LK_INT(w->g.forward ? 0 : run->dz_first),
        LK_BUF(w->g.source == LK_CONV2D_MASKED ? run->y : NULL),
        LK_BUF(w->g.source == LK_CONV2D_POOLED ? run->at : NULL), LK_BUF(run->workspace),
        LK_INT(w->weights_first), LK_BUF(w->g.forward ? run->bias : NULL),
        LK_BUF(w->g.forward ? run->y : run->dx), LK_BUF(w->g.forward ? run->at : NULL),
        LK_BUF(w->g.is_gated ? run->x : NULL), LK_BUF(run->workspace), LK_INT(w->scratch_first),
        LK_INT(setup->tiling.tiles), LK_INT(w->g.ins), LK_INT(w->g.in[0]), LK_INT(w->g.in[1]),
        LK_INT(w->g.outs), LK_INT(w->g.out[0]), LK_INT(w->g.out[1]), LK_INT(w->g.pad[0]),
        LK_INT(w->g.pad[1]), LK_INT(w->g.relu), LK_INT(w->unit));
}

static void release(void *state)
{
    struct winograd *w = state;
    if (w->inner)
        w->part->release(w->inner);
    lk_kernel_destroy(w->pack);
    lk_kernel_destroy(w->convolve);
}

size_t lk_conv2d_winograd_stage_bytes(const struct lk_op_setup *setup, int64_t tile)
{
    const int vector = setup->tiling.vector;
    return (size_t)(tile * tile * vector * vector) * lk_dtype_bytes(setup->real);
}

static bool fits_local(const struct lk_op_setup *setup, enum lk_conv2d_pass pass, int64_t tile)
{
    return pass != LK_CONV2D_WEIGHTS || setup->tiling.vector == 1 ||
           lk_conv2d_winograd_stage_bytes(setup, tile) <=
               lk_device_info(setup->device)->local_bytes;
}

/* Winograd tiles of a sample, or -1 where the algorithm cannot. */
static double squares_of(const struct lk_op_setup *setup, const struct lk_conv2d_shape *s,
                         enum lk_conv2d_pass pass, int64_t tile)
{
    const struct lk_gpu_product any = {
        pass == LK_CONV2D_WEIGHTS ? LK_GPU_WEIGHTS : LK_GPU_GATHER, 64, 64, 1, 0};
    struct lk_gpu_tile fits;
    int64_t planes[2][2]; /* y, x */
    if (!fits_local(setup, pass, tile))
        return -1;
    if (s->groups > 1 || (double)(s->channels + ROWS) * (double)(s->filters + ROWS) > MOST_TAPS)
        return -1;
    if (setup->tiling.vector == 1 && !lk_gpu_tile_choose(setup, &any, "", &fits))
        return -1;
    for (int i = 0; i < 2; i++) {
        const struct lk_conv2d_axis *axis = &s->axis[i];
        if (axis->taps != 3 || axis->step != 1 || axis->gap != 1)
            return -1;
        planes[0][i] = axis->out;
        planes[1][i] = axis->in;
    }
    const int64_t of_y = count_squares(planes[0], tile), of_x = count_squares(planes[1], tile);
    const bool are_turned = setup->tiling.vector == 1 || !is_transposed(s, tile);
    return (double)(pass == LK_CONV2D_DATA && are_turned ? of_x : of_y);
}

/* Channels times filters. The fused weight gradient goes over whole vectors of filters, and is
 * half as fast with one. */
static double count_products(const struct lk_op_setup *setup, const struct lk_conv2d_shape *s,
                             bool is_fused)
{
    const int64_t vectors = lk_divide_up(s->filters, setup->tiling.vector);
    const int64_t filters = (vectors < 2 ? 2 : vectors) * setup->tiling.vector;
    return (double)(s->channels * (is_fused ? filters : s->filters));
}

/* Products at 0.8 of the peak, the transforms of inputs and outputs, and those of the weights
 * or of their sums, which a shard's tiles share. Measured on CPUs; on GPUs transforms wait for
 * memory: four numbers of a channel and position at 40 multiply-adds each. */
static double cost(const struct lk_op_setup *setup, const struct lk_conv2d_shape *s,
                   enum lk_conv2d_pass pass, int64_t tile)
{
    const bool is_cpu = setup->tiling.vector > 1, of_weights = pass == LK_CONV2D_WEIGHTS;
    const bool is_fused = is_cpu && of_weights && lk_conv2d_winograd_fits(setup, s, tile);
    const double squares = squares_of(setup, s, pass, tile);
    const double products = count_products(setup, s, is_fused);
    const double each = !is_cpu ? 160 : is_fused ? 20 : of_weights ? 78 : 16;
    if (squares < 0)
        return -1;
    return (double)((tile + 2) * (tile + 2)) *
           (squares * (products / 0.8 + each * (double)(s->channels + s->filters)) +
            (of_weights && !is_fused ? 7 : 3.5) * products / (double)setup->tiling.shard_tiles);
}

static double cost4(const struct lk_op_setup *setup, const struct lk_conv2d_shape *s,
                    enum lk_conv2d_pass pass)
{
    return cost(setup, s, pass, 4);
}

static enum lk_status prepare4(struct lk_op_setup *setup, struct lk_conv2d_job *job,
                               void **state)
{
    return prepare_convolution(setup, job, 4, state);
}

const struct lk_conv2d_algorithm lk_conv2d_winograd4 = {
    .name = "winograd4",
    .reads_dy = {[LK_CONV2D_DATA] = true, [LK_CONV2D_WEIGHTS] = true},
    .gates_dx = true,
    .cost = cost4,
    .prepare = prepare4,
    .enqueue = enqueue,
    .release = release};

static double cost2(const struct lk_op_setup *setup, const struct lk_conv2d_shape *s,
                    enum lk_conv2d_pass pass)
{
    return cost(setup, s, pass, 2);
}

static enum lk_status prepare2(struct lk_op_setup *setup, struct lk_conv2d_job *job,
                               void **state)
{
    return prepare_convolution(setup, job, 2, state);
}

const struct lk_conv2d_algorithm lk_conv2d_winograd2 = {
    .name = "winograd2",
    .reads_dy = {[LK_CONV2D_DATA] = true, [LK_CONV2D_WEIGHTS] = true},
    .gates_dx = true,
    .cost = cost2,
    .prepare = prepare2,
    .enqueue = enqueue,
    .release = release};
