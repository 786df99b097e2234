/* Layer normalization: mean and variance are taken over the channels, of each pixel or time
 * step by itself, or over all numbers of a sample. source: Ba, Kiros, Hinton, Layer
 * Normalization (2016) */
#include "base/fail.h"
#include "ops/args.h"
#include "ops/norm/norm.h"

#include <stdio.h>

enum { CHANNELS, ALL };
static const char *const axes[] = {"channels", "all", NULL};

static const struct lk_option table[] = {
    {.name = "axis",
     .kind = LK_OPTION_CHOICE,
     .offset = offsetof(struct lk_norm_options, axis),
     .standard = "channels",
     .choices = axes,
     .help =
         "what is normalized: the channels of every pixel or time step, or all numbers of a "
         "sample, each with a gamma and beta of its own"},
    LK_NORM_OPTIONS,
    {0},
};

static enum lk_status infer(struct lk_op_shapes *shapes)
{
    const struct lk_norm_options *o = shapes->options;
    const struct lk_shape *x = &shapes->x[0];
    char text[96];
    lk_shape_print_hwc(x, text, sizeof text);
    if (shapes->x_dtype[0] != LK_F32)
        return lk_fail(LK_E_SHAPE, "layer_norm takes numbers, not labels");
    if (x->rank < 1 || x->rank > 3)
        return lk_fail(
            LK_E_SHAPE,
            "layer_norm takes a vector [c], a sequence [t, c] or an image [h, w, c], "
            "not %s",
            text);
    const struct lk_shape channels = {1, {x->rank == 2 ? x->dim[1] : x->dim[0]}};
    lk_norm_infer(shapes, o->axis == ALL ? x : &channels);
    return LK_OK;
}

struct state {
    struct lk_kernel *forward, *backward, *gradients, *total;
    struct lk_layer_norm area;
    int64_t time_steps; /* which count as tiles */
    int block, columns; /* pixels that are normalized, channels that are summed at once */
};

/* Divides the work; parts decide bits, so they follow from the shape, the shard and the
 * device's class alone. */
static void divide(const struct lk_op_setup *setup, struct state *s)
{
    enum { SIDE_BY_SIDE = 8, BLOCK = 32 };
    const struct lk_norm_options *o = setup->options;
    const struct lk_shape *x = &setup->shapes.x[0];
    const bool is_gpu = setup->tiling.vector == 1;
    int64_t channels = lk_shape_count(x), pixels = 1;
    s->time_steps = 1;
    if (o->axis == CHANNELS && x->rank == 2)
        s->time_steps = x->dim[0];
    if (o->axis == CHANNELS && x->rank == 3)
        pixels = x->dim[1] * x->dim[2];
    channels /= s->time_steps * pixels;
    s->block = !is_gpu && pixels > 1 ? BLOCK : 1;
    s->columns = !is_gpu && pixels == 1 ? SIDE_BY_SIDE : 1;
    const int64_t summed = setup->tiling.shard_tiles * s->time_steps * pixels;
    const int64_t part_pixels = lk_op_part_pixels(setup, channels, summed);
    s->area = (struct lk_layer_norm){.channels = channels,
                                     .pixels = pixels,
                                     .parts = lk_divide_up(summed, part_pixels),
                                     .part_pixels = part_pixels,
                                     .shard_tiles = setup->tiling.shard_tiles * s->time_steps};
}

static enum lk_status announce(const struct lk_op_setup *setup, struct state *s)
{
    const struct lk_norm_options *o = setup->options;
    static const char source[] = "ops/norm/layer_norm";
    char text[96];
    snprintf(text, sizeof text, "-DRELU=%d -DBLOCK=%d -DCOLUMNS=%d", o->activation == LK_RELU,
             s->block, s->columns);
    LK_TRY(lk_op_kernel(setup, source, "layer_norm_forward", text, &s->forward));
    if (!setup->training)
        return LK_OK;
    snprintf(text, sizeof text, "-DRELU=%d -DBLOCK=%d -DCOLUMNS=%d", lk_norm_masks(setup),
             s->block, s->columns);
    if (setup->wants_dx[0])
        LK_TRY(lk_op_kernel(setup, source, "layer_norm_backward", text, &s->backward));
    if (!setup->wants_dw || setup->shapes.params == 0)
        return LK_OK;
    if (s->area.parts > 1)
        LK_TRY(lk_op_kernel(setup, source, "layer_norm_total", text, &s->total));
    return lk_op_kernel(setup, source, "layer_norm_gradients", text, &s->gradients);
}

static enum lk_status prepare(struct lk_op_setup *setup)
{
    const struct lk_tiling *t = &setup->tiling;
    const size_t real = lk_dtype_bytes(setup->real);
    void *memory;
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct state), &memory));
    struct state *s = setup->state = memory;
    divide(setup, s);
    if (setup->training)
        setup->saved_bytes =
            (size_t)(t->tiles * s->time_steps * s->area.pixels * t->lanes * 2) * real;
    if (setup->training && s->area.parts > 1)
        setup->workspace_bytes =
            (size_t)(t->shards * s->area.parts * s->area.channels * 2) * real;
    return announce(setup, s);
}

static struct lk_grid grid_of(const struct lk_op_setup *setup)
{
    const struct state *s = setup->state;
    return (struct lk_grid){
        {lk_divide_up(s->area.pixels, s->block), setup->tiling.tiles * s->time_steps, 1},
        lk_op_items(setup)};
}

/* The numbers of this run, which may have fewer tiles in a shard than the setup had. */
static struct lk_layer_norm area_of(const struct lk_op_setup *setup)
{
    const struct state *s = setup->state;
    struct lk_layer_norm area = s->area;
    area.shard_tiles = setup->tiling.shard_tiles * s->time_steps;
    return area;
}

static enum lk_status forward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct lk_norm_options *o = setup->options;
    const struct lk_norm_params w = lk_norm_params(setup, run);
    const struct lk_layer_norm area = area_of(setup);
    const struct state *s = setup->state;
    return LK_ENQUEUE(s->forward, grid_of(setup), LK_BUF(run->x[0]), LK_BUF(w.gamma),
                      LK_BUF(w.beta), LK_BUF(run->y), LK_BUF(run->saved), LK_REAL(o->epsilon),
                      LK_STRUCT(&area));
}

static enum lk_status backward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct lk_norm_params w = lk_norm_params(setup, run);
    const struct lk_layer_norm area = area_of(setup);
    const struct state *s = setup->state;
    const struct lk_buffer *y = lk_norm_masks(setup) ? run->y : NULL;
    if (run->dx[0])
        LK_TRY(LK_ENQUEUE(s->backward, grid_of(setup), LK_BUF(run->x[0]), LK_BUF(y),
                          LK_BUF(run->dy), LK_BUF(run->saved), LK_BUF(w.gamma),
                          LK_BUF(run->dx[0]), LK_STRUCT(&area)));
    if (!s->gradients || (!w.dgamma && !w.dbeta))
        return LK_OK;
    const struct lk_grid grid = {
        {lk_divide_up(area.channels, s->columns), setup->tiling.shards, area.parts},
        lk_op_items(setup)};
    LK_TRY(LK_ENQUEUE(s->gradients, grid, LK_BUF(run->x[0]), LK_BUF(y), LK_BUF(run->dy),
                      LK_BUF(run->saved), LK_BUF(s->total ? run->workspace : NULL),
                      LK_BUF(w.dgamma), LK_BUF(w.dbeta), LK_INT(run->dw_stride),
                      LK_STRUCT(&area),
                      LK_LOCAL(setup->tiling.lanes * (int64_t)lk_dtype_bytes(setup->real))));
    if (!s->total)
        return LK_OK;
    const int64_t each = 64 * (int64_t)lk_op_items(setup);
    const struct lk_grid sums = {{lk_divide_up(area.channels, each), setup->tiling.shards, 1},
                                 lk_op_items(setup)};
    return LK_ENQUEUE(s->total, sums, LK_BUF(run->workspace), LK_BUF(w.dgamma), LK_BUF(w.dbeta),
                      LK_INT(run->dw_stride), LK_INT(each), LK_STRUCT(&area));
}

static void release(struct lk_op_setup *setup)
{
    struct state *s = setup->state;
    if (!s)
        return;
    lk_kernel_destroy(s->forward);
    lk_kernel_destroy(s->backward);
    lk_kernel_destroy(s->gradients);
    lk_kernel_destroy(s->total);
}

const struct lk_op lk_op_layer_norm = {
    .name = "layer_norm",
    .options = table,
    .options_bytes = sizeof(struct lk_norm_options),
    .min_inputs = 1,
    .max_inputs = 1,
    .infer = infer,
    .prepare = prepare,
    .forward = forward,
    .backward = backward,
    .release = release,
    .absorb = lk_norm_absorb,
};
