/* Picks time steps by the length of each sample: the last one, and all in reverse. */
#include "base/fail.h"
#include "ops/sequence/steps.h"

struct options {
    char none;
};

static const struct lk_option table[] = {{0}};

static enum lk_status infer_last(struct lk_op_shapes *shapes)
{
    LK_TRY(lk_steps_check(shapes, "last_step"));
    shapes->y = (struct lk_shape){1, {shapes->x[0].dim[1]}};
    shapes->scales = true;
    shapes->flops = (double)lk_shape_count(&shapes->y);
    return LK_OK;
}

static enum lk_status infer_reverse(struct lk_op_shapes *shapes)
{
    LK_TRY(lk_steps_check(shapes, "reverse_steps"));
    shapes->y = shapes->x[0];
    shapes->scales = true;
    shapes->flops = (double)lk_shape_count(&shapes->y);
    return LK_OK;
}

struct state {
    struct lk_kernel *forward, *backward;
};

static enum lk_status prepare(struct lk_op_setup *setup, const char *forward,
                              const char *backward)
{
    void *memory;
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct state), &memory));
    struct state *s = setup->state = memory;
    LK_TRY(lk_op_kernel(setup, "ops/sequence/reorder", forward, NULL, &s->forward));
    if (!setup->training || !setup->wants_dx[0])
        return LK_OK;
    return lk_op_kernel(setup, "ops/sequence/reorder", backward, NULL, &s->backward);
}

static enum lk_status prepare_last(struct lk_op_setup *setup)
{
    return prepare(setup, "last_forward", "last_backward");
}

/* Reversed twice is as it was: backward is forward. */
static enum lk_status prepare_reverse(struct lk_op_setup *setup)
{
    return prepare(setup, "reverse", "reverse");
}

/* A kernel that writes `steps` time steps. */
static enum lk_status enqueue(const struct lk_op_setup *setup, const struct lk_op_run *run,
                              struct lk_kernel *kernel, int64_t steps,
                              const struct lk_buffer *from, struct lk_buffer *to)
{
    const struct lk_shape *x = &setup->shapes.x[0];
    const int64_t each = setup->tiling.vector == 1 ? 1 : 8; /* time steps of a work-group */
    const struct lk_grid grid = {{lk_divide_up(steps, each), setup->tiling.tiles, 1},
                                 lk_op_items(setup)};
    return LK_ENQUEUE(kernel, grid, LK_BUF(from), LK_BUF(lk_steps_length(setup, run)),
                      LK_BUF(to), LK_INT(x->dim[0]), LK_INT(x->dim[1]), LK_INT(each));
}

static enum lk_status forward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct state *s = setup->state;
    const int64_t steps = setup->shapes.y.rank == 1 ? 1 : setup->shapes.y.dim[0];
    return enqueue(setup, run, s->forward, steps, run->x[0], run->y);
}

static enum lk_status backward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct state *s = setup->state;
    if (!run->dx[0])
        return LK_OK;
    return enqueue(setup, run, s->backward, setup->shapes.x[0].dim[0], run->dy, run->dx[0]);
}

#define OPERATION(name_, which_)                                                               \
    const struct lk_op lk_op_##name_ = {                                                       \
        .name = #name_,                                                                        \
        .options = table,                                                                      \
        .options_bytes = sizeof(struct options),                                               \
        .min_inputs = 1,                                                                       \
        .max_inputs = 2,                                                                       \
        .takes_length = true,                                                                  \
        .infer = infer_##which_,                                                               \
        .prepare = prepare_##which_,                                                           \
        .forward = forward,                                                                    \
        .backward = backward,                                                                  \
    }

OPERATION(last_step, last);
OPERATION(reverse_steps, reverse);
