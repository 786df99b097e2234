/* Parts, repetitions and products of constants. */
#include "model/onnx/fold.h"

#include "base/fail.h"
#include <string.h>

/* An element of the result for each place, by steps through x. */
static enum lk_status walk(struct lk_onnx_draft *draft, const struct lk_onnx_tensor *x,
                           int64_t first, int rank, const int64_t *dim, const int64_t *step,
                           int output)
{
    int64_t at[LK_ONNX_AXES] = {0};
    struct lk_onnx_tensor *made;
    LK_TRY(lk_onnx_new_tensor(draft, x->type, rank, dim, &made));
    for (int64_t e = 0; e < made->count; e++) {
        int64_t from = first;
        for (int i = 0; i < rank; i++)
            from += at[i] * step[i];
        lk_onnx_copy_element(made, e, x, from);
        for (int i = rank - 1; i >= 0 && ++at[i] == dim[i]; i--)
            at[i] = 0;
    }
    return lk_onnx_give(draft, output, &(struct lk_onnx_value){.constant = made});
}

static void find_strides(const struct lk_onnx_tensor *x, int64_t *stride)
{
    int64_t step = 1;
    for (int i = x->rank - 1; i >= 0; i--) {
        stride[i] = step;
        step *= x->dim[i];
    }
}

static int64_t within(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

/* As Python cuts lists. */
enum lk_status lk_onnx_fold_slice(struct lk_onnx_draft *draft, const struct lk_onnx_tensor *x)
{
    static const char *const names[] = {"starts", "ends", "axes", "steps"};
    int64_t said[4][LK_ONNX_AXES], dim[LK_ONNX_AXES], stride[LK_ONNX_AXES], first = 0;
    int count[4], axis;
    unsigned seen = 0;
    for (int i = 0; i < 4; i++)
        LK_TRY(lk_onnx_numbers(draft, names[i], 1 + i, LK_ONNX_AXES, said[i], &count[i]));
    if (count[1] != count[0] || (count[2] && count[2] != count[0]) ||
        (count[3] && count[3] != count[0]))
        return lk_onnx_fail(draft, "lists of different lengths");
    find_strides(x, stride);
    memcpy(dim, x->dim, sizeof dim);
    for (int i = 0; i < count[0]; i++) {
        LK_TRY(lk_onnx_axis(draft, count[2] ? said[2][i] : i, x->rank, &axis));
        const int64_t length = x->dim[axis], step = count[3] ? said[3][i] : 1;
        if (step == 0 || step > INT32_MAX || step < -INT32_MAX || seen >> axis & 1 ||
            lk_onnx_share_of(said[0][i]) || lk_onnx_share_of(said[1][i]))
            return lk_onnx_fail(draft, "steps of %lld, or a part as long as the batch",
                                (long long)step);
        seen |= 1u << axis;
        const int64_t low = step < 0 ? -1 : 0, high = step < 0 ? length - 1 : length;
        const int64_t start = said[0][i] < 0 ? said[0][i] + length : said[0][i];
        const int64_t end = said[1][i] < 0 ? said[1][i] + length : said[1][i];
        const int64_t from = within(start, low, high), to = within(end, low, high);
        const int64_t room = step < 0 ? from - to : to - from, each = step < 0 ? -step : step;
        dim[axis] = room > 0 ? (room + each - 1) / each : 0;
        first += from * stride[axis];
        stride[axis] *= step;
    }
    return walk(draft, x, first, x->rank, dim, stride, 0);
}

enum lk_status lk_onnx_fold_split(struct lk_onnx_draft *draft, const struct lk_onnx_tensor *x)
{
    enum { MOST = 64 };
    int64_t said, lengths[MOST], dim[LK_ONNX_AXES], stride[LK_ONNX_AXES], first = 0;
    int axis, count;
    const int parts = draft->node->output_count;
    LK_TRY(lk_onnx_say_integer(draft, "axis", 0, &said));
    LK_TRY(lk_onnx_axis(draft, said, x->rank, &axis));
    LK_TRY(lk_onnx_numbers(draft, "split", 1, MOST, lengths, &count));
    if (parts < 1 || parts > MOST || (count && count != parts))
        return lk_onnx_fail(draft, "%d parts, but %d lengths", parts, count);
    find_strides(x, stride);
    memcpy(dim, x->dim, sizeof dim);
    const int64_t each = (x->dim[axis] + parts - 1) / parts;
    for (int i = 0; i < parts; i++) {
        const int64_t rest = x->dim[axis] - first;
        dim[axis] = count ? lengths[i] : each < rest ? each : rest;
        if (dim[axis] < 0 || dim[axis] > rest)
            return lk_onnx_fail(draft, "parts that are longer than the axis");
        LK_TRY(walk(draft, x, first * stride[axis], x->rank, dim, stride, i));
        first += dim[axis];
    }
    return LK_OK;
}

/* Along the batch nothing is repeated: one sample is computed. */
enum lk_status lk_onnx_fold_expand(struct lk_onnx_draft *draft, const struct lk_onnx_tensor *x)
{
    int64_t dim[LK_ONNX_AXES], said[LK_ONNX_AXES], own[LK_ONNX_AXES], step[LK_ONNX_AXES];
    int count;
    LK_TRY(lk_onnx_numbers(draft, "shape", 1, LK_ONNX_AXES, said, &count));
    const int rank = count > x->rank ? count : x->rank;
    find_strides(x, own);
    for (int i = 0; i < rank; i++) {
        const int from = i - (rank - x->rank), asked = i - (rank - count);
        const int64_t length = from < 0 ? 1 : x->dim[from];
        const int64_t wanted = asked < 0 ? 1 : lk_onnx_number_of_one(said[asked]);
        if (length != 1 && wanted != 1 && length != wanted)
            return lk_onnx_fail(draft, "a constant gets a shape that it cannot have");
        dim[i] = length == 1 ? wanted : length;
        step[i] = length == 1 ? 0 : own[from];
    }
    return walk(draft, x, 0, rank, dim, step, 0);
}

/* An element of x for each index, along an axis. */
enum lk_status lk_onnx_fold_elements(struct lk_onnx_draft *draft,
                                     const struct lk_onnx_tensor *x)
{
    int64_t said, stride[LK_ONNX_AXES], at[LK_ONNX_AXES] = {0};
    int axis;
    struct lk_onnx_tensor *made;
    const struct lk_onnx_value *which = lk_onnx_input(draft, 1);
    LK_TRY(lk_onnx_say_integer(draft, "axis", 0, &said));
    LK_TRY(lk_onnx_axis(draft, said, x->rank, &axis));
    if (!which || which->constant->rank != x->rank)
        return lk_onnx_fail(draft, "indices of as many axes are expected");
    const struct lk_onnx_tensor *index = which->constant;
    for (int i = 0; i < x->rank; i++)
        if (i != axis && index->dim[i] > x->dim[i])
            return lk_onnx_fail(draft, "indices of a shape that does not fit");
    find_strides(x, stride);
    LK_TRY(lk_onnx_new_tensor(draft, x->type, x->rank, index->dim, &made));
    for (int64_t e = 0; e < made->count; e++) {
        int64_t from = 0, place = lk_onnx_integer(index, e);
        place += place < 0 ? x->dim[axis] : 0;
        if (place < 0 || place >= x->dim[axis])
            return lk_onnx_fail(draft, "index %lld of an axis of %lld", (long long)place,
                                (long long)x->dim[axis]);
        for (int i = 0; i < x->rank; i++)
            from += (i == axis ? place : at[i]) * stride[i];
        lk_onnx_copy_element(made, e, x, from);
        for (int i = x->rank - 1; i >= 0 && ++at[i] == index->dim[i]; i--)
            at[i] = 0;
    }
    return lk_onnx_give_constant(draft, made);
}

enum lk_status lk_onnx_fold_product(struct lk_onnx_draft *draft, const struct lk_onnx_tensor *x)
{
    int64_t keeps, axes[LK_ONNX_AXES], all = 1, one = 1;
    int count, open = 0;
    struct lk_onnx_tensor *made;
    LK_TRY(lk_onnx_say_integer(draft, "keepdims", 1, &keeps));
    LK_TRY(lk_onnx_numbers(draft, "axes", 1, LK_ONNX_AXES, axes, &count));
    if (x->rank != 1 || !lk_onnx_is_whole(x->type) || count > 1 ||
        lk_onnx_find_attribute(draft->node, "noop_with_empty_axes"))
        return lk_onnx_fail(draft, "of constants, a list of lengths is expected");
    for (int64_t i = 0; i < x->count; i++) {
        const int64_t number = lk_onnx_integer(x, i), part = lk_onnx_number_of_one(number);
        open += lk_onnx_share_of(number) > 0;
        if (part < 0 || open > 1 || (part && all > (1 << 24) / part))
            return lk_onnx_fail(draft, "a product that is no length");
        all *= part;
    }
    LK_TRY(lk_onnx_new_tensor(draft, x->type, keeps ? 1 : 0, &one, &made));
    lk_onnx_put_integer(made, 0, open ? LK_ONNX_OPEN + all - 1 : all);
    return lk_onnx_give_constant(draft, made);
}
