/* Group normalization: mean and variance of a sample are taken over each group of its channels,
 * all pixels of them. One group is layer normalization over the image with a gamma a channel,
 * as many groups as channels is instance normalization. source: Wu and He, Group Normalization
 * (2018) */
#include "base/fail.h"
#include "ops/args.h"
#include "ops/norm/norm.h"
#include "ops/parts.h"

#include <stdio.h>

static const struct lk_option table[] = {
    {.name = "groups",
     .kind = LK_OPTION_INT,
     .offset = offsetof(struct lk_norm_options, groups),
     .count = 1,
     .min = 1,
     .max = 1 << 24,
     .standard = "32",
     .help = "parts of the channels, each normalized by itself"},
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
        return lk_fail(LK_E_SHAPE, "group_norm takes numbers, not labels");
    if (x->rank != 1 && x->rank != 3)
        return lk_fail(LK_E_SHAPE,
                       "group_norm takes a vector [c] or an image [h, w, c], not %s", text);
    if (x->dim[0] % o->groups != 0)
        return lk_fail(LK_E_SHAPE,
                       "group_norm: %lld channels of %s do not divide into %lld groups",
                       (long long)x->dim[0], text, (long long)o->groups);
    lk_norm_infer(shapes, &(struct lk_shape){1, {x->dim[0]}});
    return LK_OK;
}

struct state {
    struct lk_kernel *sums, *forward, *gradients, *backward, *total;
    struct lk_group_norm area;
    bool is_alone; /* one work-group makes the sums of a group and what follows of them */
};

/* Divides the work; parts decide bits, so they follow from the shape and the device's class
 * alone. What a core's cache holds is summed and normalized by one work-group. */
static void divide(const struct lk_op_setup *setup, struct state *s)
{
    enum { MOST_ALONE = 8192 };
    const struct lk_norm_options *o = setup->options;
    const struct lk_shape *x = &setup->shapes.x[0];
    const int64_t channels = x->dim[0], pixels = lk_shape_count(x) / channels;
    const bool is_gpu = setup->tiling.vector == 1;
    s->is_alone = !is_gpu && channels / o->groups * pixels <= MOST_ALONE;
    const int64_t part_pixels =
        s->is_alone ? pixels : lk_op_part_pixels(setup, channels, pixels);
    s->area = (struct lk_group_norm){.channels = channels,
                                     .set_channels = channels / o->groups,
                                     .pixels = pixels,
                                     .parts = lk_divide_up(pixels, part_pixels),
                                     .part_pixels = part_pixels};
}

static enum lk_status announce(const struct lk_op_setup *setup, struct state *s)
{
    const struct lk_norm_options *o = setup->options;
    static const char source[] = "ops/norm/group_norm";
    static const char format[] = "-DRELU=%d -DALONE=%d -DSTREAM=%d";
    const int streams = lk_op_streams(setup, &setup->shapes.y);
    char text[64];
    snprintf(text, sizeof text, format, o->activation == LK_RELU, s->is_alone, streams);
    LK_TRY(lk_op_kernel(setup, source, "group_norm_forward", text, &s->forward));
    if (!s->is_alone)
        LK_TRY(lk_op_kernel(setup, source, "group_norm_sums", text, &s->sums));
    if (!setup->training)
        return LK_OK;
    snprintf(text, sizeof text, format, lk_norm_masks(setup), s->is_alone, streams);
    LK_TRY(lk_op_kernel(setup, source, "group_norm_backward", text, &s->backward));
    if (!s->is_alone)
        LK_TRY(lk_op_kernel(setup, source, "group_norm_gradients", text, &s->gradients));
    if (setup->wants_dw && setup->shapes.params > 0)
        LK_TRY(lk_op_kernel(setup, source, "group_norm_total", text, &s->total));
    return LK_OK;
}

static enum lk_status prepare(struct lk_op_setup *setup)
{
    const size_t row =
        (size_t)(setup->tiling.tiles * setup->tiling.lanes) * lk_dtype_bytes(setup->real) * 2;
    void *memory;
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct state), &memory));
    struct state *s = setup->state = memory;
    divide(setup, s);
    const int64_t sets = s->area.channels / s->area.set_channels;
    setup->saved_bytes = setup->training ? row * (size_t)sets : 0;
    if (!s->is_alone || (setup->training && setup->wants_dw && setup->shapes.params > 0))
        setup->workspace_bytes = row * (size_t)(s->area.channels * s->area.parts);
    return announce(setup, s);
}

/* A work-group each group of channels, or each part of a channel. */
static struct lk_grid grid_of(const struct lk_op_setup *setup)
{
    const struct state *s = setup->state;
    const struct lk_group_norm *a = &s->area;
    return (struct lk_grid){{s->is_alone ? a->channels / a->set_channels : a->channels,
                             setup->tiling.tiles, s->is_alone ? 1 : a->parts},
                            lk_op_items(setup)};
}

static enum lk_status forward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct lk_norm_options *o = setup->options;
    const struct lk_norm_params w = lk_norm_params(setup, run);
    const struct state *s = setup->state;
    if (s->sums)
        LK_TRY(LK_ENQUEUE(s->sums, grid_of(setup), LK_BUF(run->x[0]), LK_BUF(run->workspace),
                          LK_STRUCT(&s->area)));
    return LK_ENQUEUE(s->forward, grid_of(setup), LK_BUF(run->x[0]), LK_BUF(run->workspace),
                      LK_BUF(w.gamma), LK_BUF(w.beta), LK_BUF(run->y), LK_BUF(run->saved),
                      LK_REAL(o->epsilon), LK_STRUCT(&s->area));
}

static enum lk_status backward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct lk_norm_params w = lk_norm_params(setup, run);
    const struct lk_tiling *t = &setup->tiling;
    const struct state *s = setup->state;
    const struct lk_buffer *y = lk_norm_masks(setup) ? run->y : NULL;
    const bool wants_dw = s->total && (w.dgamma || w.dbeta);
    struct lk_buffer *sums = wants_dw || s->gradients ? run->workspace : NULL;
    if (s->gradients)
        LK_TRY(LK_ENQUEUE(s->gradients, grid_of(setup), LK_BUF(run->x[0]), LK_BUF(y),
                          LK_BUF(run->dy), LK_BUF(run->saved), LK_BUF(sums),
                          LK_STRUCT(&s->area)));
    if (run->dx[0] || (wants_dw && !s->gradients))
        LK_TRY(LK_ENQUEUE(s->backward, grid_of(setup), LK_BUF(run->x[0]), LK_BUF(y),
                          LK_BUF(run->dy), LK_BUF(run->saved), LK_BUF(sums), LK_BUF(w.gamma),
                          LK_BUF(run->dx[0]), LK_STRUCT(&s->area)));
    if (!wants_dw)
        return LK_OK;
    const struct lk_grid grid = {{s->area.channels, t->shards, 1}, lk_op_items(setup)};
    return LK_ENQUEUE(s->total, grid, LK_BUF(sums), LK_BUF(w.dgamma), LK_BUF(w.dbeta),
                      LK_INT(run->dw_stride), LK_INT(t->shard_tiles), LK_STRUCT(&s->area),
                      LK_LOCAL(t->lanes * (int64_t)lk_dtype_bytes(setup->real)));
}

const struct lk_op lk_op_group_norm = {
    .name = "group_norm",
    .options = table,
    .options_bytes = sizeof(struct lk_norm_options),
    .min_inputs = 1,
    .max_inputs = 1,
    .infer = infer,
    .prepare = prepare,
    .forward = forward,
    .backward = backward,
    .absorb = lk_norm_absorb,
};
