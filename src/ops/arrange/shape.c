/* The same numbers in another shape: views, for which no kernel runs. */
#include "base/fail.h"
#include "ops/op.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct options {
    char shape[64];
};

static enum lk_status check_real(const struct lk_op_shapes *shapes, const char *name)
{
    if (shapes->x_dtype[0] == LK_F32)
        return LK_OK;
    return lk_fail(LK_E_SHAPE, "%s: real numbers expected, found labels", name);
}

static enum lk_status infer_flatten(struct lk_op_shapes *shapes)
{
    LK_TRY(check_real(shapes, "flatten"));
    shapes->y = (struct lk_shape){1, {lk_shape_count(&shapes->x[0])}};
    return LK_OK;
}

/* "[16, -1]": the open axis, -1 where there is none, goes to *open. */
static enum lk_status parse_shape(const char *text, struct lk_shape *shape, int *open)
{
    const char *at = text + strspn(text, " [");
    *shape = (struct lk_shape){0};
    *open = -1;
    while (*at && !strchr("]", *at)) {
        char *end;
        errno = 0;
        const long long number = strtoll(at, &end, 10);
        if (end == at || errno || number == 0 || number < -1 || shape->rank == LK_MOST_AXES ||
            (number == -1 && *open >= 0))
            return lk_fail(LK_E_ARGUMENT,
                           "reshape: shape '%s' is not 1 to %d lengths, one of which may be -1",
                           text, LK_MOST_AXES);
        if (number == -1)
            *open = shape->rank;
        shape->dim[shape->rank++] = number == -1 ? 1 : number;
        at = end + strspn(end, " ,");
    }
    if (shape->rank == 0 || at[strspn(at, " ]")])
        return lk_fail(LK_E_ARGUMENT, "reshape: '%s' is not a shape such as [16, 5, 5]", text);
    return LK_OK;
}

static enum lk_status infer_reshape(struct lk_op_shapes *shapes)
{
    const struct options *o = shapes->options;
    const int64_t count = lk_shape_count(&shapes->x[0]);
    struct lk_shape y;
    char from[64];
    int open;
    LK_TRY(check_real(shapes, "reshape"));
    LK_TRY(parse_shape(o->shape, &y, &open));
    const int64_t given = lk_shape_count(&y);
    if (open >= 0 && given > 0)
        y.dim[open] = count / given;
    if (lk_shape_count(&y) != count) {
        lk_shape_print_hwc(&shapes->x[0], from, sizeof from);
        return lk_fail(LK_E_SHAPE, "reshape: %s has %lld elements, which %s cannot have", from,
                       (long long)count, o->shape);
    }
    shapes->y = y;
    shapes->ends_steps = true;
    return LK_OK;
}

static const struct lk_option flatten_options[] = {{0}};

static const struct lk_option reshape_options[] = {
    {.name = "shape",
     .kind = LK_OPTION_TEXT,
     .offset = offsetof(struct options, shape),
     .count = 64,
     .help = "lengths of a sample's axes, as in [16, 5, 5]; one may be -1: what is left"},
    {0},
};

const struct lk_op lk_op_flatten = {
    .name = "flatten",
    .options = flatten_options,
    .options_bytes = sizeof(struct options),
    .min_inputs = 1,
    .max_inputs = 1,
    .is_view = true,
    .infer = infer_flatten,
};

const struct lk_op lk_op_reshape = {
    .name = "reshape",
    .options = reshape_options,
    .options_bytes = sizeof(struct options),
    .min_inputs = 1,
    .max_inputs = 1,
    .is_view = true,
    .infer = infer_reshape,
};
