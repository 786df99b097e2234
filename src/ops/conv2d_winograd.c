/* Winograd convolution: forward and data gradient. See cl/conv2d_winograd.cl. */
#include "ops/conv2d_winograd.h"

#include "base/fail.h"
#include <stdio.h>

/* A convolution of 3x3 taps on every pixel. */
struct winograd {
    void *weights; /* of the weight gradient, which has nothing of what follows; else NULL */
    bool forward;
    int64_t tile, ins, outs, in[2], out[2], pad[2];
    int64_t w_first, in_step, row_step, column_step, out_step; /* elements of the parameter */
    bool relu;
    int columns;                          /* of the register block; it has ROWS rows */
    int source;                           /* as enum lk_conv2d_gradient */
    int64_t each, share;                  /* of a job: tiles, output channels */
    int64_t groups;                       /* that share them out */
    int64_t weights_first, scratch_first; /* in the workspace */
    struct lk_kernel *pack, *convolve;
};

enum {
    ROWS = 4,
    FAR_REALS = 4 << 20,     /* weights larger than this do not stay in the caches, */
    CACHED_BYTES = 12 << 20, /* nor do outputs */
};

static void describe(const struct lk_conv2d_job *job, struct winograd *w)
{
    const struct lk_conv2d_shape *s = job->shape;
    const int64_t column = s->filters, row = 3 * column, channel = 3 * row;
    w->forward = job->pass == LK_CONV2D_FORWARD;
    for (int i = 0; i < 2; i++) {
        const struct lk_conv2d_axis *axis = &s->axis[i];
        w->in[i] = w->forward ? axis->in : axis->out;
        w->out[i] = w->forward ? axis->out : axis->in;
        w->pad[i] = w->forward ? axis->pad : 2 - axis->pad;
    }
    w->ins = w->forward ? s->channels : s->filters;
    w->outs = w->forward ? s->filters : s->channels;
    w->in_step = w->forward ? channel : 1;
    w->out_step = w->forward ? 1 : channel;
    w->row_step = w->forward ? row : -row;
    w->column_step = w->forward ? column : -column;
    w->w_first = w->forward ? 0 : 2 * row + 2 * column;
    w->relu = w->forward && s->relu;
    w->source = w->forward ? LK_CONV2D_PLAIN : (int)job->gradient;
}

/* Runs of `columns` Winograd tiles, for each share of output channels. */
static int64_t count_units(const struct winograd *w, int64_t tiles, int64_t share)
{
    const int64_t squares = lk_divide_up(w->out[0], w->tile) * lk_divide_up(w->out[1], w->tile);
    return lk_divide_up(tiles * squares, w->columns) * lk_divide_up(w->outs, share);
}

/* What `units` units take one after another, in multiply-adds of vectors: products, the
 * transforms, and weights that come from afar for every job. Measured. */
static double units_cost(const struct winograd *w, int64_t units, int64_t each, int64_t share,
                         bool far)
{
    const double positions = (double)((w->tile + 2) * (w->tile + 2));
    const double tiles = (double)(units * w->columns);
    const double jobs = (double)lk_divide_up(units * w->columns, each);
    return positions * (double)(w->ins * share) * (tiles + (far ? 4 : 1) * jobs) +
           tiles * (8 * positions) * (double)(w->ins + share);
}

/* The cut that keeps the compute units busy for the shortest time. */
static void choose_jobs(const struct lk_op_setup *setup, struct winograd *w)
{
    const struct lk_device_info *info = lk_device_info(setup->device);
    const int64_t blocks = lk_divide_up(w->outs, ROWS);
    const bool far = w->scratch_first - w->weights_first > FAR_REALS;
    double least = -1;
    for (int64_t each = w->columns; each <= (far ? 2 : 1) * w->columns; each += w->columns)
        for (int64_t shares = 1; shares <= blocks; shares *= 2) {
            const int64_t share = lk_divide_up(blocks, shares) * ROWS;
            const int64_t units = count_units(w, setup->tiling.tiles, share);
            const double cost =
                units_cost(w, lk_divide_up(units, info->compute_units), each, share, far);
            if (least >= 0 && cost >= least)
                continue;
            least = cost;
            w->each = each;
            w->share = share;
            w->groups = lk_least(info->compute_units, units);
        }
}

static enum lk_status prepare_convolution(struct lk_op_setup *setup, struct lk_conv2d_job *job,
                                          int64_t tile, void **state)
{
    LK_TRY(lk_arena_take(setup->arena, sizeof(struct winograd), state));
    struct winograd *w = *state;
    if (job->pass == LK_CONV2D_WEIGHTS)
        return lk_conv2d_winograd_weights_prepare(setup, job, tile, &w->weights);
    char text[128];
    const int64_t positions = (tile + 2) * (tile + 2);
    const struct lk_tiling *t = &setup->tiling;
    w->tile = tile;
    describe(job, w);
    const bool pool = w->forward && job->shape->pool;
    const size_t bytes = (size_t)t->vector * lk_dtype_bytes(setup->real);
    w->columns = bytes == 64 ? 4 : 2;
    const int64_t outs = lk_divide_up(w->outs, ROWS) * ROWS;
    w->weights_first = job->first;
    w->scratch_first = job->first + (positions * outs * w->ins + 15) / 16 * 16;
    choose_jobs(setup, w);
    job->count = w->scratch_first - job->first +
                 w->groups * positions * (w->each * (w->ins + w->share) + 8) * t->vector;
    const double y = (double)(t->tiles * t->lanes) * (double)(w->outs * w->out[0] * w->out[1]) *
                     (double)lk_dtype_bytes(setup->real);
    snprintf(text, sizeof text, "-DTILE=%d -DMR=%d", (int)tile, ROWS);
    LK_TRY(lk_op_kernel(setup, "conv2d_winograd_pack", "conv2d_winograd_pack", text, &w->pack));
    snprintf(text, sizeof text, "-DTILE=%d -DMR=%d -DNV=%d -DPOOL=%d -DSTREAM=%d -DSOURCE=%d",
             (int)tile, ROWS, w->columns, pool, y > CACHED_BYTES, w->source);
    return lk_op_kernel(setup, "conv2d_winograd", "conv2d_winograd", text, &w->convolve);
}

static enum lk_status enqueue_pack(const struct lk_op_setup *setup, const struct winograd *w,
                                   const struct lk_conv2d_operands *run)
{
    const struct lk_grid grid = {{lk_divide_up(w->outs, ROWS), 1, 1}, lk_op_items(setup)};
    return LK_ENQUEUE(w->pack, grid, LK_BUF(run->w), LK_INT(w->w_first), LK_BUF(run->workspace),
                      LK_INT(w->weights_first), LK_INT(w->ins), LK_INT(w->outs),
                      LK_INT(w->in_step), LK_INT(w->row_step), LK_INT(w->column_step),
                      LK_INT(w->out_step));
}

static enum lk_status enqueue(const struct lk_op_setup *setup, void *state,
                              const struct lk_conv2d_operands *run)
{
    const struct winograd *w = state;
    if (w->weights)
        return lk_conv2d_winograd_weights_enqueue(setup, w->weights, run);
    const int64_t units = count_units(w, setup->tiling.tiles, w->share);
    const struct lk_grid grid = {{lk_least(w->groups, units), 1, 1}, lk_op_items(setup)};
    LK_TRY(enqueue_pack(setup, w, run));
    return LK_ENQUEUE(
        w->convolve, grid, LK_BUF(w->forward ? run->x : run->dz),
        LK_INT(w->forward ? 0 : run->dz_first),
        LK_BUF(w->source == LK_CONV2D_MASKED ? run->y : NULL),
        LK_BUF(w->source == LK_CONV2D_POOLED ? run->at : NULL), LK_BUF(run->workspace),
        LK_INT(w->weights_first), LK_BUF(w->forward ? run->bias : NULL),
        LK_BUF(w->forward ? run->y : run->dx), LK_BUF(w->forward ? run->at : NULL),
        LK_BUF(run->workspace), LK_INT(w->scratch_first), LK_INT(setup->tiling.tiles),
        LK_INT(w->ins), LK_INT(w->in[0]), LK_INT(w->in[1]), LK_INT(w->outs), LK_INT(w->out[0]),
        LK_INT(w->out[1]), LK_INT(w->pad[0]), LK_INT(w->pad[1]), LK_INT(w->relu),
        LK_INT(w->each), LK_INT(w->share));
}

static void release(void *state)
{
    struct winograd *w = state;
    if (w->weights)
        lk_conv2d_winograd_weights_release(w->weights);
    lk_kernel_destroy(w->pack);
    lk_kernel_destroy(w->convolve);
}

/* Products at 0.8 of the peak, the transforms of inputs and outputs, and those of the weights
 * or of their sums, which a shard's tiles share. Measured. */
static double cost(const struct lk_op_setup *setup, const struct lk_conv2d_shape *s,
                   enum lk_conv2d_pass pass, int64_t tile)
{
    const bool of_weights = pass == LK_CONV2D_WEIGHTS;
    double squares = 1;
    if (setup->tiling.vector == 1 || s->groups > 1)
        return -1;
    for (int i = 0; i < 2; i++) {
        const struct lk_conv2d_axis *axis = &s->axis[i];
        if (axis->taps != 3 || axis->step != 1 || axis->gap != 1)
            return -1;
        squares *= (double)lk_divide_up(pass == LK_CONV2D_DATA ? axis->in : axis->out, tile);
    }
    const double products = (double)(s->channels * s->filters);
    const double transforms = (of_weights ? 78 : 16) * (double)(s->channels + s->filters);
    return (double)((tile + 2) * (tile + 2)) *
           (squares * (products / 0.8 + transforms) +
            (of_weights ? 7 : 3.5) * products / (double)setup->tiling.shard_tiles);
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
    .cost = cost2,
    .prepare = prepare2,
    .enqueue = enqueue,
    .release = release};
