/* ONNX's operators that move values: other shapes, other orders of axes, parts, joins. */
#include "model/onnx/convert.h"

#include "base/fail.h"
#include <string.h>

/* --- shapes: only noted ------------------------------------------------------------------ */

/* The same numbers in the same order behind another shape, the batch first. */
static enum lk_status note(struct lk_onnx_draft *draft, const struct lk_onnx_value *x, int rank,
                           const int64_t *dim)
{
    struct lk_onnx_value made = *x;
    int64_t before = 1, behind = 1;
    if (rank < 2 || dim[0] != draft->batch)
        return lk_onnx_fail(draft, "the first axis is expected to stay the batch");
    for (int i = 1; i < x->rank; i++)
        before *= x->dim[i];
    for (int i = 1; i < rank; i++)
        behind *= dim[i] > 0 && behind <= before ? dim[i] : 0;
    if (behind != before)
        return lk_onnx_fail(draft, "%lld numbers of a sample become another number of them",
                            (long long)before);
    if (x->is_last && x->dim[3] != 1 && x->dim[1] * x->dim[2] != 1)
        return lk_onnx_fail(draft, "images with the channels last lie in another order here");
    made.is_last = false;
    made.rank = rank;
    memcpy(made.dim, dim, (size_t)rank * sizeof *dim);
    return lk_onnx_give(draft, 0, &made);
}

static enum lk_status reshape(struct lk_onnx_draft *draft)
{
    const struct lk_onnx_value *x;
    int64_t dim[LK_ONNX_AXES] = {0}, zeros, rest = 1, count = 1;
    int rank, open = -1;
    LK_TRY(lk_onnx_computed(draft, 0, &x));
    LK_TRY(lk_onnx_numbers(draft, "shape", 1, LK_ONNX_AXES, dim, &rank));
    LK_TRY(lk_onnx_say_integer(draft, "allowzero", 0, &zeros));
    for (int i = 1; i < x->rank; i++)
        count *= x->dim[i];
    for (int i = 0; i < rank; i++) {
        if (dim[i] == 0 && i < x->rank && !zeros)
            dim[i] = x->dim[i];
        if (dim[i] == -1 && open < 0)
            open = i;
        else if (i > 0 && (dim[i] < 1 || rest > count))
            return lk_onnx_fail(draft, "a shape that its input cannot have");
        else if (i > 0)
            rest *= dim[i];
    }
    if (open == 0)
        dim[0] = draft->batch;
    else if (open > 0)
        dim[open] = rest > 0 && rest <= count ? count / rest : 0;
    return note(draft, x, rank, dim);
}

static enum lk_status flatten(struct lk_onnx_draft *draft)
{
    const struct lk_onnx_value *x;
    int64_t axis, dim[2] = {draft->batch, 1};
    LK_TRY(lk_onnx_computed(draft, 0, &x));
    LK_TRY(lk_onnx_say_integer(draft, "axis", 1, &axis));
    if (axis != 1 && axis != 1 - x->rank)
        return lk_onnx_fail(draft, "'axis' is %lld, expected 1", (long long)axis);
    for (int i = 1; i < x->rank; i++)
        dim[1] *= x->dim[i];
    return note(draft, x, 2, dim);
}

static enum lk_status squeeze(struct lk_onnx_draft *draft)
{
    const struct lk_onnx_value *x;
    int64_t axes[LK_ONNX_AXES], dim[LK_ONNX_AXES];
    bool goes[LK_ONNX_AXES] = {0};
    int count, axis, rank = 0;
    LK_TRY(lk_onnx_computed(draft, 0, &x));
    LK_TRY(lk_onnx_numbers(draft, "axes", 1, LK_ONNX_AXES, axes, &count));
    for (int i = 0; i < count; i++) {
        LK_TRY(lk_onnx_axis(draft, axes[i], x->rank, &axis));
        goes[axis] = true;
    }
    for (int i = 0; i < x->rank; i++)
        if (i == 0 || !(count ? goes[i] : x->dim[i] == 1))
            dim[rank++] = x->dim[i];
    if (goes[0])
        return lk_onnx_fail(draft, "the batch is taken away");
    return note(draft, x, rank, dim);
}

static enum lk_status unsqueeze(struct lk_onnx_draft *draft)
{
    const struct lk_onnx_value *x;
    int64_t axes[LK_ONNX_AXES], dim[LK_ONNX_AXES];
    bool is_new[LK_ONNX_AXES] = {0};
    int count, axis, from = 0;
    LK_TRY(lk_onnx_computed(draft, 0, &x));
    LK_TRY(lk_onnx_numbers(draft, "axes", 1, LK_ONNX_AXES, axes, &count));
    const int rank = x->rank + count;
    for (int i = 0; i < count; i++) {
        LK_TRY(lk_onnx_axis(draft, axes[i], rank, &axis));
        if (is_new[axis] || axis == 0 || rank > LK_ONNX_AXES)
            return lk_onnx_fail(draft, "axis %d is not supported as a new one", axis);
        is_new[axis] = true;
    }
    for (int i = 0; i < rank; i++)
        dim[i] = is_new[i] ? 1 : x->dim[from++];
    return note(draft, x, rank, dim);
}

/* Between channels first and last, which is one order here; or of axes of length 1. */
static enum lk_status transpose(struct lk_onnx_draft *draft)
{
    const struct lk_onnx_value *x;
    int64_t order[LK_ONNX_AXES], dim[LK_ONNX_AXES];
    int last = 0, axis, seen = 0;
    bool keeps = true;
    LK_TRY(lk_onnx_computed(draft, 0, &x));
    if (!lk_onnx_find_attribute(draft->node, "perm"))
        return lk_onnx_fail(draft, "without 'perm' it moves the batch");
    LK_TRY(lk_onnx_say_list(draft, "perm", x->rank, 0, order));
    for (int i = 0; i < x->rank; i++) {
        LK_TRY(lk_onnx_axis(draft, order[i], x->rank, &axis));
        order[i] = axis;
        seen |= 1 << axis;
        dim[i] = x->dim[axis];
        if (dim[i] != 1) {
            keeps &= axis >= last;
            last = axis;
        }
    }
    if (seen != (1 << x->rank) - 1 || order[0] != 0)
        return lk_onnx_fail(draft, "'perm' is expected to leave the batch first");
    const int64_t second = x->rank == 4 ? order[1] : 0;
    const bool turns = x->rank == 4 && order[2] == second % 3 + 1 &&
                       order[3] == order[2] % 3 + 1 && second == (x->is_last ? 3 : 2);
    if (turns) {
        struct lk_onnx_value made = *x;
        made.is_last = !x->is_last;
        memcpy(made.dim, dim, sizeof made.dim);
        return lk_onnx_give(draft, 0, &made);
    }
    if (!keeps)
        return lk_onnx_fail(draft, "this order of axes is not supported");
    return note(draft, x, x->rank, dim);
}

static enum lk_status pass_on(struct lk_onnx_draft *draft)
{
    const struct lk_onnx_value *x;
    struct lk_onnx_value made;
    int64_t to;
    LK_TRY(lk_onnx_computed(draft, 0, &x));
    made = *x;
    if (strcmp(draft->node->op, "Cast") == 0) {
        LK_TRY(lk_onnx_say_integer(draft, "to", 0, &to));
        if (to != LK_ONNX_FLOAT && to != LK_ONNX_HALF && to != LK_ONNX_DOUBLE)
            return lk_onnx_fail(draft, "values become type %lld, expected floats",
                                (long long)to);
        if (lk_onnx_is_whole(made.type)) /* a condition, which is counted */
            made.type = LK_ONNX_FLOAT;
    }
    if (draft->node->output_count > 1 && *draft->node->outputs[1] &&
        lk_onnx_find(draft, draft->node->outputs[1])->readers > 0)
        return lk_onnx_fail(draft, "its second output is not supported");
    return lk_onnx_give(draft, 0, &made);
}

/* --- parts and joins --------------------------------------------------------------------- */

/* Our name of an axis of theirs; NULL: there is none. */
static const char *axis_name(const struct lk_onnx_value *x, int axis)
{
    static const char *const images[] = {NULL, "c", "h", "w"}, *const last[] = {NULL, "h", "w",
                                                                                "c"};
    static const char *const sequences[] = {NULL, "t", "c"}, *const vectors[] = {NULL, "c"};
    return x->rank == 4   ? (x->is_last ? last : images)[axis]
           : x->rank == 3 ? sequences[axis]
           : x->rank == 2 ? vectors[axis]
                          : NULL;
}

static enum lk_status concat(struct lk_onnx_draft *draft)
{
    struct lk_onnx_value x[LK_MOST_INPUTS];
    const struct lk_onnx_value *part;
    const char *options;
    int64_t said;
    int axis, count = 0;
    LK_TRY(lk_onnx_say_integer(draft, "axis", 1, &said));
    LK_TRY(lk_onnx_computed(draft, 0, &part));
    LK_TRY(lk_onnx_axis(draft, said, part->rank, &axis));
    const struct lk_onnx_value first = *part;
    const char *name = axis_name(&first, axis);
    if (!name)
        return lk_onnx_fail(draft, "along axis %d of %d it is not supported", axis, first.rank);
    LK_TRY(lk_onnx_text(draft, &options, "axis=%s", name));
    for (int i = 0; i < draft->node->input_count; i++) {
        LK_TRY(lk_onnx_computed(draft, i, &part));
        if (part->rank != first.rank || part->is_last != first.is_last)
            return lk_onnx_fail(draft, "its inputs have different axes");
        if (count == LK_MOST_INPUTS) { /* as many as fit become one */
            LK_TRY(lk_onnx_add(draft, "concat", options, count, x, &x[0]));
            count = 1;
        }
        LK_TRY(lk_onnx_settle(draft, part, &x[count++]));
    }
    if (count > 1)
        LK_TRY(lk_onnx_add(draft, "concat", options, count, x, &x[0]));
    return lk_onnx_give(draft, 0, &x[0]);
}

/* Part first..end of an axis becomes output `index`. */
static enum lk_status cut(struct lk_onnx_draft *draft, const struct lk_onnx_value *x, int axis,
                          int64_t first, int64_t end, struct lk_onnx_value *made)
{
    const char *options, *name = axis_name(x, axis);
    if (!name)
        return lk_onnx_fail(draft, "along axis %d of %d it is not supported", axis, x->rank);
    if (first < 0 || first >= end || end > x->dim[axis])
        return lk_onnx_fail(draft, "part %lld..%lld of an axis of %lld", (long long)first,
                            (long long)end, (long long)x->dim[axis]);
    LK_TRY(lk_onnx_text(draft, &options, "%s=[%lld, %lld]", name, (long long)first,
                        (long long)(end == x->dim[axis] ? 0 : end)));
    return lk_onnx_add(draft, "slice", options, 1, x, made);
}

static enum lk_status slice(struct lk_onnx_draft *draft)
{
    const struct lk_onnx_value *x;
    struct lk_onnx_value made;
    int64_t starts[LK_ONNX_AXES], ends[LK_ONNX_AXES], axes[LK_ONNX_AXES], steps[LK_ONNX_AXES];
    int count, end_count, axis_count, step_count, axis;
    LK_TRY(lk_onnx_computed(draft, 0, &x));
    LK_TRY(lk_onnx_numbers(draft, "starts", 1, LK_ONNX_AXES, starts, &count));
    LK_TRY(lk_onnx_numbers(draft, "ends", 2, LK_ONNX_AXES, ends, &end_count));
    LK_TRY(lk_onnx_numbers(draft, "axes", 3, LK_ONNX_AXES, axes, &axis_count));
    LK_TRY(lk_onnx_numbers(draft, "steps", 4, LK_ONNX_AXES, steps, &step_count));
    if (end_count != count || (axis_count && axis_count != count) ||
        (step_count && step_count != count))
        return lk_onnx_fail(draft, "lists of different lengths");
    LK_TRY(lk_onnx_settle(draft, x, &made));
    for (int i = 0; i < count; i++) {
        LK_TRY(lk_onnx_axis(draft, axis_count ? axes[i] : i, made.rank, &axis));
        if (step_count && steps[i] != 1)
            return lk_onnx_fail(draft, "steps of %lld are not supported", (long long)steps[i]);
        const int64_t length = made.dim[axis];
        int64_t first = starts[i] < 0 ? starts[i] + length : starts[i];
        int64_t end = ends[i] < 0 ? ends[i] + length : ends[i] > length ? length : ends[i];
        if (axis == 0 && starts[i] == 0 && ends[i] >= (length < 0 ? INT32_MAX : length))
            continue;
        first = first < 0 ? 0 : first;
        if (first > 0 || end < length)
            LK_TRY(cut(draft, &made, axis, first, end, &made));
    }
    return lk_onnx_give(draft, 0, &made);
}

static enum lk_status split(struct lk_onnx_draft *draft)
{
    enum { MOST = 64 };
    const struct lk_onnx_value *x;
    struct lk_onnx_value settled, made;
    int64_t said, lengths[MOST], first = 0;
    int axis, count;
    const int parts = draft->node->output_count;
    LK_TRY(lk_onnx_computed(draft, 0, &x));
    LK_TRY(lk_onnx_say_integer(draft, "axis", 0, &said));
    LK_TRY(lk_onnx_axis(draft, said, x->rank, &axis));
    LK_TRY(lk_onnx_numbers(draft, "split", 1, MOST, lengths, &count));
    if (parts < 1 || parts > MOST || (count && count != parts))
        return lk_onnx_fail(draft, "%d parts, but %d lengths", parts, count);
    LK_TRY(lk_onnx_settle(draft, x, &settled));
    const int64_t each = (settled.dim[axis] + parts - 1) / parts;
    for (int i = 0; i < parts; i++) {
        const int64_t rest = settled.dim[axis] - first;
        const int64_t length = count ? lengths[i] : each < rest ? each : rest;
        if (length < 1 || length > rest)
            return lk_onnx_fail(draft, "parts that are longer than the axis, or empty");
        LK_TRY(cut(draft, &settled, axis, first, first + length, &made));
        LK_TRY(lk_onnx_give(draft, i, &made));
        first += length;
    }
    return LK_OK;
}

/* Some channels of an image, in any order. */
static enum lk_status gather(struct lk_onnx_draft *draft)
{
    const struct lk_onnx_value *x;
    struct lk_onnx_value settled, parts[LK_MOST_INPUTS];
    const struct lk_onnx_tensor *which;
    int64_t said;
    int axis;
    x = lk_onnx_input(draft, 0);
    if (x && x->constant)
        return lk_onnx_fail(draft, "rows of a constant table for tokens of an input, or some "
                                   "channels of an image, are expected");
    LK_TRY(lk_onnx_computed(draft, 0, &x));
    LK_TRY(lk_onnx_constant(draft, 1, &which));
    LK_TRY(lk_onnx_say_integer(draft, "axis", 0, &said));
    LK_TRY(lk_onnx_axis(draft, said, x->rank, &axis));
    if (x->rank != 4 || axis != (x->is_last ? 3 : 1) || !which || which->rank != 1 ||
        which->count < 1 || which->count > LK_MOST_INPUTS)
        return lk_onnx_fail(draft, "some channels of an image are expected");
    LK_TRY(lk_onnx_settle(draft, x, &settled));
    for (int i = 0; i < which->count; i++) {
        const int64_t place = lk_onnx_integer(which, i), length = settled.dim[axis];
        const int64_t from = place < 0 ? place + length : place < length ? place : length;
        LK_TRY(cut(draft, &settled, axis, from, from + 1, &parts[i]));
    }
    if (which->count > 1)
        LK_TRY(lk_onnx_add(draft, "concat", "axis=c", (int)which->count, parts, &parts[0]));
    return lk_onnx_give(draft, 0, &parts[0]);
}

/* Of images, round height and width. */
static enum lk_status pad(struct lk_onnx_draft *draft)
{
    struct lk_onnx_value x, made;
    const struct lk_onnx_tensor *value;
    const char *mode, *options;
    int64_t pads[8];
    int count, axes;
    double number;
    LK_TRY(lk_onnx_image(draft, 0, &x));
    LK_TRY(lk_onnx_say_text(draft, "mode", "constant", &mode));
    LK_TRY(lk_onnx_numbers(draft, "pads", 1, 8, pads, &count));
    LK_TRY(lk_onnx_constant(draft, 2, &value));
    LK_TRY(lk_onnx_say_real(draft, "value", 0, &number));
    LK_TRY(lk_onnx_numbers(draft, "axes", 3, 0, NULL, &axes));
    if (value)
        number = value->count == 1 ? lk_onnx_real(value, 0) : 1;
    const bool reflects = strcmp(mode, "reflect") == 0;
    if (count != 8 || pads[0] || pads[1] || pads[4] || pads[5] || (number != 0 && !reflects) ||
        (!reflects && strcmp(mode, "constant") != 0))
        return lk_onnx_fail(draft, "zeros, or 'reflect', round height and width are supported");
    for (int i = 0; i < 8; i++)
        if (pads[i] < 0 || pads[i] > 1 << 20)
            return lk_onnx_fail(draft, "%lld pixels of padding", (long long)pads[i]);
    LK_TRY(lk_onnx_text(draft, &options, "padding=[%lld, %lld, %lld, %lld]%s",
                        (long long)pads[2], (long long)pads[6], (long long)pads[3],
                        (long long)pads[7], reflects ? " mode=reflect" : ""));
    LK_TRY(lk_onnx_add(draft, "pad", options, 1, &x, &made));
    return lk_onnx_give(draft, 0, &made);
}

const struct lk_onnx_operator lk_onnx_arrangements[] = {
    {"Reshape", reshape, LK_ONNX_KNOWS("shape", "allowzero")},
    {"Flatten", flatten, LK_ONNX_KNOWS("axis")},
    {"Squeeze", squeeze, LK_ONNX_KNOWS("axes")},
    {"Unsqueeze", unsqueeze, LK_ONNX_KNOWS("axes")},
    {"Transpose", transpose, LK_ONNX_KNOWS("perm")},
    {"Identity", pass_on, LK_ONNX_KNOWS(NULL)},
    {"Dropout", pass_on, LK_ONNX_KNOWS("ratio", "seed", "is_test")},
    {"Cast", pass_on, LK_ONNX_KNOWS("to", "saturate", "round_mode")},
    {"Concat", concat, LK_ONNX_KNOWS("axis")},
    {"Slice", slice, LK_ONNX_KNOWS("starts", "ends", "axes")},
    {"Split", split, LK_ONNX_KNOWS("axis", "split", "num_outputs")},
    {"Gather", gather, LK_ONNX_KNOWS("axis")},
    {"Pad", pad, LK_ONNX_KNOWS("mode", "pads", "value")},
    {0},
};
