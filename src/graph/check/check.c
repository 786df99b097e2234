/* Checks a device's operations: compares three sums that Euler's theorem makes equal, for each
 * operation of a graph. */
#include "graph/check/check.h"

#include "base/fail.h"
#include "base/progress.h"
#include "device/device.h"
#include "graph/nodes/schedule.h"
#include "graph/planes.h"
#include "ops/probe/probe.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The error allowed of a sum, relative to the root of the sum of its terms' squares (the size
 * to be expected if the terms were random). Far above rounding errors, in float, and with
 * halves or reduced products. */
static const double FULL_ERROR = 1e-3, REDUCED_ERROR = 1e-2;

/* The most bytes of inputs and outputs: of larger batches only as many samples as fit are
 * checked; operations with more weights are not checked. */
static const double MOST_BYTES = 64 << 20;

enum {
    BLOCK = 1 << 18, /* numbers that are read at a time, which wakes a thread of the device */
    LANES = 8        /* that are added at a time */
};

struct sum {
    double value, squares; /* of the terms */
    bool has_leaks; /* somewhere a gradient is not 0 although the relu before it let nothing
                       pass */
};

/* Two arrays whose scalar product is computed. The second is a sum of one row for each shard;
 * if is_gated it must be 0 wherever the first is not > 0. */
struct factors {
    const struct lk_buffer *a, *b;
    enum lk_dtype dtype;
    int64_t count, stride; /* how many numbers; from one shard's row to the next */
    int shards;
    bool is_gated;
};

/* As much of such arrays as the host holds at a time. */
struct block {
    float a[BLOCK], b[BLOCK];
    double terms[BLOCK + LANES];
};

/* Several sums at once, since an addition has to wait for the one before it. The terms behind
 * the last are 0. */
static void add_terms(const struct block *block, int64_t count, struct sum *sum)
{
    double values[LANES] = {0}, squares[LANES] = {0};
    for (int64_t i = 0; i < count; i += LANES)
        for (int j = 0; j < LANES; j++) {
            const double term = block->terms[i + j];
            values[j] += term;
            squares[j] += term * term;
        }
    for (int j = 0; j < LANES; j++) {
        sum->value += values[j];
        sum->squares += squares[j];
    }
}

static enum lk_status add_block(const struct factors *f, int64_t first, int64_t count,
                                struct block *block, struct sum *sum)
{
    int leaks = 0;
    LK_TRY(lk_probe_read(f->a, f->dtype, first, count, block->a));
    memset(block->terms, 0, (size_t)(count + LANES) * sizeof block->terms[0]);
    for (int shard = 0; shard < f->shards; shard++) {
        LK_TRY(lk_probe_read(f->b, f->dtype, shard * f->stride + first, count, block->b));
        for (int64_t i = 0; i < count; i++) {
            block->terms[i] += (double)block->a[i] * block->b[i];
            leaks |= !(block->a[i] > 0) & (block->b[i] != 0);
        }
    }
    sum->has_leaks |= f->is_gated && leaks;
    add_terms(block, count, sum);
    return LK_OK;
}

static enum lk_status add_products(const struct factors *f, struct sum *sum)
{
    enum lk_status status = LK_OK;
    struct block *block = malloc(sizeof *block);
    if (!block)
        return lk_fail_memory("a check's numbers", sizeof *block);
    for (int64_t at = 0; at < f->count && status == LK_OK; at += BLOCK)
        status = add_block(f, at, f->count - at < BLOCK ? f->count - at : BLOCK, block, sum);
    free(block);
    return status;
}

/* Activations times their gradients. */
static enum lk_status add_tensor(const struct lk_probe *probe, const struct lk_buffer *values,
                                 const struct lk_buffer *gradients, bool is_gated,
                                 struct sum *sum)
{
    const enum lk_dtype dtype = lk_op_stored(&probe->setup);
    const struct factors factors = {
        .a = values,
        .b = gradients,
        .dtype = dtype,
        .count = (int64_t)(lk_buffer_bytes(values) / lk_dtype_bytes(dtype)),
        .shards = 1,
        .is_gated = is_gated};
    return add_products(&factors, sum);
}

/* Parameter j times its gradient. */
static enum lk_status add_param(const struct lk_probe *probe, int j, struct sum *sum)
{
    const struct lk_op_setup *s = &probe->setup;
    const struct lk_op_run *run = &probe->runs[0];
    const struct factors factors = {.a = run->w[j],
                                    .b = run->dw[j],
                                    .dtype = LK_F32,
                                    .count = lk_shape_count(&s->shapes.param[j].shape),
                                    .stride = run->dw_stride,
                                    .shards = s->tiling.shards};
    return add_products(&factors, sum);
}

static enum lk_status compare(const struct lk_probe *probe, const struct sum *y,
                              const struct sum *other, const char *what)
{
    const struct lk_op_setup *s = &probe->setup;
    const bool reduced = s->stores_half || lk_choices_math(s->choices) == LK_MATH_FAST;
    const double most = reduced ? REDUCED_ERROR : FULL_ERROR;
    const double squares = y->squares > other->squares ? y->squares : other->squares;
    if (fabs(y->value - other->value) <= most * sqrt(squares))
        return LK_OK;
    return lk_fail(LK_E_DEVICE,
                   "it computes wrongly: '%s': outputs times their gradients add up to %.6g, "
                   "%s times theirs to %.6g; the same is expected",
                   s->node, y->value, what, other->value);
}

/* Compares the sums after forward and backward. */
static enum lk_status compare_sums(const struct lk_probe *probe)
{
    const struct lk_op_setup *s = &probe->setup;
    const struct lk_op_run *run = &probe->runs[0];
    struct sum y = {0}, w = {0}, x = {0};
    bool has_dx = true;
    LK_TRY(add_tensor(probe, run->y, run->dy, false, &y));
    for (int j = 0; j < s->shapes.params && s->wants_dw; j++) {
        LK_TRY(add_param(probe, j, &w));
        if (j > 0)
            LK_TRY(add_param(probe, j, &x));
    }
    if (s->wants_dw)
        LK_TRY(compare(probe, &y, &w, "weights"));
    for (int i = 0; i < s->shapes.inputs; i++)
        has_dx &= s->wants_dx[i];
    if (!has_dx || (s->shapes.params > 1 && !s->wants_dw))
        return LK_OK;
    for (int i = 0; i < s->shapes.inputs; i++)
        LK_TRY(add_tensor(probe, run->x[i], run->dx[i], s->gates_dx[i], &x));
    if (x.has_leaks)
        return lk_fail(LK_E_DEVICE,
                       "it computes wrongly: '%s': inputs that are 0 have gradients, which "
                       "were to be 0",
                       s->node);
    return compare(probe, &y, &x, "inputs");
}

/* Whether the operation has kernels of its own for plane tiles, and runs them. */
static bool lies_in_planes(const struct lk_check_config *c, const struct lk_schedule *schedule,
                           int i)
{
    return schedule->ops[i].op->planes == LK_PLANES_KNOWN && c->few_samples &&
           !c->stores_half && lk_schedule_trains_planes(schedule) &&
           lk_schedule_has_planes(schedule, i);
}

/* The tiling of training, so that the same kernels are checked; of fewer samples if those would
 * take too much memory. */
static struct lk_tiling tiling_of(const struct lk_check_config *c,
                                  const struct lk_scheduled_op *scheduled, bool in_planes)
{
    const struct lk_device_info *info = lk_device_info(c->device);
    const struct lk_tiling run = in_planes ? lk_tiling_make_planes(info, c->batch, c->shards)
                                           : lk_tiling_make(info, c->batch, c->shards);
    double numbers = (double)lk_shape_count(&scheduled->shapes.y);
    for (int i = 0; i < scheduled->shapes.inputs; i++)
        numbers += (double)lk_shape_count(&scheduled->shapes.x[i]);
    const double samples = MOST_BYTES / (sizeof(float) * numbers);
    if ((double)c->batch <= samples)
        return run;
    if (in_planes)
        return lk_tiling_resize(&run, samples > 1 ? (int64_t)samples : 1, 1);
    const int64_t tiles = (int64_t)(samples / run.lanes);
    return lk_tiling_resize(&run, (tiles > 1 ? tiles : 1) * run.lanes, 1);
}

/* Lanes behind the last pixel of a plane have gradients of 0 (tensor/tensor.h). */
static enum lk_status clear_dead(const struct lk_probe *probe, const struct lk_shape *y)
{
    const struct lk_buffer *dy = probe->runs[0].dy;
    const int lanes = probe->setup.tiling.lanes;
    const int64_t pixels = y->dim[1] * y->dim[2], row = lk_divide_up(pixels, lanes) * lanes;
    const size_t bytes = lk_buffer_bytes(dy), of_row = (size_t)row * sizeof(float);
    enum lk_status status;
    if (row == pixels)
        return LK_OK;
    float *values = malloc(bytes);
    if (!values)
        return lk_fail_memory("a check's gradients", bytes);
    LK_TRY_OUT(lk_buffer_read(dy, 0, bytes, values));
    for (size_t plane = 0; plane < bytes / of_row; plane++)
        for (int64_t i = pixels; i < row; i++)
            values[plane * (size_t)row + (size_t)i] = 0;
    LK_TRY_OUT(lk_buffer_write((struct lk_buffer *)dy, 0, bytes, values));
out:
    free(values);
    return status;
}

/* What is known of an operation that was checked. */
struct outcome {
    bool is_known;
    bool gates_dx[LK_MOST_INPUTS]; /* as in lk_op_setup */
};

static enum lk_status check_op(const struct lk_check_config *c,
                               const struct lk_schedule *schedule, int i,
                               struct outcome *outcome)
{
    const struct lk_scheduled_op *scheduled = &schedule->ops[i];
    const bool in_planes = lies_in_planes(c, schedule, i);
    struct lk_op_setup like;
    struct lk_probe probe = {0};
    enum lk_status status;
    lk_schedule_describe(schedule, i, &like);
    like.device = c->device;
    like.tiling = tiling_of(c, scheduled, in_planes);
    like.real = LK_F32;
    like.stores_half = c->stores_half;
    like.training = true;
    like.choices = c->choices;
    LK_TRY_OUT(lk_probe_open_like(&probe, scheduled->op, &like,
                                  like.tiling.shards * like.tiling.shard_samples));
    memcpy(outcome->gates_dx, probe.setup.gates_dx, sizeof outcome->gates_dx);
    LK_TRY_OUT(lk_device_build(c->device));
    LK_TRY_OUT(lk_probe_allocate(&probe, 1, true));
    LK_TRY_OUT(lk_probe_fill(&probe));
    if (in_planes)
        LK_TRY_OUT(clear_dead(&probe, &scheduled->shapes.y));
    LK_TRY_OUT(lk_probe_backward(&probe, 0));
    LK_TRY_OUT(compare_sums(&probe));
    outcome->is_known = true;
out:
    lk_probe_close(&probe);
    return status;
}

/* Whether two operations run the same kernels on the same numbers: all that differs between
 * checks of operations is in these. Options hold what was absorbed, and are zeroed before they
 * are set. */
static bool is_same(const struct lk_schedule *schedule, int i, int j)
{
    const struct lk_scheduled_op *a = &schedule->ops[i], *b = &schedule->ops[j];
    if (a->op != b->op || a->shapes.inputs != b->shapes.inputs ||
        a->shapes.window != b->shapes.window || a->wants_dw != b->wants_dw ||
        schedule->values[a->y].is_gated != schedule->values[b->y].is_gated ||
        memcmp(a->options, b->options, a->op->options_bytes) != 0)
        return false;
    for (int n = 0; n < a->shapes.inputs; n++)
        if (!lk_shape_equal(&a->shapes.x[n], &b->shapes.x[n]) ||
            a->shapes.x_dtype[n] != b->shapes.x_dtype[n] || a->wants_dx[n] != b->wants_dx[n] ||
            a->asks_gate[n] != b->asks_gate[n])
            return false;
    return true;
}

/* A second check of the same would compute every bit of the first again. */
static enum lk_status check_once(const struct lk_check_config *c, struct lk_schedule *schedule,
                                 int i, struct outcome *outcomes)
{
    struct lk_op_setup setup;
    int like = i + 1;
    while (like < schedule->op_count &&
           !(outcomes[like].is_known && is_same(schedule, i, like)))
        like++;
    if (like < schedule->op_count)
        outcomes[i] = outcomes[like];
    else
        LK_TRY(check_op(c, schedule, i, &outcomes[i]));
    lk_schedule_describe(schedule, i, &setup);
    memcpy(setup.gates_dx, outcomes[i].gates_dx, sizeof setup.gates_dx);
    lk_schedule_note_gates(schedule, i, &setup);
    return LK_OK;
}

/* Whether the operation is checked. Drawing and reading the weights of a larger layer would
 * delay training by seconds, and take memory that no plan has counted. */
static bool is_checked(const struct lk_check_config *c, const struct lk_scheduled_op *scheduled)
{
    double weights = 0;
    if (c->is_placed && lk_node_place(scheduled->node) != c->place)
        return false;
    for (int j = 0; j < scheduled->shapes.params; j++)
        weights += (double)lk_shape_count(&scheduled->shapes.param[j].shape);
    return scheduled->shapes.scales && scheduled->has_backward &&
           sizeof(float) * weights <= MOST_BYTES;
}

static int count_checked(const struct lk_check_config *c, const struct lk_schedule *schedule)
{
    int count = 0;
    for (int i = 0; i < schedule->op_count; i++)
        count += is_checked(c, &schedule->ops[i]);
    return count;
}

static enum lk_status check_all(const struct lk_check_config *c, struct lk_schedule *schedule)
{
    struct outcome *outcomes = calloc((size_t)schedule->op_count, sizeof *outcomes);
    enum lk_status status = LK_OK;
    if (!outcomes)
        return lk_fail_memory("a check's outcomes",
                              (size_t)schedule->op_count * sizeof *outcomes);
    lk_progress_begin(LK_TASK_CHECK, count_checked(c, schedule));
    for (int i = schedule->op_count - 1; i >= 0 && status == LK_OK; i--)
        if (is_checked(c, &schedule->ops[i])) {
            status = check_once(c, schedule, i, outcomes);
            lk_progress_add(LK_TASK_CHECK, 1);
        }
    lk_progress_end(LK_TASK_CHECK);
    free(outcomes);
    return status;
}

enum lk_status lk_graph_check(const struct lk_check_config *config)
{
    struct lk_schedule schedule = {0};
    enum lk_status status =
        lk_schedule_make((const struct lk_node *[]){config->loss, NULL}, true, &schedule);
    if (status == LK_OK)
        status = check_all(config, &schedule);
    lk_schedule_clear(&schedule);
    return status;
}
