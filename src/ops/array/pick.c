/* Elements of each sample by a table of their places, which is a parameter: any order of axes,
 * part, repetition and padding of arrays whose shapes are known. */
#include "base/fail.h"
#include "ops/op.h"

enum { EACH = 64, MOST_ELEMENTS = 1 << 24 /* whole numbers that a float has */ };

struct options {
    int64_t count;
    double fill;
};

struct state {
    struct lk_kernel *forward, *backward, *index;
};

static enum lk_status infer(struct lk_op_shapes *shapes)
{
    const struct options *o = shapes->options;
    if (shapes->x_dtype[0] != LK_F32)
        return lk_fail(LK_E_SHAPE, "pick: real numbers expected, found labels");
    if (lk_shape_count(&shapes->x[0]) > MOST_ELEMENTS)
        return lk_fail(LK_E_SHAPE, "pick: of %lld elements, expected at most %d",
                       (long long)lk_shape_count(&shapes->x[0]), MOST_ELEMENTS);
    shapes->y = (struct lk_shape){1, {o->count}};
    shapes->params = 1;
    shapes->param[0] =
        (struct lk_param_spec){.name = "index", .shape = shapes->y, .init = LK_INIT_ZEROS};
    shapes->ends_steps = true;
    return LK_OK;
}

static enum lk_status prepare(struct lk_op_setup *setup)
{
    static const char source[] = "ops/array/pick";
    void *memory;
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct state), &memory));
    struct state *s = setup->state = memory;
    LK_TRY(lk_op_kernel(setup, source, "pick_forward", NULL, &s->forward));
    if (setup->training && setup->wants_dx[0])
        LK_TRY(lk_op_kernel(setup, source, "pick_backward", NULL, &s->backward));
    if (setup->training && setup->wants_dw)
        LK_TRY(lk_op_kernel(setup, source, "pick_index", NULL, &s->index));
    return LK_OK;
}

static enum lk_status forward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct options *o = setup->options;
    const struct state *s = setup->state;
    return LK_ENQUEUE(s->forward, lk_op_grid(setup, o->count, EACH, setup->tiling.tiles),
                      LK_BUF(run->x[0]), LK_BUF(run->w[0]), LK_BUF(run->y),
                      LK_INT(lk_shape_count(&setup->shapes.x[0])), LK_INT(o->count),
                      LK_INT(EACH), LK_REAL(o->fill));
}

static enum lk_status backward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct options *o = setup->options;
    const struct state *s = setup->state;
    const int64_t inputs = lk_shape_count(&setup->shapes.x[0]);
    if (s->index && run->dw[0])
        LK_TRY(LK_ENQUEUE(s->index, lk_op_grid(setup, o->count, EACH, setup->tiling.shards),
                          LK_BUF(run->dw[0]), LK_INT(o->count), LK_INT(EACH),
                          LK_INT(run->dw_stride)));
    if (!run->dx[0])
        return LK_OK;
    return LK_ENQUEUE(s->backward, lk_op_grid(setup, inputs, EACH, setup->tiling.tiles),
                      LK_BUF(run->dy), LK_BUF(run->w[0]), LK_BUF(run->dx[0]), LK_INT(inputs),
                      LK_INT(o->count), LK_INT(EACH));
}

static const struct lk_option options[] = {
    {.name = "count",
     .kind = LK_OPTION_INT,
     .offset = offsetof(struct options, count),
     .min = 1,
     .max = MOST_ELEMENTS,
     .help = "elements of the result"},
    {.name = "fill",
     .kind = LK_OPTION_REAL,
     .offset = offsetof(struct options, fill),
     .min = -3.5e38,
     .max = 3.5e38,
     .standard = "0",
     .help = "what stands where the table names no element"},
    {0},
};

const struct lk_op lk_op_pick = {
    .name = "pick",
    .options = options,
    .options_bytes = sizeof(struct options),
    .min_inputs = 1,
    .max_inputs = 1,
    .infer = infer,
    .prepare = prepare,
    .forward = forward,
    .backward = backward,
};
