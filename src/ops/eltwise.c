/* Functions of every element: activations. */
#include "ops/eltwise.h"

#include "base/fail.h"
#include "ops/eltwise_table.h"
#include <stdio.h>
#include <string.h>

enum { NO_LOSS, BINARY_CROSS_ENTROPY };

struct state {
    struct lk_kernel *forward, *backward;
};

/* What backward needs of the forward pass. */
enum reads { READS_X, READS_Y };

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
    if (shapes->x_dtype[0] != LK_F32)
        return lk_fail(LK_E_SHAPE, "%s: real numbers expected, found labels", name);
    shapes->y = shapes->x[0];
    shapes->backward_reads_x = reads == READS_X;
    shapes->backward_reads_y = reads == READS_Y;
    shapes->flops = (double)lk_shape_count(&shapes->y);
    return LK_OK;
}

/* Where f is unbounded, an infinity of a dead lane times a gradient of 0 would be no number. */
static enum lk_status prepare_function(struct lk_op_setup *setup, const char *definition,
                                       bool is_unbounded)
{
    char text[64];
    if (setup->shapes.is_loss)
        return lk_loss_prepare(setup, loss_name);
    snprintf(text, sizeof text, "%s -DMASKED=%d", definition, setup->training && is_unbounded);
    return prepare_kernels(setup, "eltwise_forward", "eltwise_backward", text);
}

static enum lk_status forward_function(const struct lk_op_setup *setup,
                                       const struct lk_op_run *run)
{
    const struct state *state = setup->state;
    const struct lk_eltwise_options *o = setup->options;
    if (setup->shapes.is_loss)
        return lk_loss_forward(setup, run, &o->loss);
    const struct lk_op_rows rows = lk_op_rows(setup);
    const struct lk_tiling *t = &setup->tiling;
    return LK_ENQUEUE(state->forward, rows.grid, LK_BUF(run->x[0]), LK_BUF(run->y),
                      LK_INT(rows.count), LK_INT(rows.each), LK_REAL(o->alpha),
                      LK_REAL(o->beta), LK_INT(lk_shape_count(&setup->shapes.y)),
                      LK_INT(run->samples), LK_INT(t->shard_samples), LK_INT(t->shard_tiles));
}

static enum lk_status backward_function(const struct lk_op_setup *setup,
                                        const struct lk_op_run *run)
{
    const struct state *state = setup->state;
    const struct lk_eltwise_options *o = setup->options;
    if (setup->shapes.is_loss)
        return lk_loss_backward(setup, run, &o->loss);
    const struct lk_op_rows rows = lk_op_rows(setup);
    if (!run->dx[0])
        return LK_OK;
    return LK_ENQUEUE(state->backward, rows.grid,
                      LK_BUF(setup->shapes.backward_reads_x ? run->x[0] : run->y),
                      LK_BUF(run->dy), LK_BUF(run->dx[0]), LK_INT(rows.count),
                      LK_INT(rows.each), LK_REAL(o->alpha), LK_REAL(o->beta));
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

static const struct lk_option options_clipped_relu[] = {
    {.name = "slope",
     .kind = LK_OPTION_REAL,
     .offset = offsetof(struct lk_eltwise_options, alpha),
     .max = 1,
     .standard = "0",
     .help = "slope for negative x"},
    {.name = "max",
     .kind = LK_OPTION_REAL,
     .offset = offsetof(struct lk_eltwise_options, beta),
     .min = 1e-6,
     .max = 1e30,
     .standard = "6",
     .help = "what larger x become"},
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
#define absorb_clipped_relu NULL
#define absorb_elu NULL
#define absorb_hard_sigmoid NULL
#define absorb_rescale NULL
enum {
    INPUTS_none = 1,
    INPUTS_leaky_relu = 1,
    INPUTS_clipped_relu = 1,
    INPUTS_elu = 1,
    INPUTS_hard_sigmoid = 1,
    INPUTS_rescale = 1,
    INPUTS_sigmoid = 2
};

/* Behind the last pixel of a plane lie zeros, and what was made of them. All functions but exp
 * stay finite there, and an infinity times 0 would be a gradient. */
#define IS(name_, ...) IS_##name_,
enum { LK_FUNCTIONS(IS) };

#define OPERATION(name_, reads_, set_, ...)                                                    \
    static enum lk_status infer_##name_(struct lk_op_shapes *shapes)                           \
    {                                                                                          \
        return infer_function(shapes, #name_, reads_);                                         \
    }                                                                                          \
    static enum lk_status prepare_##name_(struct lk_op_setup *setup)                           \
    {                                                                                          \
        return prepare_function(setup, "-DSELECTED=FUNCTION_" #name_, IS_##name_ == IS_exp);   \
    }                                                                                          \
    const struct lk_op lk_op_##name_ = {                                                       \
        .name = #name_,                                                                        \
        .options = options_##set_,                                                             \
        .options_bytes = sizeof(struct lk_eltwise_options),                                    \
        .min_inputs = 1,                                                                       \
        .max_inputs = INPUTS_##set_,                                                           \
        .planes = LK_PLANES_OWN,                                                               \
        .trains_planes = IS_##name_ != IS_exp,                                                 \
        .time = LK_TIME_OWN,                                                                   \
        .infer = infer_##name_,                                                                \
        .prepare = prepare_##name_,                                                            \
        .forward = forward_function,                                                           \
        .backward = backward_function,                                                         \
        .absorb = absorb_##set_,                                                               \
    };

LK_FUNCTIONS(OPERATION)
