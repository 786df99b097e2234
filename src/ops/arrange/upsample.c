/* Enlarges an image by whole factors: by repeating pixels, or by lines between their centres.
 */
#include "base/fail.h"
#include "ops/args.h"
#include "ops/arrange/box.h"
#include <stdio.h>

enum { NEAREST, BILINEAR };
static const char *const interpolations[] = {"nearest", "bilinear", NULL};

struct options {
    int64_t size[2];
    int interpolation;
};

static const struct lk_option table[] = {
    {.name = "size",
     .kind = LK_OPTION_INT,
     .offset = offsetof(struct options, size),
     .count = 2,
     .min = 1,
     .max = 64,
     .standard = "2",
     .help = "by which factors, down and across"},
    {.name = "interpolation",
     .kind = LK_OPTION_CHOICE,
     .offset = offsetof(struct options, interpolation),
     .standard = "nearest",
     .choices = interpolations,
     .help = "nearest: every pixel repeated; bilinear: lines between the centres of pixels"},
    {0},
};

struct state {
    struct lk_kernel *forward, *backward;
};

static enum lk_status infer(struct lk_op_shapes *shapes)
{
    const struct options *o = shapes->options;
    LK_TRY(lk_op_check_image(shapes, "upsample"));
    struct lk_shape y = shapes->x[0];
    for (int i = 0; i < 2; i++)
        if (__builtin_mul_overflow(y.dim[1 + i], o->size[i], &y.dim[1 + i]))
            y.dim[1 + i] = INT64_MAX;
    return lk_arrange_set(shapes, &y, "upsample");
}

static enum lk_status prepare(struct lk_op_setup *setup)
{
    static const char *const names[][2] = {{"nearest_forward", "nearest_backward"},
                                           {"bilinear_forward", "bilinear_backward"}};
    const struct options *o = setup->options;
    const char *const *name = names[o->interpolation];
    char text[128];
    void *memory;
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct state), &memory));
    struct state *state = setup->state = memory;
    snprintf(text, sizeof text, "-DSIZE_H=%d -DSIZE_W=%d -DSTREAM=%d", (int)o->size[0],
             (int)o->size[1], lk_op_streams(setup, &setup->shapes.y));
    LK_TRY(lk_op_kernel(setup, "ops/arrange/upsample", name[0], text, &state->forward));
    if (setup->training)
        LK_TRY(lk_op_kernel(setup, "ops/arrange/upsample", name[1], text, &state->backward));
    return LK_OK;
}

/* A launch over the rows of the small image: a CPU's group takes a plane, a GPU's a row. */
static enum lk_status enqueue(const struct lk_op_setup *setup, struct lk_kernel *kernel,
                              const struct lk_buffer *from, struct lk_buffer *to)
{
    const int64_t *x = setup->shapes.x[0].dim;
    const int64_t each = setup->tiling.vector == 1 ? 1 : x[1];
    const struct lk_grid grid = {{lk_divide_up(x[1], each), x[0], setup->tiling.tiles},
                                 lk_op_items(setup)};
    return LK_ENQUEUE(kernel, grid, LK_BUF(from), LK_BUF(to), LK_INT(x[1]), LK_INT(x[2]),
                      LK_INT(each));
}

static enum lk_status forward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct state *state = setup->state;
    return enqueue(setup, state->forward, run->x[0], run->y);
}

static enum lk_status backward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct state *state = setup->state;
    if (!run->dx[0])
        return LK_OK;
    return enqueue(setup, state->backward, run->dy, run->dx[0]);
}

const struct lk_op lk_op_upsample = {
    .name = "upsample",
    .options = table,
    .options_bytes = sizeof(struct options),
    .min_inputs = 1,
    .max_inputs = 1,
    .infer = infer,
    .prepare = prepare,
    .forward = forward,
    .backward = backward,
};
