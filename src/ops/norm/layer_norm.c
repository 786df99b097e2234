/* Layer normalization: mean and variance are taken over the channels, of each pixel or time
 * step by itself, or over all numbers of a sample. source: Ba, Kiros, Hinton, Layer
 * Normalization (2016) */
#include "base/fail.h"
#include "ops/args.h"
#include "ops/norm/norm.h"
#include "ops/parts.h"

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

enum { FUSED_PARTS = 16, FUSED_STEPS = 16 }; /* of a shard; time steps of a part */

struct state {
    struct lk_kernel *forward, *backward, *gradients, *total;
    struct lk_layer_norm area;
    int64_t time_steps; /* which count as tiles */
    int block, columns; /* pixels that are normalized, channels that are summed at once */
    bool is_fused;      /* backward sums the gradients of gamma and beta, too */
};

/* Where every core gets parts enough, and their sums stay in its cache, one kernel reads x and
 * dy once for both gradients. Not the number of time steps decides, of which some are padding.
 */
static bool is_fused(const struct lk_op_setup *setup, int64_t channels, int64_t summed,
                     bool of_steps)
{
    enum { MOST_CHANNELS = 2048, LEAST_PIXELS = 8 };
    return setup->wants_dw && setup->shapes.params > 0 && setup->tiling.vector > 1 &&
           channels <= MOST_CHANNELS &&
           (of_steps || summed >= FUSED_PARTS * (int64_t)LEAST_PIXELS);
}

static struct lk_op_parts choose_parts(const struct lk_op_setup *setup, bool is_fused,
                                       int64_t channels, int64_t tile_pixels, bool of_steps)
{
    const int64_t summed = setup->tiling.shard_tiles * tile_pixels;
    struct lk_op_parts parts = lk_op_parts(setup, channels, tile_pixels, of_steps);
    if (!is_fused)
        return parts;
    parts.pixels = of_steps ? FUSED_STEPS : lk_divide_up(summed, FUSED_PARTS);
    parts.count = lk_parts_of_runs(summed, parts.run_pixels, parts.pixels);
    return parts;
}

/* Divides the work; parts decide bits, so they follow from the shape, the shard and the
 * device's class alone. */
static void divide(const struct lk_op_setup *setup, struct state *s)
{
    enum { SIDE_BY_SIDE = 8, MOST_WIDE = 32, LEAST_WIDE = 4, CACHED_ROWS = 2048 };
    const struct lk_norm_options *o = setup->options;
    const struct lk_shape *x = &setup->shapes.x[0];
    const bool is_gpu = setup->tiling.vector == 1;
    int64_t channels = lk_shape_count(x), pixels = 1;
    const bool of_steps = o->axis == CHANNELS && x->rank == 2;
    s->time_steps = of_steps ? x->dim[0] : 1;
    if (o->axis == CHANNELS && x->rank == 3)
        pixels = x->dim[1] * x->dim[2];
    channels /= s->time_steps * pixels;
    int block = MOST_WIDE;
    while (block > LEAST_WIDE && block * channels > CACHED_ROWS)
        block /= 2;
    s->columns = !is_gpu && pixels == 1 ? SIDE_BY_SIDE : 1;
    const int64_t tile_pixels = s->time_steps * pixels, tiles = setup->tiling.shard_tiles;
    s->is_fused = is_fused(setup, channels, tiles * tile_pixels, of_steps);
    s->block = !is_gpu && pixels > 1 ? block : 1;
    const struct lk_op_parts parts =
        choose_parts(setup, s->is_fused, channels, tile_pixels, of_steps);
    s->area = (struct lk_layer_norm){.channels = channels,
                                     .pixels = pixels,
                                     .parts = parts.count,
                                     .run_pixels = parts.run_pixels,
                                     .part_pixels = parts.pixels,
                                     .shard_tiles = tiles * s->time_steps};
}

static enum lk_status announce_gradients(const struct lk_op_setup *setup, struct state *s)
{
    static const char source[] = "ops/norm/layer_norm_sums";
    char text[64];
    snprintf(text, sizeof text, "-DRELU=%d -DCOLUMNS=%d", lk_norm_masks(setup), s->columns);
    if (s->is_fused)
        return lk_op_kernel(setup, source, "layer_norm_total_lanes", text, &s->total);
    if (s->area.parts > 1)
        LK_TRY(lk_op_kernel(setup, source, "layer_norm_total", text, &s->total));
    return lk_op_kernel(setup, source, "layer_norm_gradients", text, &s->gradients);
}

static enum lk_status announce(const struct lk_op_setup *setup, struct state *s)
{
    const struct lk_norm_options *o = setup->options;
    static const char source[] = "ops/norm/layer_norm";
    static const char format[] = "-DRELU=%d -DBLOCK=%d -DFUSED=%d -DSTREAM=%d";
    const int streams = lk_op_streams(setup, &setup->shapes.y);
    char text[96];
    snprintf(text, sizeof text, format, o->activation == LK_RELU, s->block, s->is_fused,
             streams);
    LK_TRY(lk_op_kernel(setup, source, "layer_norm_forward", text, &s->forward));
    if (!setup->training)
        return LK_OK;
    snprintf(text, sizeof text, format, lk_norm_masks(setup), s->block, s->is_fused, streams);
    if (setup->wants_dx[0] || s->is_fused)
        LK_TRY(lk_op_kernel(setup, source, "layer_norm_backward", text, &s->backward));
    return setup->wants_dw && setup->shapes.params > 0 ? announce_gradients(setup, s) : LK_OK;
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
    if (setup->training && (s->is_fused || s->area.parts > 1))
        setup->workspace_bytes = (size_t)(t->shards * s->area.parts * s->area.channels * 2) *
                                 (size_t)(s->is_fused ? t->lanes : 1) * real;
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

/* dx, and with it the sums for gamma and beta where they are fused. */
static enum lk_status enqueue_backward(const struct lk_op_setup *setup,
                                       const struct lk_op_run *run, struct lk_buffer *sums)
{
    const struct lk_norm_params w = lk_norm_params(setup, run);
    const struct lk_layer_norm area = area_of(setup);
    const struct state *s = setup->state;
    const struct lk_grid parts = {{area.parts, setup->tiling.shards, 1}, lk_op_items(setup)};
    return LK_ENQUEUE(s->backward, s->is_fused ? parts : grid_of(setup), LK_BUF(run->x[0]),
                      LK_BUF(lk_norm_masks(setup) ? run->y : NULL), LK_BUF(run->dy),
                      LK_BUF(run->saved), LK_BUF(w.gamma), LK_BUF(run->dx[0]), LK_BUF(sums),
                      LK_STRUCT(&area));
}

/* Sums for gamma and beta in a kernel of their own. */
static enum lk_status enqueue_gradients(const struct lk_op_setup *setup,
                                        const struct lk_op_run *run)
{
    const struct lk_norm_params w = lk_norm_params(setup, run);
    const struct lk_layer_norm area = area_of(setup);
    const struct state *s = setup->state;
    const struct lk_grid grid = {
        {lk_divide_up(area.channels, s->columns), setup->tiling.shards, area.parts},
        lk_op_items(setup)};
    return LK_ENQUEUE(
        s->gradients, grid, LK_BUF(run->x[0]), LK_BUF(lk_norm_masks(setup) ? run->y : NULL),
        LK_BUF(run->dy), LK_BUF(run->saved), LK_BUF(s->total ? run->workspace : NULL),
        LK_BUF(w.dgamma), LK_BUF(w.dbeta), LK_INT(run->dw_stride), LK_STRUCT(&area),
        LK_LOCAL(setup->tiling.lanes * (int64_t)lk_dtype_bytes(setup->real)));
}

/* Adds the sums of parts. */
static enum lk_status enqueue_total(const struct lk_op_setup *setup,
                                    const struct lk_op_run *run)
{
    const struct lk_norm_params w = lk_norm_params(setup, run);
    const struct lk_layer_norm area = area_of(setup);
    const struct state *s = setup->state;
    const int64_t each = s->is_fused ? 8 : 64 * (int64_t)lk_op_items(setup);
    const struct lk_grid grid = {{lk_divide_up(area.channels, each), setup->tiling.shards, 1},
                                 lk_op_items(setup)};
    if (!s->is_fused)
        return LK_ENQUEUE(s->total, grid, LK_BUF(run->workspace), LK_BUF(w.dgamma),
                          LK_BUF(w.dbeta), LK_INT(run->dw_stride), LK_INT(each),
                          LK_STRUCT(&area));
    return LK_ENQUEUE(s->total, grid, LK_BUF(run->workspace), LK_BUF(w.dgamma), LK_BUF(w.dbeta),
                      LK_INT(run->dw_stride), LK_INT(each), LK_STRUCT(&area),
                      LK_LOCAL(setup->tiling.lanes * (int64_t)lk_dtype_bytes(setup->real)));
}

static enum lk_status backward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct lk_norm_params w = lk_norm_params(setup, run);
    const struct state *s = setup->state;
    const bool wants_dw = (s->is_fused || s->gradients) && (w.dgamma || w.dbeta);
    const bool fuses = s->is_fused && wants_dw;
    if (run->dx[0] || fuses)
        LK_TRY(enqueue_backward(setup, run, fuses ? run->workspace : NULL));
    if (wants_dw && !s->is_fused)
        LK_TRY(enqueue_gradients(setup, run));
    return wants_dw && s->total ? enqueue_total(setup, run) : LK_OK;
}

const struct lk_op lk_op_layer_norm = {
    .name = "layer_norm",
    .options = table,
    .options_bytes = sizeof(struct lk_norm_options),
    .min_inputs = 1,
    .max_inputs = 1,
    .time = LK_TIME_OWN,
    .infer = infer,
    .prepare = prepare,
    .forward = forward,
    .backward = backward,
    .absorb = lk_norm_absorb,
};
