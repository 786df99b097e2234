/* Puts several tensors together along one axis. */
#include "base/fail.h"
#include "ops/arrange/box.h"

struct options {
    int axis;
};

static const struct lk_option table[] = {
    {.name = "axis",
     .kind = LK_OPTION_CHOICE,
     .offset = offsetof(struct options, axis),
     .standard = "c",
     .choices = lk_axis_words,
     .help = "along which the inputs are put: c channels, h height, w width, t time steps"},
    {0},
};

/* Input i has the rank of the first one, and its lengths but for `axis`. */
static bool fits(const struct lk_op_shapes *shapes, int i, int axis)
{
    struct lk_shape x = shapes->x[i];
    if (x.rank != shapes->x[0].rank)
        return false;
    x.dim[axis] = shapes->x[0].dim[axis];
    return lk_shape_equal(&x, &shapes->x[0]);
}

static enum lk_status infer(struct lk_op_shapes *shapes)
{
    const struct options *o = shapes->options;
    char first[64], other[64];
    LK_TRY(lk_arrange_check(shapes, 0, "concat"));
    struct lk_shape y = shapes->x[0];
    const int axis = lk_axis_find(&y, o->axis);
    lk_shape_print_hwc(&y, first, sizeof first);
    if (axis < 0)
        return lk_fail(LK_E_SHAPE, "concat: %s has no axis %s", first, lk_axis_words[o->axis]);
    for (int i = 1; i < shapes->inputs; i++) {
        LK_TRY(lk_arrange_check(shapes, i, "concat"));
        lk_shape_print_hwc(&shapes->x[i], other, sizeof other);
        if (!fits(shapes, i, axis))
            return lk_fail(
                LK_E_SHAPE,
                "concat: inputs that differ along %s alone expected, found %s and %s",
                lk_axis_words[o->axis], first, other);
        if (__builtin_add_overflow(y.dim[axis], shapes->x[i].dim[axis], &y.dim[axis]))
            y.dim[axis] = INT64_MAX;
    }
    return lk_arrange_set(shapes, &y, "concat");
}

/* Where input i begins within y. */
static void find_place(const struct lk_op_setup *setup, int i, int64_t at[LK_MOST_AXES])
{
    const struct options *o = setup->options;
    const int axis = lk_axis_find(&setup->shapes.y, o->axis);
    for (int j = 0; j < LK_MOST_AXES; j++)
        at[j] = 0;
    while (--i >= 0)
        at[axis] += setup->shapes.x[i].dim[axis];
}

static enum lk_status forward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    int64_t at[LK_MOST_AXES];
    for (int i = 0; i < setup->shapes.inputs; i++) {
        find_place(setup, i, at);
        const struct lk_box box = lk_box_into(&setup->shapes.x[i], &setup->shapes.y, at);
        LK_TRY(lk_box_enqueue(setup, &box, run->x[i], run->y, 0));
    }
    return LK_OK;
}

static enum lk_status backward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    int64_t at[LK_MOST_AXES];
    for (int i = 0; i < setup->shapes.inputs; i++) {
        find_place(setup, i, at);
        const struct lk_box box = lk_box_out_of(&setup->shapes.y, &setup->shapes.x[i], at);
        if (run->dx[i])
            LK_TRY(lk_box_enqueue(setup, &box, run->dy, run->dx[i], 0));
    }
    return LK_OK;
}

const struct lk_op lk_op_concat = {
    .name = "concat",
    .options = table,
    .options_bytes = sizeof(struct options),
    .min_inputs = 2,
    .max_inputs = LK_MOST_INPUTS,
    .planes = LK_PLANES_OWN,
    .trains_planes = true,
    .time = LK_TIME_OWN,
    .infer = infer,
    .prepare = lk_box_prepare,
    .forward = forward,
    .backward = backward,
};
