/* Convolution of images: y[k,i,j] = act(b[k] + sum over c,r,s of w[c,r,s,k] *
 * x[c, i*stride + r*dilation - pad, ...]), then a 2x2 max-pool where it took one over. The
 * kernels and the orders of their sums are in cl/products/. */
#include "ops/conv2d.h"
#include "ops/activation.h"
#include "ops/conv2d_parts.h"

#include "base/fail.h"
#include "base/log.h"
#include <stdio.h>
#include <string.h>

#define ROW(field, kind_, count_, least, most, standard_, help_)                               \
    {                                                                                          \
        .name = #field, .kind = kind_, .offset = offsetof(struct lk_conv2d_options, field),    \
        .count = count_, .min = least, .max = most, .standard = standard_, .help = help_       \
    }
const struct lk_option lk_conv2d_table[] = {
    ROW(filters, LK_OPTION_INT, 1, 1, 1 << 24, NULL, "channels of the output"),
    ROW(kernel, LK_OPTION_INT, 2, 1, 64, "3", "rows and columns of taps"),
    ROW(stride, LK_OPTION_INT, 2, 1, 64, "1", "step from output to output"),
    ROW(dilation, LK_OPTION_INT, 2, 1, 64, "1", "step from tap to tap"),
    ROW(groups, LK_OPTION_INT, 1, 1, 1 << 24, "1",
        "parts that channels and filters are cut in"),
    LK_PADDING_OPTION(struct lk_conv2d_options),
    ROW(bias, LK_OPTION_BOOL, 1, 0, 0, "true", "add a learned number to every filter's output"),
    ROW(pool, LK_OPTION_BOOL, 1, 0, 0, "false", "max-pool of 2x2 outputs, stride 2"),
    LK_ACTIVATION_OPTION(struct lk_conv2d_options),
    {0},
};

static enum lk_status infer(struct lk_op_shapes *shapes)
{
    const struct lk_conv2d_options *o = shapes->options;
    if (shapes->x_dtype[0] != LK_F32)
        return lk_fail(LK_E_SHAPE, "conv2d takes numbers, not labels");
    struct lk_conv2d_shape s;
    LK_TRY(lk_conv2d_shape(o, &shapes->x[0], &s));
    const int64_t taps = s.axis[0].taps * s.axis[1].taps;
    shapes->y =
        (struct lk_shape){3, {o->filters, s.axis[0].out >> s.pool, s.axis[1].out >> s.pool}};
    shapes->param[0] = (struct lk_param_spec){
        .name = "weight",
        .shape = {4, {s.channels, s.axis[0].taps, s.axis[1].taps, o->filters}},
        .init = LK_INIT_GLOROT_UNIFORM,
        .fan_in = s.channels * taps,
        .fan_out = s.filters * taps};
    shapes->param[1] = (struct lk_param_spec){
        .name = "bias", .shape = {1, {o->filters}}, .init = LK_INIT_ZEROS};
    const int64_t weights = lk_shape_count(&shapes->param[0].shape);
    if (lk_shape_count(&shapes->y) < 0 || weights < 0 || weights > INT32_MAX)
        return lk_fail(LK_E_SHAPE, "conv2d: %lld filters of %lld channels are too many",
                       (long long)o->filters, (long long)s.channels);
    shapes->params = o->bias ? 2 : 1;
    shapes->backward_reads_x = true;
    shapes->backward_reads_y = shapes->is_gate = s.relu && !s.pool;
    shapes->scales = true;
    shapes->flops =
        2.0 * (double)weights * (double)s.axis[0].all_out * (double)s.axis[1].all_out;
    return LK_OK;
}

/* A pass and what does it. */
struct use {
    struct lk_conv2d_way way; /* no algorithm: the pass is not wanted */
    void *state;
};

struct state {
    struct lk_conv2d_shape shape;
    struct use uses[LK_CONV2D_PASSES];
    struct lk_kernel *expand;
    bool expands;                 /* dz is made in the workspace */
    bool gives_db;                /* the weight gradient's algorithm does */
    int64_t dz_first;             /* where, in stored numbers */
    int64_t part_pixels;          /* of a shard */
    struct lk_conv2d_parts parts; /* of the bias gradient */
};

/* What is to be made of dy. */
static enum lk_conv2d_gradient gradient_of(const struct lk_op_setup *setup,
                                           const struct lk_conv2d_shape *shape)
{
    if (shape->pool)
        return LK_CONV2D_POOLED;
    return shape->relu && !setup->dy_is_gated ? LK_CONV2D_MASKED : LK_CONV2D_PLAIN;
}

static enum lk_status prepare_use(struct lk_op_setup *setup, struct lk_conv2d_job *job,
                                  struct use *use)
{
    job->blocking = use->way.blocking;
    job->is_gated =
        job->pass == LK_CONV2D_DATA && setup->asks_gate[0] && use->way.algorithm->gates_dx;
    if (job->pass == LK_CONV2D_DATA)
        setup->gates_dx[0] = job->is_gated;
    return use->way.algorithm->prepare(setup, job, &use->state);
}

/* A library that gives wrong products is no choice any more: the next best stands in. */
static enum lk_status prepare_way(struct lk_op_setup *setup, const struct state *state,
                                  struct lk_conv2d_job *job, struct use *use)
{
    const struct lk_conv2d_algorithm *first = use->way.algorithm;
    const enum lk_status status = prepare_use(setup, job, use);
    if (status != LK_E_UNSUPPORTED || use->state)
        return status;
    LK_TRY(lk_conv2d_choose(setup, &state->shape, job->pass, &use->way));
    if (use->way.algorithm == first)
        return status;
    lk_log(LK_LOG_WARNING, "%s; %s: %s instead of %s", lk_error_text(), setup->node,
           use->way.algorithm->name, first->name);
    lk_error_clear();
    return prepare_use(setup, job, use);
}

/* `reals`: of the workspace, taken so far. */
static enum lk_status prepare_pass(struct lk_op_setup *setup, struct state *state,
                                   enum lk_conv2d_pass pass, int64_t *reals)
{
    struct use *use = &state->uses[pass];
    struct lk_conv2d_job job = {.shape = &state->shape,
                                .pass = pass,
                                .gradient = state->expands ? LK_CONV2D_PLAIN
                                                           : gradient_of(setup, &state->shape),
                                .first = *reals};
    if (!use->way.algorithm)
        LK_TRY(lk_conv2d_choose(setup, &state->shape, pass, &use->way));
    LK_TRY(prepare_way(setup, state, &job, use));
    *reals += (job.count + 15) / 16 * 16;
    state->gives_db |= job.gives_db && !state->expands;
    return LK_OK;
}

/* Parts belong to the numerics: they follow from the shape, the shard and the class alone. On a
 * GPU a work-group is small, and has memory to wait for. */
static void choose_parts(const struct lk_op_setup *setup, struct state *state)
{
    enum { MOST_PARTS = 64, LEAST_PIXELS = 64 };
    const struct lk_conv2d_shape *s = &state->shape;
    const int64_t pixels =
        (s->axis[0].out >> s->pool) * (s->axis[1].out >> s->pool) * setup->tiling.shard_tiles;
    state->part_pixels = pixels;
    if (setup->tiling.vector == 1)
        state->part_pixels = lk_divide_up(pixels, MOST_PARTS);
    if (state->part_pixels < LEAST_PIXELS)
        state->part_pixels = lk_least(LEAST_PIXELS, pixels);
    state->parts.parts = lk_divide_up(pixels, state->part_pixels);
    state->parts.count = s->groups * s->filters;
}

static enum lk_status prepare_expand(struct lk_op_setup *setup, struct state *state,
                                     int64_t *reals)
{
    const struct lk_conv2d_options *o = setup->options;
    const struct lk_conv2d_shape *s = &state->shape;
    const int64_t filters = s->groups * s->filters;
    const bool wants_sums = setup->wants_dw && o->bias && !state->gives_db;
    const int64_t in_real =
        (int64_t)(lk_dtype_bytes(setup->real) / lk_dtype_bytes(lk_op_stored(setup)));
    choose_parts(setup, state);
    if (state->expands || wants_sums)
        LK_TRY(lk_op_kernel(setup, "products/gradient", "conv2d_expand", NULL, &state->expand));
    state->dz_first = *reals * in_real;
    if (state->expands)
        *reals += lk_divide_up(filters * s->axis[0].out * s->axis[1].out * setup->tiling.tiles *
                                   setup->tiling.lanes,
                               in_real);
    state->parts.first = *reals;
    int64_t of_parts = 0;
    if (wants_sums)
        LK_TRY(lk_conv2d_parts_prepare(setup, &state->parts, &of_parts));
    *reals += of_parts;
    return LK_OK;
}

static enum lk_status prepare_backward(struct lk_op_setup *setup, struct state *state)
{
    const struct lk_conv2d_shape *s = &state->shape;
    int64_t reals = 0;
    const bool wants[] = {
        [LK_CONV2D_DATA] = setup->wants_dx[0], [LK_CONV2D_WEIGHTS] = setup->wants_dw};
    for (int i = LK_CONV2D_DATA; i <= LK_CONV2D_WEIGHTS; i++)
        if (wants[i]) {
            struct lk_conv2d_way *way = &state->uses[i].way;
            LK_TRY(lk_conv2d_choose(setup, s, (enum lk_conv2d_pass)i, way));
            state->expands |=
                gradient_of(setup, s) != LK_CONV2D_PLAIN && !way->algorithm->reads_dy[i];
        }
    if (setup->wants_dx[0])
        LK_TRY(prepare_pass(setup, state, LK_CONV2D_DATA, &reals));
    if (setup->wants_dw)
        LK_TRY(prepare_pass(setup, state, LK_CONV2D_WEIGHTS, &reals));
    LK_TRY(prepare_expand(setup, state, &reals));
    const size_t bytes = (size_t)reals * lk_dtype_bytes(setup->real);
    if (bytes > setup->workspace_bytes)
        setup->workspace_bytes = bytes;
    return LK_OK;
}

static enum lk_status prepare(struct lk_op_setup *setup)
{
    void *memory;
    int64_t reals = 0;
    LK_TRY(lk_arena_take(setup->arena, sizeof(struct state), &memory));
    struct state *state = setup->state = memory;
    LK_TRY(lk_conv2d_shape(setup->options, &setup->shapes.x[0], &state->shape));
    LK_TRY(prepare_pass(setup, state, LK_CONV2D_FORWARD, &reals));
    setup->workspace_bytes = (size_t)reals * lk_dtype_bytes(setup->real);
    setup->saved_bytes = 0;
    if (!setup->training)
        return LK_OK;
    if (state->shape.pool)
        setup->saved_bytes = lk_tiled_bytes(&setup->tiling, &setup->shapes.y, LK_U8);
    return prepare_backward(setup, state);
}

static enum lk_status enqueue(const struct lk_op_setup *setup, enum lk_conv2d_pass pass,
                              const struct lk_conv2d_operands *operands)
{
    const struct state *state = setup->state;
    const struct use *use = &state->uses[pass];
    return use->way.algorithm->enqueue(setup, use->state, operands);
}

static enum lk_status forward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct lk_conv2d_options *o = setup->options;
    const struct lk_conv2d_operands operands = {.x = run->x[0],
                                                .w = run->w[0],
                                                .bias = o->bias ? run->w[1] : NULL,
                                                .y = run->y,
                                                .at = setup->training ? run->saved : NULL,
                                                .workspace = run->workspace};
    return enqueue(setup, LK_CONV2D_FORWARD, &operands);
}

/* dz into the workspace, the bias gradient, or both. */
static enum lk_status enqueue_expand(const struct lk_op_setup *setup,
                                     const struct lk_op_run *run, bool wants_dz,
                                     struct lk_buffer *db)
{
    const struct state *state = setup->state;
    const struct lk_conv2d_shape *s = &state->shape;
    const struct lk_tiling *t = &setup->tiling;
    const struct lk_conv2d_parts *p = &state->parts;
    const bool in_parts = db && p->parts > 1;
    const int64_t filters = s->groups * s->filters;
    const struct lk_grid grid = {{filters, t->shards, p->parts}, lk_op_items(setup)};
    const int64_t row = t->lanes * (int64_t)lk_dtype_bytes(setup->real);
    LK_TRY(LK_ENQUEUE(state->expand, grid, LK_BUF(run->dy),
                      LK_BUF(gradient_of(setup, s) == LK_CONV2D_MASKED ? run->y : NULL),
                      LK_BUF(s->pool ? run->saved : NULL),
                      LK_BUF(wants_dz ? run->workspace : NULL), LK_INT(state->dz_first),
                      LK_BUF(in_parts ? run->workspace : db), LK_INT(in_parts ? p->first : 0),
                      LK_INT(in_parts ? p->count * p->parts : run->dw_stride),
                      LK_INT(in_parts ? p->count : 0), LK_INT(t->shard_tiles),
                      LK_INT(state->part_pixels), LK_INT(filters), LK_INT(s->axis[0].out),
                      LK_INT(s->axis[1].out), LK_LOCAL(row)));
    return in_parts ? lk_conv2d_parts_enqueue(setup, p, run->workspace, db, run->dw_stride)
                    : LK_OK;
}

static enum lk_status backward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct lk_conv2d_options *o = setup->options;
    const struct state *state = setup->state;
    const bool wants_dz = state->expands && (run->dx[0] || run->dw[0]);
    struct lk_buffer *db = o->bias ? run->dw[1] : NULL;
    struct lk_buffer *expanded_db = state->gives_db ? NULL : db;
    if (wants_dz || expanded_db)
        LK_TRY(enqueue_expand(setup, run, wants_dz, expanded_db));
    const struct lk_conv2d_operands operands = {.x = run->x[0],
                                                .w = run->w[0],
                                                .dz = state->expands ? run->workspace : run->dy,
                                                .dz_first =
                                                    state->expands ? state->dz_first : 0,
                                                .y = run->y,
                                                .at = run->saved,
                                                .dx = run->dx[0],
                                                .dw = run->dw[0],
                                                .db = state->gives_db ? db : NULL,
                                                .dw_stride = run->dw_stride,
                                                .workspace = run->workspace};
    if (run->dx[0])
        LK_TRY(enqueue(setup, LK_CONV2D_DATA, &operands));
    return run->dw[0] ? enqueue(setup, LK_CONV2D_WEIGHTS, &operands) : LK_OK;
}

static void release(struct lk_op_setup *setup)
{
    struct state *state = setup->state;
    if (!state)
        return;
    for (int i = 0; i < LK_CONV2D_PASSES; i++)
        if (state->uses[i].state)
            state->uses[i].way.algorithm->release(state->uses[i].state);
    lk_kernel_destroy(state->expand);
    lk_kernel_destroy(state->parts.total);
}

/* Whether `options` has the word "name=value". */
static bool has(const char *options, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = options; (at = strstr(at, word)) != NULL; at += n)
        if ((at == options || at[-1] == ' ') && (at[n] == '\0' || at[n] == ' '))
            return true;
    return false;
}

static bool absorb(void *options, const char *next, const char *next_options)
{
    struct lk_conv2d_options *o = options;
    if (!o->pool && lk_activation_absorb(&o->activation, next))
        return true;
    if (strcmp(next, "max_pool") == 0 && !o->pool && has(next_options, "size=2,2") &&
        (has(next_options, "stride=2,2") || has(next_options, "stride=0,0")) && /* 0: size */
        has(next_options, "padding=\"valid\"")) {
        o->pool = true;
        return true;
    }
    return false;
}

const struct lk_op lk_op_conv2d = {.name = "conv2d",
                                   .options = lk_conv2d_table,
                                   .options_bytes = sizeof(struct lk_conv2d_options),
                                   .min_inputs = 1,
                                   .max_inputs = 1,
                                   .infer = infer,
                                   .prepare = prepare,
                                   .forward = forward,
                                   .backward = backward,
                                   .release = release,
                                   .choice = lk_conv2d_choice,
                                   .device_choice = lk_conv2d_device_choice,
                                   .absorb = absorb};
