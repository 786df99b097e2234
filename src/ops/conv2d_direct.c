/* Direct sums: one gather forward, one for each phase of the strides in the data gradient, and
 * the weight gradient of cl/products/direct/staged_weights.cl. */
#include "ops/conv2d_direct.h"

#include "base/fail.h"
#include <stdio.h>

struct direct {
    enum lk_conv2d_pass pass;
    struct lk_conv2d_shape shape;
    struct lk_conv2d_gather *steps; /* of the gather kernel, one after another */
    int step_count;
    struct lk_conv2d_weights weights;
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
    *made = (struct lk_conv2d_gather){
        .axis = {phase_axis(&s->axis[0], y, &first[0], &every[0]),
                 phase_axis(&s->axis[1], x, &first[1], &every[1])},
        .groups = s->groups,
        .ins = s->filters,
        .outs = s->channels,
        .out_step = {s->axis[0].step, s->axis[1].step},
        .out_first = {y, x},
        .plane_width = s->axis[1].in,
        .plane = s->axis[0].in * s->axis[1].in,
        .fills = y == 0 && x == 0 && s->axis[0].taps == 1 && s->axis[1].taps == 1};
    made->from = (struct lk_conv2d_taps){.group_step = s->filters,
                                         .out_step = s->axis[0].taps * row,
                                         .in_step = 1,
                                         .first = first[0] * row + first[1] * column,
                                         .row_step = -every[0] * row,
                                         .column_step = -every[1] * column};
}

void lk_conv2d_describe_forward(const struct lk_conv2d_shape *s, struct lk_conv2d_gather *made)
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

int lk_conv2d_phases(const struct lk_conv2d_shape *s)
{
    return (int)(lk_least(s->axis[0].step, s->axis[0].in) *
                 lk_least(s->axis[1].step, s->axis[1].in));
}

void lk_conv2d_describe_phase(const struct lk_conv2d_shape *s, int number,
                              struct lk_conv2d_gather *made)
{
    const int64_t across = lk_least(s->axis[1].step, s->axis[1].in);
    describe_phase(s, number / across, number % across, made);
}

/* The data gradient: a gather for each phase of the strides; of single taps the first may
 * fill the others. */
static void describe_phases(const struct lk_op_setup *setup, const struct lk_conv2d_shape *s,
                            struct direct *direct)
{
    for (int64_t y = 0; y < s->axis[0].step && y < s->axis[0].in; y++)
        for (int64_t x = 0; x < s->axis[1].step && x < s->axis[1].in; x++) {
            struct lk_conv2d_gather *step = &direct->steps[direct->step_count++];
            describe_phase(s, y, x, step);
            if (step->fills && lk_conv2d_is_pointwise(setup, step))
                return;
        }
}

static enum lk_status prepare_steps(struct lk_op_setup *setup, struct lk_conv2d_job *job,
                                    struct direct *direct)
{
    const struct lk_conv2d_shape *s = job->shape;
    const bool forward = job->pass == LK_CONV2D_FORWARD;
    const int most = forward ? 1 : lk_conv2d_phases(s);
    void *steps;
    LK_TRY(lk_arena_take(setup->arena, (size_t)most * sizeof *direct->steps, &steps));
    direct->steps = steps;
    if (forward)
        lk_conv2d_describe_forward(s, &direct->steps[direct->step_count++]);
    else
        describe_phases(setup, s, direct);
    for (int i = 0; i < direct->step_count; i++) {
        direct->steps[i].packed_first = job->first + job->count;
        direct->steps[i].blocking = job->blocking;
        direct->steps[i].is_gated = job->is_gated;
        LK_TRY(lk_conv2d_gather_prepare(setup, &direct->steps[i]));
        job->count += direct->steps[i].packed_count;
    }
    return LK_OK;
}

static enum lk_status prepare(struct lk_op_setup *setup, struct lk_conv2d_job *job,
                              void **state)
{
    LK_TRY(lk_arena_take(setup->arena, sizeof(struct direct), state));
    struct direct *direct = *state;
    direct->pass = job->pass;
    direct->shape = *job->shape;
    if (job->pass != LK_CONV2D_WEIGHTS)
        return prepare_steps(setup, job, direct);
    struct lk_conv2d_weights *weights = &direct->weights;
    weights->gradient = job->gradient;
    weights->parts.first = job->first;
    LK_TRY(lk_conv2d_weights_prepare(setup, &direct->shape, weights));
    int64_t of_bias = 0;
    LK_TRY(lk_conv2d_parts_prepare(setup, &weights->parts, &job->count));
    if (!weights->lanewise)
        return LK_OK;
    job->gives_db = true;
    weights->bias.first = job->first + job->count;
    LK_TRY(lk_conv2d_parts_prepare(setup, &weights->bias, &of_bias));
    job->count += of_bias;
    return LK_OK;
}

static enum lk_status enqueue(const struct lk_op_setup *setup, void *state,
                              const struct lk_conv2d_operands *run)
{
    const struct direct *direct = state;
    if (direct->pass == LK_CONV2D_WEIGHTS)
        return lk_conv2d_weights_enqueue(setup, &direct->shape, &direct->weights, run);
    const bool forward = direct->pass == LK_CONV2D_FORWARD;
    const struct lk_conv2d_gather_run gather = {.x = forward ? run->x : run->dz,
                                                .x_first = forward ? 0 : run->dz_first,
                                                .w = run->w,
                                                .bias = forward ? run->bias : NULL,
                                                .gate = run->x,
                                                .y = forward ? run->y : run->dx,
                                                .at = forward ? run->at : NULL,
                                                .workspace = run->workspace};
    for (int i = 0; i < direct->step_count; i++)
        LK_TRY(lk_conv2d_gather_enqueue(setup, &direct->steps[i], &gather));
    return LK_OK;
}

static void release(void *state)
{
    struct direct *direct = state;
    for (int i = 0; i < direct->step_count; i++)
        lk_conv2d_gather_release(&direct->steps[i]);
    lk_conv2d_weights_release(&direct->weights);
}

double lk_conv2d_products(const struct lk_conv2d_shape *s)
{
    return (double)(s->groups * s->channels * s->filters) *
           (double)(s->axis[0].taps * s->axis[1].taps) *
           (double)(s->axis[0].all_out * s->axis[1].all_out);
}

static double cost(const struct lk_op_setup *setup, const struct lk_conv2d_shape *shape,
                   enum lk_conv2d_pass pass)
{
    /* Without local memory, a GPU waits for its caches. */
    const double share = setup->tiling.vector == 1   ? 0.25
                         : pass == LK_CONV2D_WEIGHTS ? 0.75
                                                     : 0.85;
    return lk_conv2d_products(shape) / share;
}

/* Filters x columns whose sums fill the registers. */
static bool blocking(const struct lk_op_setup *setup, const struct lk_conv2d_job *job,
                     int index, char text[LK_CONV2D_BLOCKING_BYTES])
{
    static const int blocks[] = {12, 6, 4, 3, 2};
    const int sums = lk_conv2d_gather_sums(setup), count = (int)LK_COUNT(blocks);
    if (setup->tiling.vector == 1 || job->pass == LK_CONV2D_WEIGHTS || job->shape->pool ||
        index >= count)
        return false;
    snprintf(text, LK_CONV2D_BLOCKING_BYTES, "%dx%d", blocks[index], sums / blocks[index]);
    return true;
}

const struct lk_conv2d_algorithm lk_conv2d_direct = {.name = "direct",
                                                     .is_direct = true,
                                                     .gates_dx = true,
                                                     .reads_dy = {[LK_CONV2D_WEIGHTS] = true},
                                                     .cost = cost,
                                                     .blocking = blocking,
                                                     .prepare = prepare,
                                                     .enqueue = enqueue,
                                                     .release = release};
