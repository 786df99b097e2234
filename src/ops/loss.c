/* Losses that compare predictions with targets element by element: a row of loss_table.h each.
 * The loss of a sample is the mean over its elements, whatever its shape. */
#include "ops/loss.h"

#include "base/fail.h"
#include "ops/loss_table.h"
#include <stdio.h>
#include <string.h>

enum answers { YES_OR_NO, NUMBERS };

/* Elements of a chunk. Forward sums chunks apart, so SUMMED decides bits. */
enum { SUMMED = 1024, WRITTEN = 64 };

#define ANSWERS(name_, options_, answers_, ...) {#name_, answers_},
static const struct row {
    const char *name;
    enum answers answers;
} rows[] = {LK_LOSSES(ANSWERS)};

struct state {
    struct lk_kernel *forward, *finish, *backward;
    int64_t count; /* elements of a sample */
    bool has_labels;
};

static const struct lk_option options_plain[] = {
    LK_WEIGHT_OPTION(struct lk_loss_options, weight),
    {0},
};

static const struct lk_option options_huber[] = {
    {.name = "delta",
     .kind = LK_OPTION_REAL,
     .offset = offsetof(struct lk_loss_options, delta),
     .min = 1e-6,
     .max = 1e9,
     .standard = "1",
     .help = "the error from which on the loss grows no faster than it"},
    LK_WEIGHT_OPTION(struct lk_loss_options, weight),
    {0},
};

bool lk_loss_take_weight(const char *options, double *weight)
{
    struct lk_loss_options parsed = {.weight = 1};
    if (lk_options_parse(options_plain, &parsed, options) != LK_OK)
        return false;
    *weight = parsed.weight;
    return true;
}

/* --- shapes ---------------------------------------------------------------------------- */

static bool says_yes_or_no(const char *name)
{
    for (int i = 0; i < LK_COUNT(rows); i++)
        if (strcmp(rows[i].name, name) == 0)
            return rows[i].answers == YES_OR_NO;
    return false;
}

/* Whether prediction and target have the same shape; [] and [1] are the same, one number. */
static bool are_alike(const struct lk_shape *x, const struct lk_shape *t)
{
    return lk_shape_equal(x, t) || (lk_shape_count(x) == 1 && lk_shape_count(t) == 1);
}

enum lk_status lk_loss_infer(struct lk_op_shapes *shapes, const char *name)
{
    const struct lk_shape *x = &shapes->x[0], *t = &shapes->x[1];
    char text[96], found[96];
    if (shapes->inputs != 2)
        return lk_fail(LK_E_SHAPE, "%s takes two inputs, predictions and targets, not %d", name,
                       shapes->inputs);
    if (shapes->x_dtype[0] != LK_F32)
        return lk_fail(LK_E_SHAPE, "%s takes real predictions, not labels", name);
    lk_shape_print_hwc(x, text, sizeof text);
    lk_shape_print_hwc(t, found, sizeof found);
    if (shapes->x_dtype[1] != LK_I32 && !are_alike(x, t))
        return lk_fail(LK_E_SHAPE, "%s takes a target for each prediction of %s, not %s", name,
                       text, found);
    if (shapes->x_dtype[1] == LK_I32 && !says_yes_or_no(name))
        return lk_fail(LK_E_SHAPE, "%s takes real targets %s, not labels", name, text);
    if (shapes->x_dtype[1] == LK_I32 && (lk_shape_count(x) != 1 || lk_shape_count(t) != 1))
        return lk_fail(LK_E_SHAPE,
                       "%s takes a label 0 or 1 for one prediction, not labels %s for %s; "
                       "targets of several are real numbers",
                       name, found, text);
    shapes->y = (struct lk_shape){1, {2}};
    shapes->is_loss = true;
    shapes->backward_reads_x = true;
    shapes->flops = 4.0 * (double)lk_shape_count(x);
    return LK_OK;
}

/* --- kernels --------------------------------------------------------------------------- */

enum lk_status lk_loss_prepare(struct lk_op_setup *setup, const char *name)
{
    char options[96];
    void *memory;
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct state), &memory));
    struct state *s = setup->state = memory;
    s->count = lk_shape_count(&setup->shapes.x[0]);
    s->has_labels = setup->shapes.x_dtype[1] == LK_I32;
    snprintf(options, sizeof options, "-DSELECTED=LOSS_%s%s", name,
             s->has_labels ? " -DLABELS" : "");
    LK_TRY(lk_op_kernel(setup, "ops/loss", "loss_forward", options, &s->forward));
    if (s->count > SUMMED) {
        LK_TRY(lk_op_kernel(setup, "ops/loss", "loss_finish", options, &s->finish));
        setup->workspace_bytes = (size_t)setup->tiling.tiles *
                                 (size_t)lk_divide_up(s->count, SUMMED) * 2 *
                                 (size_t)setup->tiling.lanes * lk_dtype_bytes(setup->real);
    }
    if (setup->training && (setup->wants_dx[0] || setup->wants_dx[1]))
        LK_TRY(lk_op_kernel(setup, "ops/loss", "loss_backward", options, &s->backward));
    return LK_OK;
}

/* Arguments that tell which lanes have a sample, where no label tells it. */
#define SAMPLES(setup, run)                                                                    \
    LK_INT((run)->samples), LK_INT((setup)->tiling.shard_samples),                             \
        LK_INT((setup)->tiling.shard_tiles)

enum lk_status lk_loss_forward(const struct lk_op_setup *setup, const struct lk_op_run *run,
                               const struct lk_loss_options *o)
{
    const struct state *s = setup->state;
    const int64_t chunks = lk_divide_up(s->count, SUMMED);
    const struct lk_grid grid = {{setup->tiling.tiles * chunks, 1, 1}, lk_op_items(setup)};
    const struct lk_grid tiles = {{setup->tiling.tiles, 1, 1}, lk_op_items(setup)};
    LK_TRY(LK_ENQUEUE(s->forward, grid, LK_BUF(run->x[0]), LK_BUF(run->x[1]), LK_BUF(run->y),
                      LK_BUF(run->workspace), LK_INT(s->count), LK_INT(SUMMED), LK_INT(chunks),
                      LK_REAL(o->delta), SAMPLES(setup, run)));
    if (chunks == 1)
        return LK_OK;
    return LK_ENQUEUE(s->finish, tiles, LK_BUF(run->workspace), LK_BUF(run->y),
                      LK_INT(s->count), LK_INT(chunks));
}

enum lk_status lk_loss_backward(const struct lk_op_setup *setup, const struct lk_op_run *run,
                                const struct lk_loss_options *o)
{
    const struct state *s = setup->state;
    const int64_t chunks = lk_divide_up(s->count, WRITTEN);
    const struct lk_grid grid = {{setup->tiling.tiles * chunks, 1, 1}, lk_op_items(setup)};
    if (!run->dx[0] && !run->dx[1])
        return LK_OK;
    return LK_ENQUEUE(s->backward, grid, LK_BUF(run->x[0]), LK_BUF(run->x[1]),
                      LK_BUF(run->dx[0]), LK_BUF(run->dx[1]), LK_INT(s->count), LK_INT(WRITTEN),
                      LK_INT(chunks), LK_REAL(o->delta), SAMPLES(setup, run),
                      LK_BUF(run->loss_scale), LK_REAL(o->weight));
}

static enum lk_status forward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    return lk_loss_forward(setup, run, setup->options);
}

static enum lk_status backward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    return lk_loss_backward(setup, run, setup->options);
}

#define OPERATION(name_, set_, ...)                                                            \
    static enum lk_status infer_##name_(struct lk_op_shapes *shapes)                           \
    {                                                                                          \
        return lk_loss_infer(shapes, #name_);                                                  \
    }                                                                                          \
    static enum lk_status prepare_##name_(struct lk_op_setup *setup)                           \
    {                                                                                          \
        return lk_loss_prepare(setup, #name_);                                                 \
    }                                                                                          \
    const struct lk_op lk_op_##name_ = {                                                       \
        .name = #name_,                                                                        \
        .options = options_##set_,                                                             \
        .options_bytes = sizeof(struct lk_loss_options),                                       \
        .min_inputs = 2,                                                                       \
        .max_inputs = 2,                                                                       \
        .infer = infer_##name_,                                                                \
        .prepare = prepare_##name_,                                                            \
        .forward = forward,                                                                    \
        .backward = backward,                                                                  \
    };

LK_LOSSES(OPERATION)
