/* Functions of one to three tensors, element by element: a row of the table each. */
#include "base/fail.h"
#include "ops/array/math_table.h"
#include "ops/op.h"
#include <stdio.h>

#define NAMED(name, inputs, low, high, value, da, db, dc, truth) #name,
#define COUNTED(name, inputs, low, high, value, da, db, dc, truth) (inputs),
static const char *const functions[] = {LK_MATH_ROWS(NAMED) NULL};
static const int operands[] = {LK_MATH_ROWS(COUNTED)};

struct options {
    int function;
    double alpha, beta;
};

struct state {
    struct lk_kernel *forward, *backward;
};

static enum lk_status infer(struct lk_op_shapes *shapes)
{
    const struct options *o = shapes->options;
    const int64_t count = lk_shape_count(&shapes->x[0]);
    if (shapes->inputs != operands[o->function])
        return lk_fail(LK_E_SHAPE, "math: %s takes %d inputs, not %d", functions[o->function],
                       operands[o->function], shapes->inputs);
    for (int i = 0; i < shapes->inputs; i++) {
        if (shapes->x_dtype[i] != LK_F32)
            return lk_fail(LK_E_SHAPE, "math: real numbers expected, found labels");
        if (lk_shape_count(&shapes->x[i]) != count)
            return lk_fail(LK_E_SHAPE, "math: inputs of %lld elements and of %lld",
                           (long long)count, (long long)lk_shape_count(&shapes->x[i]));
    }
    shapes->y = shapes->x[0];
    shapes->backward_reads_x = shapes->backward_reads_y = true;
    shapes->flops = (double)count;
    return LK_OK;
}

static enum lk_status prepare(struct lk_op_setup *setup)
{
    const struct options *o = setup->options;
    char text[64];
    void *memory;
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct state), &memory));
    struct state *s = setup->state = memory;
    snprintf(text, sizeof text, "-DSELECTED=FUNCTION_%s", functions[o->function]);
    LK_TRY(lk_op_kernel(setup, "ops/array/math", "math_forward", text, &s->forward));
    if (setup->training)
        LK_TRY(lk_op_kernel(setup, "ops/array/math", "math_backward", text, &s->backward));
    return LK_OK;
}

enum { EACH = 64 };

static enum lk_status forward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct options *o = setup->options;
    const struct state *s = setup->state;
    const struct lk_tiling *t = &setup->tiling;
    const int64_t count = lk_shape_count(&setup->shapes.y);
    const int inputs = setup->shapes.inputs;
    return LK_ENQUEUE(s->forward, lk_op_grid(setup, count, EACH, t->tiles), LK_BUF(run->x[0]),
                      LK_BUF(inputs > 1 ? run->x[1] : NULL),
                      LK_BUF(inputs > 2 ? run->x[2] : NULL), LK_BUF(run->y), LK_INT(count),
                      LK_INT(EACH), LK_REAL(o->alpha), LK_REAL(o->beta), LK_INT(run->samples),
                      LK_INT(t->shard_samples), LK_INT(t->shard_tiles));
}

static enum lk_status backward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct options *o = setup->options;
    const struct state *s = setup->state;
    const struct lk_tiling *t = &setup->tiling;
    const int64_t count = lk_shape_count(&setup->shapes.y);
    const int inputs = setup->shapes.inputs;
    return LK_ENQUEUE(s->backward, lk_op_grid(setup, count, EACH, t->tiles), LK_BUF(run->x[0]),
                      LK_BUF(inputs > 1 ? run->x[1] : NULL),
                      LK_BUF(inputs > 2 ? run->x[2] : NULL), LK_BUF(run->y), LK_BUF(run->dy),
                      LK_BUF(run->dx[0]), LK_BUF(inputs > 1 ? run->dx[1] : NULL),
                      LK_BUF(inputs > 2 ? run->dx[2] : NULL), LK_INT(count), LK_INT(EACH),
                      LK_REAL(o->alpha), LK_REAL(o->beta), LK_INT(run->samples),
                      LK_INT(t->shard_samples), LK_INT(t->shard_tiles));
}

#define NUMBER(name_, field_, standard_)                                                       \
    {                                                                                          \
        .name = (name_), .kind = LK_OPTION_REAL, .offset = offsetof(struct options, field_),   \
        .min = -3.5e38, .max = 3.5e38, .standard = (standard_),                                \
        .help = "a number of the function"                                                     \
    }

static const struct lk_option options[] = {
    {.name = "function",
     .kind = LK_OPTION_CHOICE,
     .offset = offsetof(struct options, function),
     .choices = functions,
     .help = "what is computed of each element"},
    NUMBER("alpha", alpha, "1"),
    NUMBER("beta", beta, "1"),
    {0},
};

const struct lk_op lk_op_math = {
    .name = "math",
    .options = options,
    .options_bytes = sizeof(struct options),
    .min_inputs = 1,
    .max_inputs = 3,
    .time = LK_TIME_OWN,
    .infer = infer,
    .prepare = prepare,
    .forward = forward,
    .backward = backward,
};
