/* A relu with a learned slope for negative x: y = x where x > 0, else slope x. The slope is one
 * for each channel, one for all, or one for each number of a sample. source: He, Zhang, Ren,
 * Sun, Delving Deep into Rectifiers (2015), whose first value, 1/4, slopes have */
#include "base/fail.h"
#include "ops/args.h"
#include "ops/parts.h"

#include <stdio.h>

enum { CHANNELS, ONE, ELEMENTS };
static const char *const slopes[] = {"channels", "one", "elements", NULL};

struct options {
    int slopes;
};

static const struct lk_option table[] = {
    {.name = "slopes",
     .kind = LK_OPTION_CHOICE,
     .offset = offsetof(struct options, slopes),
     .standard = "channels",
     .choices = slopes,
     .help = "how many are learned: one for each channel, one, or one for each number of a "
             "sample"},
    {0},
};

static enum lk_status infer(struct lk_op_shapes *shapes)
{
    const struct options *o = shapes->options;
    const struct lk_shape *x = &shapes->x[0];
    char text[96];
    lk_shape_print_hwc(x, text, sizeof text);
    if (shapes->x_dtype[0] != LK_F32)
        return lk_fail(LK_E_SHAPE, "prelu takes numbers, not labels");
    if (x->rank < 1 || x->rank > 3)
        return lk_fail(LK_E_SHAPE,
                       "prelu takes a vector [c], a sequence [t, c] or an image [h, w, c], not "
                       "%s",
                       text);
    const struct lk_shape learned[] = {
        [CHANNELS] = {1, {x->dim[x->rank == 2 ? 1 : 0]}}, [ONE] = {1, {1}}, [ELEMENTS] = *x};
    shapes->param[0] = (struct lk_param_spec){
        .name = "slope", .shape = learned[o->slopes], .init = LK_INIT_QUARTER};
    shapes->params = 1;
    shapes->y = *x;
    shapes->backward_reads_x = true;
    shapes->flops = (double)lk_shape_count(x);
    return LK_OK;
}

struct state {
    struct lk_kernel *forward, *backward, *total;
    struct lk_prelu area; /* channels: those that have a slope of their own */
    int64_t time_steps;   /* which count as tiles */
    int columns;          /* channels that a work-group of backward takes at once */
};

/* Divides the work; parts decide bits, so they follow from the shape, the shard and the
 * device's class alone. */
static void divide(const struct lk_op_setup *setup, struct state *s)
{
    enum { SIDE_BY_SIDE = 8 };
    const struct options *o = setup->options;
    const struct lk_shape *x = &setup->shapes.x[0];
    const bool is_gpu = setup->tiling.vector == 1;
    const int64_t channels = lk_shape_count(&setup->shapes.param[0].shape);
    s->time_steps = o->slopes == CHANNELS && x->rank == 2 ? x->dim[0] : 1;
    const int64_t pixels = lk_shape_count(x) / (s->time_steps * channels);
    const bool of_steps = x->rank == 2 && o->slopes != ELEMENTS;
    const struct lk_op_parts parts =
        lk_op_parts(setup, channels, s->time_steps * pixels, of_steps);
    s->columns = !is_gpu && pixels == 1 ? SIDE_BY_SIDE : 1;
    s->area = (struct lk_prelu){.channels = channels,
                                .pixels = pixels,
                                .parts = parts.count,
                                .run_pixels = parts.run_pixels,
                                .part_pixels = parts.pixels,
                                .shard_tiles = setup->tiling.shard_tiles * s->time_steps};
}

static enum lk_status prepare(struct lk_op_setup *setup)
{
    char text[32];
    void *memory;
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct state), &memory));
    struct state *s = setup->state = memory;
    divide(setup, s);
    snprintf(text, sizeof text, "-DCOLUMNS=%d", s->columns);
    LK_TRY(lk_op_kernel(setup, "ops/weighted/prelu", "prelu_forward", text, &s->forward));
    if (!setup->training)
        return LK_OK;
    LK_TRY(lk_op_kernel(setup, "ops/weighted/prelu", "prelu_backward", text, &s->backward));
    if (!setup->wants_dw || s->area.parts == 1)
        return LK_OK;
    setup->workspace_bytes = (size_t)(setup->tiling.shards * s->area.parts * s->area.channels) *
                             lk_dtype_bytes(setup->real);
    return lk_op_kernel(setup, "ops/weighted/prelu", "prelu_total", text, &s->total);
}

/* The numbers of this run, which may have fewer tiles in a shard than the setup had. */
static struct lk_prelu area_of(const struct lk_op_setup *setup)
{
    const struct state *s = setup->state;
    struct lk_prelu area = s->area;
    area.shard_tiles = setup->tiling.shard_tiles * s->time_steps;
    return area;
}

static enum lk_status forward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct state *s = setup->state;
    const struct lk_prelu area = area_of(setup);
    const struct lk_op_rows rows = lk_op_rows(setup);
    return LK_ENQUEUE(s->forward, rows.grid, LK_BUF(run->x[0]), LK_BUF(run->w[0]),
                      LK_BUF(run->y), LK_INT(rows.count), LK_INT(rows.each), LK_STRUCT(&area));
}

static enum lk_status backward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct state *s = setup->state;
    const struct lk_prelu area = area_of(setup);
    const bool in_parts = s->total && run->dw[0];
    const struct lk_grid grid = {
        {lk_divide_up(area.channels, s->columns), setup->tiling.shards, area.parts},
        lk_op_items(setup)};
    LK_TRY(LK_ENQUEUE(s->backward, grid, LK_BUF(run->x[0]), LK_BUF(run->w[0]), LK_BUF(run->dy),
                      LK_BUF(run->dx[0]), LK_BUF(in_parts ? run->workspace : run->dw[0]),
                      LK_INT(in_parts ? area.parts * area.channels : run->dw_stride),
                      LK_INT(in_parts ? area.channels : 0), LK_STRUCT(&area),
                      LK_LOCAL(setup->tiling.lanes * (int64_t)lk_dtype_bytes(setup->real))));
    if (!in_parts)
        return LK_OK;
    const int64_t each = 64 * (int64_t)lk_op_items(setup);
    const struct lk_grid sums = {{lk_divide_up(area.channels, each), setup->tiling.shards, 1},
                                 lk_op_items(setup)};
    return LK_ENQUEUE(s->total, sums, LK_BUF(run->workspace), LK_BUF(run->dw[0]),
                      LK_INT(run->dw_stride), LK_INT(each), LK_STRUCT(&area));
}

const struct lk_op lk_op_prelu = {
    .name = "prelu",
    .options = table,
    .options_bytes = sizeof(struct options),
    .min_inputs = 1,
    .max_inputs = 1,
    .infer = infer,
    .prepare = prepare,
    .forward = forward,
    .backward = backward,
};
