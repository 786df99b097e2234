/* Sums, means, products, largest numbers and their places, along an axis. */
#include "base/fail.h"
#include "ops/op.h"
#include <stdio.h>

enum { EACH = 16, FIRST_PLACE = 6 };
static const char *const functions[] = {"sum",           "mean",           "largest",
                                        "smallest",      "product",        "log_sum_exp",
                                        "largest_place", "smallest_place", NULL};

struct options {
    int function;
    int64_t length, inner;
    bool last;
};

struct state {
    struct lk_kernel *forward, *backward;
};

static enum lk_status infer(struct lk_op_shapes *shapes)
{
    const struct options *o = shapes->options;
    const int64_t count = lk_shape_count(&shapes->x[0]);
    if (shapes->x_dtype[0] != LK_F32)
        return lk_fail(LK_E_SHAPE, "reduce: real numbers expected, found labels");
    if (count % o->length || count / o->length % o->inner)
        return lk_fail(LK_E_SHAPE, "reduce: %lld elements are no rows of %lld times %lld",
                       (long long)count, (long long)o->length, (long long)o->inner);
    shapes->y = (struct lk_shape){1, {count / o->length}};
    shapes->backward_reads_x = shapes->backward_reads_y = o->function < FIRST_PLACE;
    shapes->flops = (double)count;
    shapes->ends_steps = true;
    return LK_OK;
}

static enum lk_status prepare(struct lk_op_setup *setup)
{
    const struct options *o = setup->options;
    char text[64];
    void *memory;
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct state), &memory));
    struct state *s = setup->state = memory;
    snprintf(text, sizeof text, "-DFUNCTION=%d -DLAST=%d", o->function, o->last);
    LK_TRY(lk_op_kernel(setup, "ops/array/reduce", "reduce_forward", text, &s->forward));
    if (setup->training)
        LK_TRY(lk_op_kernel(setup, "ops/array/reduce", "reduce_backward", text, &s->backward));
    return LK_OK;
}

static enum lk_status forward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct options *o = setup->options;
    const struct state *s = setup->state;
    return LK_ENQUEUE(s->forward,
                      lk_op_grid(setup, setup->shapes.y.dim[0], EACH, setup->tiling.tiles),
                      LK_BUF(run->x[0]), LK_BUF(run->y), LK_INT(setup->shapes.y.dim[0]),
                      LK_INT(o->length), LK_INT(o->inner), LK_INT(EACH));
}

static enum lk_status backward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct options *o = setup->options;
    const struct state *s = setup->state;
    if (!run->dx[0])
        return LK_OK;
    return LK_ENQUEUE(
        s->backward, lk_op_grid(setup, setup->shapes.y.dim[0], EACH, setup->tiling.tiles),
        LK_BUF(run->x[0] ? run->x[0] : run->dy), LK_BUF(run->y ? run->y : run->dy),
        LK_BUF(run->dy), LK_BUF(run->dx[0]), LK_INT(setup->shapes.y.dim[0]), LK_INT(o->length),
        LK_INT(o->inner), LK_INT(EACH));
}

static const struct lk_option options[] = {
    {.name = "function",
     .kind = LK_OPTION_CHOICE,
     .offset = offsetof(struct options, function),
     .standard = "sum",
     .choices = functions,
     .help = "what becomes of the numbers along the axis"},
    {.name = "length",
     .kind = LK_OPTION_INT,
     .offset = offsetof(struct options, length),
     .min = 1,
     .max = 1 << 30,
     .help = "of the axis"},
    {.name = "inner",
     .kind = LK_OPTION_INT,
     .offset = offsetof(struct options, inner),
     .min = 1,
     .max = 1 << 30,
     .standard = "1",
     .help = "elements of all axes behind it"},
    {.name = "last",
     .kind = LK_OPTION_BOOL,
     .offset = offsetof(struct options, last),
     .standard = "false",
     .help = "of equal numbers the place of the last, not of the first"},
    {0},
};

const struct lk_op lk_op_reduce = {
    .name = "reduce",
    .options = options,
    .options_bytes = sizeof(struct options),
    .min_inputs = 1,
    .max_inputs = 1,
    .infer = infer,
    .prepare = prepare,
    .forward = forward,
    .backward = backward,
};
