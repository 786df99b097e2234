/* Numbers that are the same for all samples: a parameter as an activation. What it reads only
 * says which samples there are. */
#include "base/fail.h"
#include "ops/op.h"

enum { EACH = 64 };

struct options {
    int64_t count;
};

struct state {
    struct lk_kernel *forward, *backward, *values;
};

static enum lk_status infer(struct lk_op_shapes *shapes)
{
    const struct options *o = shapes->options;
    if (shapes->x_dtype[0] != LK_F32)
        return lk_fail(LK_E_SHAPE, "constant: real numbers expected, found labels");
    shapes->y = (struct lk_shape){1, {o->count}};
    shapes->params = 1;
    shapes->param[0] =
        (struct lk_param_spec){.name = "value", .shape = shapes->y, .init = LK_INIT_ZEROS};
    shapes->ends_steps = true;
    return LK_OK;
}

static enum lk_status prepare(struct lk_op_setup *setup)
{
    static const char source[] = "ops/array/constant";
    void *memory;
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct state), &memory));
    struct state *s = setup->state = memory;
    LK_TRY(lk_op_kernel(setup, source, "constant_forward", NULL, &s->forward));
    if (setup->training && setup->wants_dx[0])
        LK_TRY(lk_op_kernel(setup, source, "constant_backward", NULL, &s->backward));
    if (setup->training && setup->wants_dw)
        LK_TRY(lk_op_kernel(setup, source, "constant_values", NULL, &s->values));
    return LK_OK;
}

static enum lk_status forward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct options *o = setup->options;
    const struct state *s = setup->state;
    return LK_ENQUEUE(s->forward, lk_op_grid(setup, o->count, EACH, setup->tiling.tiles),
                      LK_BUF(run->w[0]), LK_BUF(run->y), LK_INT(o->count), LK_INT(EACH));
}

static enum lk_status backward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct options *o = setup->options;
    const struct state *s = setup->state;
    const struct lk_tiling *t = &setup->tiling;
    const int64_t inputs = lk_shape_count(&setup->shapes.x[0]);
    if (run->dx[0])
        LK_TRY(LK_ENQUEUE(s->backward, lk_op_grid(setup, inputs, EACH, t->tiles),
                          LK_BUF(run->dx[0]), LK_INT(inputs), LK_INT(EACH)));
    if (!s->values || !run->dw[0])
        return LK_OK;
    return LK_ENQUEUE(s->values, lk_op_grid(setup, o->count, EACH, t->shards), LK_BUF(run->dy),
                      LK_BUF(run->dw[0]), LK_INT(o->count), LK_INT(EACH),
                      LK_INT(t->shard_tiles), LK_INT(run->dw_stride),
                      LK_LOCAL(t->lanes * (int64_t)lk_dtype_bytes(setup->real)));
}

static const struct lk_option options[] = {
    {.name = "count",
     .kind = LK_OPTION_INT,
     .offset = offsetof(struct options, count),
     .min = 1,
     .max = 1 << 30,
     .help = "how many numbers"},
    {0},
};

const struct lk_op lk_op_constant = {
    .name = "constant",
    .options = options,
    .options_bytes = sizeof(struct options),
    .min_inputs = 1,
    .max_inputs = 1,
    .infer = infer,
    .prepare = prepare,
    .forward = forward,
    .backward = backward,
};
