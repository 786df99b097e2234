/* Functions of every element: activations, sums and products of tensors of one shape. */
#include "ops/eltwise.h"

#include "base/fail.h"
#include "ops/eltwise_table.h"
#include <string.h>

enum { NO_LOSS, BINARY_CROSS_ENTROPY };

struct state {
    struct lk_kernel *forward, *backward;
};

/* What backward needs of the forward pass. */
enum reads { READS_X, READS_Y };

/* All inputs are real and of one shape. */
static enum lk_status check_inputs(const struct lk_op_shapes *shapes, const char *name)
{
    char first[64], other[64];
    for (int i = 0; i < shapes->inputs; i++) {
        if (shapes->x_dtype[i] != LK_F32)
            return lk_fail(LK_E_SHAPE, "%s: real numbers expected, found labels", name);
        if (lk_shape_equal(&shapes->x[0], &shapes->x[i]))
            continue;
        lk_shape_print_hwc(&shapes->x[0], first, sizeof first);
        lk_shape_print_hwc(&shapes->x[i], other, sizeof other);
        return lk_fail(LK_E_SHAPE, "%s: inputs of one shape expected, found %s and %s", name,
                       first, other);
    }
    return LK_OK;
}

static enum lk_status prepare_kernels(struct lk_op_setup *setup, const char *forward,
                                      const char *backward, const char *definition)
{
    void *memory;
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct state), &memory));
    struct state *state = setup->state = memory;
    LK_TRY(lk_op_kernel(setup, "ops/eltwise", forward, definition, &state->forward));
    if (setup->training && backward)
        LK_TRY(lk_op_kernel(setup, "ops/eltwise", backward, definition, &state->backward));
    return LK_OK;
}

static void release(struct lk_op_setup *setup)
{
    struct state *state = setup->state;
    if (!state)
        return;
    lk_kernel_destroy(state->forward);
    lk_kernel_destroy(state->backward);
    setup->state = NULL;
}

/* The rows of LANES reals that a tensor has, cut into groups that are worth a launch. */
struct rows {
    struct lk_grid grid;
    int64_t count, each;
};

static struct rows cut_rows(const struct lk_op_setup *setup)
{
    const bool gpu = setup->tiling.vector == 1;
    struct rows rows = {.count = setup->tiling.tiles * lk_shape_count(&setup->shapes.y),
                        .each = gpu ? 16 : 256};
    rows.grid =
        (struct lk_grid){{lk_divide_up(rows.count, rows.each), 1, 1}, lk_op_items(setup)};
    return rows;
}

/* --- functions of one tensor, or with the loss that reads it ---------------------------- */

static const char loss_name[] = "sigmoid_binary_cross_entropy";

static enum lk_status infer_function(struct lk_op_shapes *shapes, const char *name,
                                     enum reads reads)
{
    const struct lk_eltwise_options *o = shapes->options;
    if (o->takes == BINARY_CROSS_ENTROPY)
        return lk_loss_infer(shapes, loss_name);
    if (shapes->inputs != 1)
        return lk_fail(LK_E_SHAPE, "%s takes one input, not %d", name, shapes->inputs);
    LK_TRY(check_inputs(shapes, name));
    shapes->y = shapes->x[0];
    shapes->backward_reads_x = reads == READS_X;
    shapes->backward_reads_y = reads == READS_Y;
    shapes->flops = (double)lk_shape_count(&shapes->y);
    return LK_OK;
}

static enum lk_status prepare_function(struct lk_op_setup *setup, const char *definition)
{
    if (setup->shapes.is_loss)
        return lk_loss_prepare(setup, loss_name);
    return prepare_kernels(setup, "eltwise_forward", "eltwise_backward", definition);
}

static enum lk_status forward_function(const struct lk_op_setup *setup,
                                       const struct lk_op_run *run)
{
    const struct state *state = setup->state;
    const struct lk_eltwise_options *o = setup->options;
    if (setup->shapes.is_loss)
        return lk_loss_forward(setup, run, &o->loss);
    const struct rows rows = cut_rows(setup);
    return LK_ENQUEUE(state->forward, rows.grid, LK_BUF(run->x[0]), LK_BUF(run->y),
                      LK_INT(rows.count), LK_INT(rows.each), LK_REAL(o->alpha),
                      LK_REAL(o->beta));
}

static enum lk_status backward_function(const struct lk_op_setup *setup,
                                        const struct lk_op_run *run)
{
    const struct state *state = setup->state;
    const struct lk_eltwise_options *o = setup->options;
    if (setup->shapes.is_loss)
        return lk_loss_backward(setup, run, &o->loss);
    const struct rows rows = cut_rows(setup);
    if (!run->dx[0])
        return LK_OK;
    return LK_ENQUEUE(state->backward, rows.grid,
                      LK_BUF(setup->shapes.backward_reads_x ? run->x[0] : run->y),
                      LK_BUF(run->dy), LK_BUF(run->dx[0]), LK_INT(rows.count),
                      LK_INT(rows.each), LK_REAL(o->alpha), LK_REAL(o->beta));
}

static void release_function(struct lk_op_setup *setup)
{
    if (setup->shapes.is_loss)
        lk_loss_release(setup);
    else
        release(setup);
}

static const struct lk_option options_none[] = {{0}};

#define ALPHA(standard_, most_, help_)                                                         \
    {                                                                                          \
        .name = "alpha", .kind = LK_OPTION_REAL,                                               \
        .offset = offsetof(struct lk_eltwise_options, alpha), .min = 0, .max = (most_),        \
        .standard = (standard_), .help = (help_)                                               \
    }

static const struct lk_option options_leaky_relu[] = {
    ALPHA("0.01", 1, "slope for negative x"),
    {0},
};

static const struct lk_option options_elu[] = {
    ALPHA("1", 1000, "-alpha is the value for x towards minus infinity"),
    {0},
};

static const struct lk_option options_hard_sigmoid[] = {
    ALPHA("0.2", 1000, "slope at 0"),
    {.name = "beta",
     .kind = LK_OPTION_REAL,
     .offset = offsetof(struct lk_eltwise_options, beta),
     .max = 1,
     .standard = "0.5",
     .help = "value at 0"},
    {0},
};

#define NUMBER(name_, field_, standard_, help_)                                                \
    {                                                                                          \
        .name = (name_), .kind = LK_OPTION_REAL,                                               \
        .offset = offsetof(struct lk_eltwise_options, field_), .min = -1e30, .max = 1e30,      \
        .standard = (standard_), .help = (help_)                                               \
    }

static const struct lk_option options_rescale[] = {
    NUMBER("scale", alpha, "1", "by which x is multiplied"),
    NUMBER("shift", beta, "0", "what is added then"),
    {0},
};

static const char *const losses[] = {"none", "binary_cross_entropy", NULL};
static const struct lk_option options_sigmoid[] = {
    {.name = "loss",
     .kind = LK_OPTION_CHOICE,
     .offset = offsetof(struct lk_eltwise_options, takes),
     .standard = "none",
     .choices = losses,
     .help = "with targets as second input: give loss and correctness instead"},
    LK_WEIGHT_OPTION(struct lk_eltwise_options, loss.weight),
    {0},
};

static bool absorb_sigmoid(void *options, const char *next, const char *next_options)
{
    struct lk_eltwise_options *o = options;
    if (strcmp(next, losses[BINARY_CROSS_ENTROPY]) != 0 || o->takes != NO_LOSS ||
        !lk_loss_take_weight(next_options, &o->loss.weight))
        return false;
    o->takes = BINARY_CROSS_ENTROPY;
    return true;
}

/* Only functions with the options of the sigmoid absorb a loss, which brings a second input. */
#define absorb_none NULL
#define absorb_leaky_relu NULL
#define absorb_elu NULL
#define absorb_hard_sigmoid NULL
#define absorb_rescale NULL
enum {
    INPUTS_none = 1,
    INPUTS_leaky_relu = 1,
    INPUTS_elu = 1,
    INPUTS_hard_sigmoid = 1,
    INPUTS_rescale = 1,
    INPUTS_sigmoid = 2
};

#define OPERATION(name_, reads_, set_, ...)                                                    \
    static enum lk_status infer_##name_(struct lk_op_shapes *shapes)                           \
    {                                                                                          \
        return infer_function(shapes, #name_, reads_);                                         \
    }                                                                                          \
    static enum lk_status prepare_##name_(struct lk_op_setup *setup)                           \
    {                                                                                          \
        return prepare_function(setup, "-DSELECTED=FUNCTION_" #name_);                         \
    }                                                                                          \
    const struct lk_op lk_op_##name_ = {                                                       \
        .name = #name_,                                                                        \
        .options = options_##set_,                                                             \
        .options_bytes = sizeof(struct lk_eltwise_options),                                    \
        .min_inputs = 1,                                                                       \
        .max_inputs = INPUTS_##set_,                                                           \
        .infer = infer_##name_,                                                                \
        .prepare = prepare_##name_,                                                            \
        .forward = forward_function,                                                           \
        .backward = backward_function,                                                         \
        .release = release_function,                                                           \
        .absorb = absorb_##set_,                                                               \
    };

LK_FUNCTIONS(OPERATION)

/* --- sums and products ----------------------------------------------------------------- */

static enum lk_status infer_equal(struct lk_op_shapes *shapes, const char *name)
{
    LK_TRY(check_inputs(shapes, name));
    shapes->y = shapes->x[0];
    shapes->flops = (double)(lk_shape_count(&shapes->y) * (shapes->inputs - 1));
    return LK_OK;
}

static enum lk_status enqueue_two(const struct lk_op_setup *setup, const struct lk_buffer *a,
                                  const struct lk_buffer *b, struct lk_buffer *to)
{
    const struct state *state = setup->state;
    const struct rows rows = cut_rows(setup);
    return LK_ENQUEUE(state->forward, rows.grid, LK_BUF(a), LK_BUF(b), LK_BUF(to),
                      LK_INT(rows.count), LK_INT(rows.each));
}

static enum lk_status infer_add(struct lk_op_shapes *shapes)
{
    shapes->scales = true;
    return infer_equal(shapes, "add");
}

static enum lk_status prepare_add(struct lk_op_setup *setup)
{
    return prepare_kernels(setup, "add_two", NULL, NULL);
}

static enum lk_status forward_add(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    LK_TRY(enqueue_two(setup, run->x[0], run->x[1], run->y));
    for (int i = 2; i < setup->shapes.inputs; i++)
        LK_TRY(enqueue_two(setup, run->y, run->x[i], run->y));
    return LK_OK;
}

static enum lk_status backward_add(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    for (int i = 0; i < setup->shapes.inputs; i++)
        if (run->dx[i])
            LK_TRY(lk_buffer_enqueue_copy(
                run->dy, run->dx[i],
                lk_tiled_bytes(&setup->tiling, &setup->shapes.y, lk_op_stored(setup))));
    return LK_OK;
}

const struct lk_op lk_op_add = {
    .name = "add",
    .options = options_none,
    .options_bytes = sizeof(struct lk_eltwise_options),
    .min_inputs = 2,
    .max_inputs = LK_MOST_INPUTS,
    .infer = infer_add,
    .prepare = prepare_add,
    .forward = forward_add,
    .backward = backward_add,
    .release = release,
};

static enum lk_status infer_multiply(struct lk_op_shapes *shapes)
{
    shapes->backward_reads_x = true;
    return infer_equal(shapes, "multiply");
}

static enum lk_status prepare_multiply(struct lk_op_setup *setup)
{
    return prepare_kernels(setup, "multiply_two", NULL, NULL);
}

static enum lk_status forward_multiply(const struct lk_op_setup *setup,
                                       const struct lk_op_run *run)
{
    return enqueue_two(setup, run->x[0], run->x[1], run->y);
}

static enum lk_status backward_multiply(const struct lk_op_setup *setup,
                                        const struct lk_op_run *run)
{
    for (int i = 0; i < 2; i++)
        if (run->dx[i])
            LK_TRY(enqueue_two(setup, run->dy, run->x[1 - i], run->dx[i]));
    return LK_OK;
}

const struct lk_op lk_op_multiply = {
    .name = "multiply",
    .options = options_none,
    .options_bytes = sizeof(struct lk_eltwise_options),
    .min_inputs = 2,
    .max_inputs = 2,
    .infer = infer_multiply,
    .prepare = prepare_multiply,
    .forward = forward_multiply,
    .backward = backward_multiply,
    .release = release,
};
