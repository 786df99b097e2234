/* Convolution of images: y[k,i,j] = act(b[k] + sum over c,r,s of w[c,r,s,k] *
 * x[c, i*stride + r*dilation - pad, ...]), then a 2x2 max-pool where it took one over. The
 * kernels and the orders of their sums are in cl/conv2d*.cl. */
#include "ops/conv2d.h"

#include "base/fail.h"
#include <stdio.h>
#include <string.h>

static const char *const activations[] = {"none", "relu", NULL};

#define ROW(field, kind_, count_, least, most, standard_, help_)                               \
    {                                                                                          \
        .name = #field, .kind = kind_, .offset = offsetof(struct lk_conv2d_options, field),    \
        .count = count_, .min = least, .max = most, .standard = standard_, .help = help_       \
    }
static const struct lk_option table[] = {
    ROW(filters, LK_OPTION_INT, 1, 1, 1 << 24, NULL, "channels of the output"),
    ROW(kernel, LK_OPTION_INT, 2, 1, 64, "3", "rows and columns of taps"),
    ROW(stride, LK_OPTION_INT, 2, 1, 64, "1", "step from output to output"),
    ROW(dilation, LK_OPTION_INT, 2, 1, 64, "1", "step from tap to tap"),
    ROW(groups, LK_OPTION_INT, 1, 1, 1 << 24, "1",
        "parts that channels and filters are cut in"),
    LK_PADDING_OPTION(struct lk_conv2d_options),
    ROW(bias, LK_OPTION_BOOL, 1, 0, 0, "true", "add a learned number to every filter's output"),
    ROW(pool, LK_OPTION_BOOL, 1, 0, 0, "false", "max-pool of 2x2 outputs, stride 2"),
    {.name = "activation",
     .kind = LK_OPTION_CHOICE,
     .offset = offsetof(struct lk_conv2d_options, activation),
     .standard = "none",
     .choices = activations,
     .help = "function applied to the outputs"},
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
    shapes->backward_reads_y = s.relu && !s.pool;
    shapes->flops =
        2.0 * (double)weights * (double)s.axis[0].all_out * (double)s.axis[1].all_out;
    return LK_OK;
}

struct state {
    struct lk_conv2d_shape shape;
    struct lk_conv2d_gather forward, *phases; /* of the data gradient, step by step */
    int phase_count;
    struct lk_conv2d_weights weights;
    struct lk_kernel *expand;
    bool expands;     /* dz is made in the workspace */
    int64_t dz_first; /* where, in reals */
};

static int64_t greatest_divisor(int64_t a, int64_t b)
{
    return b ? greatest_divisor(b, a % b) : a;
}

/* Every `step`-th input from number `phase` on takes part in products with the same taps.
 * `first`: the last of them; `every`: the distance between them. */
static struct lk_conv2d_axis phase_axis(const struct lk_conv2d_axis *axis, int64_t phase,
                                        int64_t *first, int64_t *every)
{
    struct lk_conv2d_axis made = {.in = axis->out, .step = 1, .gap = 1};
    const int64_t common = greatest_divisor(axis->step, axis->gap);
    made.out = (axis->in - phase + axis->step - 1) / axis->step;
    *every = axis->step / common;
    *first = 0;
    for (int64_t r = 0; r < axis->taps; r++)
        if ((phase + axis->pad - r * axis->gap) % axis->step == 0) {
            made.taps++;
            *first = r;
        }
    if (made.taps > 0) {
        made.gap = axis->gap / common;
        made.pad = (*first * axis->gap - phase - axis->pad) / axis->step;
    }
    return made;
}

static void describe_phase(const struct lk_conv2d_shape *s, int64_t y, int64_t x,
                           struct lk_conv2d_gather *made)
{
    const int64_t all = s->filters * s->groups, column = all, row = s->axis[1].taps * all;
    int64_t first[2], every[2];
    *made =
        (struct lk_conv2d_gather){.axis = {phase_axis(&s->axis[0], y, &first[0], &every[0]),
                                           phase_axis(&s->axis[1], x, &first[1], &every[1])},
                                  .groups = s->groups,
                                  .ins = s->filters,
                                  .outs = s->channels,
                                  .out_step = {s->axis[0].step, s->axis[1].step},
                                  .out_first = {y, x},
                                  .plane_width = s->axis[1].in,
                                  .plane = s->axis[0].in * s->axis[1].in};
    made->from = (struct lk_conv2d_taps){.group_step = s->filters,
                                         .out_step = s->axis[0].taps * row,
                                         .in_step = 1,
                                         .first = first[0] * row + first[1] * column,
                                         .row_step = -every[0] * row,
                                         .column_step = -every[1] * column};
}

static void describe_forward(const struct lk_conv2d_shape *s, struct lk_conv2d_gather *made)
{
    const int64_t all = s->filters * s->groups, row = s->axis[1].taps * all;
    const int64_t height = s->axis[0].out >> s->pool, width = s->axis[1].out >> s->pool;
    *made = (struct lk_conv2d_gather){.axis = {s->axis[0], s->axis[1]},
                                      .groups = s->groups,
                                      .ins = s->channels,
                                      .outs = s->filters,
                                      .out_step = {1, 1},
                                      .plane_width = width,
                                      .plane = height * width,
                                      .relu = s->relu,
                                      .pool = s->pool};
    made->from = (struct lk_conv2d_taps){.group_step = s->filters,
                                         .out_step = 1,
                                         .in_step = s->axis[0].taps * row,
                                         .row_step = row,
                                         .column_step = all};
}

/* The data gradient: a gather for each phase of the strides. */
static enum lk_status prepare_phases(struct lk_op_setup *setup, struct state *state,
                                     int64_t *first)
{
    const struct lk_conv2d_axis *axis = state->shape.axis;
    void *phases;
    LK_TRY(lk_arena_take(
        setup->arena, (size_t)(axis[0].step * axis[1].step) * sizeof *state->phases, &phases));
    state->phases = phases;
    for (int64_t y = 0; y < axis[0].step && y < axis[0].in; y++)
        for (int64_t x = 0; x < axis[1].step && x < axis[1].in; x++) {
            struct lk_conv2d_gather *phase = &state->phases[state->phase_count++];
            describe_phase(&state->shape, y, x, phase);
            phase->packed_first = *first;
            LK_TRY(lk_conv2d_gather_prepare(setup, phase));
            *first += phase->packed_count;
        }
    return LK_OK;
}

static enum lk_conv2d_gradient gradient_of(const struct lk_conv2d_shape *shape)
{
    return shape->pool ? LK_CONV2D_POOLED : shape->relu ? LK_CONV2D_MASKED : LK_CONV2D_PLAIN;
}

static enum lk_status prepare_backward(struct lk_op_setup *setup, struct state *state)
{
    const struct lk_conv2d_options *o = setup->options;
    const struct lk_conv2d_shape *s = &state->shape;
    int64_t first = 0;
    state->expands = setup->wants_dx[0] && (s->relu || s->pool);
    if (setup->wants_dx[0])
        LK_TRY(prepare_phases(setup, state, &first));
    if (setup->wants_dw) {
        state->weights.gradient = state->expands ? LK_CONV2D_PLAIN : gradient_of(s);
        state->weights.parts_first = first;
        LK_TRY(lk_conv2d_weights_prepare(setup, s, &state->weights));
        if (state->weights.parts > 1)
            first += state->weights.count * state->weights.parts * setup->tiling.shards;
    }
    if (state->expands || (setup->wants_dw && o->bias))
        LK_TRY(lk_op_kernel(setup, "conv2d_gradient", "conv2d_expand", NULL, &state->expand));
    state->dz_first = (first + 15) / 16 * 16;
    const int64_t dz = s->groups * s->filters * s->axis[0].out * s->axis[1].out;
    const int64_t reals =
        state->dz_first + (state->expands ? dz * setup->tiling.tiles * setup->tiling.lanes : 0);
    const size_t bytes = (size_t)reals * lk_dtype_bytes(setup->real);
    if (bytes > setup->workspace_bytes)
        setup->workspace_bytes = bytes;
    return LK_OK;
}

static enum lk_status prepare(struct lk_op_setup *setup)
{
    void *memory;
    LK_TRY(lk_arena_take(setup->arena, sizeof(struct state), &memory));
    struct state *state = setup->state = memory;
    LK_TRY(lk_conv2d_shape(setup->options, &setup->shapes.x[0], &state->shape));
    describe_forward(&state->shape, &state->forward);
    LK_TRY(lk_conv2d_gather_prepare(setup, &state->forward));
    setup->workspace_bytes = (size_t)state->forward.packed_count * lk_dtype_bytes(setup->real);
    setup->saved_bytes = 0;
    if (!setup->training)
        return LK_OK;
    if (state->shape.pool)
        setup->saved_bytes = lk_tiled_bytes(&setup->tiling, &setup->shapes.y, LK_U8);
    return prepare_backward(setup, state);
}

static enum lk_status forward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct lk_conv2d_options *o = setup->options;
    const struct state *state = setup->state;
    const struct lk_conv2d_operands operands = {.x = run->x[0],
                                                .w = run->w[0],
                                                .bias = o->bias ? run->w[1] : NULL,
                                                .y = run->y,
                                                .at = setup->training ? run->saved : NULL,
                                                .workspace = run->workspace};
    return lk_conv2d_gather_enqueue(setup, &state->forward, &operands);
}

/* dz into the workspace, the bias gradient, or both. */
static enum lk_status enqueue_expand(const struct lk_op_setup *setup,
                                     const struct lk_op_run *run, bool wants_dz,
                                     struct lk_buffer *db)
{
    const struct state *state = setup->state;
    const struct lk_conv2d_shape *s = &state->shape;
    const struct lk_tiling *t = &setup->tiling;
    const struct lk_grid grid = {{s->groups * s->filters, t->shards, 1}, lk_op_items(setup)};
    const int64_t row = t->lanes * (int64_t)lk_dtype_bytes(setup->real);
    return LK_ENQUEUE(
        state->expand, grid, LK_BUF(run->dy), LK_BUF(s->relu && !s->pool ? run->y : NULL),
        LK_BUF(s->pool ? run->saved : NULL), LK_BUF(wants_dz ? run->workspace : NULL),
        LK_INT(state->dz_first), LK_BUF(db), LK_INT(run->dw_stride), LK_INT(t->shard_tiles),
        LK_INT(s->groups * s->filters), LK_INT(s->axis[0].out), LK_INT(s->axis[1].out),
        LK_LOCAL(row));
}

static enum lk_status backward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct lk_conv2d_options *o = setup->options;
    const struct state *state = setup->state;
    const bool wants_dz = state->expands && (run->dx[0] || run->dw[0]);
    struct lk_buffer *db = o->bias ? run->dw[1] : NULL;
    if (wants_dz || db)
        LK_TRY(enqueue_expand(setup, run, wants_dz, db));
    for (int i = 0; run->dx[0] && i < state->phase_count; i++) {
        const struct lk_conv2d_operands operands = {
            .x = state->expands ? run->workspace : run->dy,
            .x_first = state->expands ? state->dz_first : 0,
            .w = run->w[0],
            .y = run->dx[0],
            .workspace = run->workspace};
        LK_TRY(lk_conv2d_gather_enqueue(setup, &state->phases[i], &operands));
    }
    if (run->dw[0])
        LK_TRY(lk_conv2d_weights_enqueue(setup, &state->shape, &state->weights, run,
                                         state->expands ? state->dz_first : -1));
    return LK_OK;
}

static void release(struct lk_op_setup *setup)
{
    struct state *state = setup->state;
    if (!state)
        return;
    lk_conv2d_gather_release(&state->forward);
    for (int i = 0; i < state->phase_count; i++)
        lk_conv2d_gather_release(&state->phases[i]);
    lk_conv2d_weights_release(&state->weights);
    lk_kernel_destroy(state->expand);
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
    if (strcmp(next, "relu") == 0 && o->activation == LK_CONV2D_NONE && !o->pool) {
        o->activation = LK_CONV2D_RELU;
        return true;
    }
    if (strcmp(next, "max_pool") == 0 && !o->pool && has(next_options, "size=2,2") &&
        (has(next_options, "stride=2,2") || has(next_options, "stride=0,0")) && /* 0: size */
        has(next_options, "padding=\"valid\"")) {
        o->pool = true;
        return true;
    }
    return false;
}

const struct lk_op lk_op_conv2d = {.name = "conv2d",
                                   .options = table,
                                   .options_bytes = sizeof(struct lk_conv2d_options),
                                   .min_inputs = 1,
                                   .max_inputs = 1,
                                   .infer = infer,
                                   .prepare = prepare,
                                   .forward = forward,
                                   .backward = backward,
                                   .release = release,
                                   .absorb = absorb};
