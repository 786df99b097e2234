/* Values of whole arrays: constants among them, shapes, and all that only moves elements. */
#include "model/onnx_arrays/whole.h"

#include "base/fail.h"
#include "base/number.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ELEMENTS = 1 << 24 };

int64_t lk_whole_count(int rank, const int64_t *dim)
{
    int64_t count = 1;
    for (int i = 0; i < rank; i++) {
        if (dim[i] < 0 || (dim[i] && count > MOST_ELEMENTS / dim[i]))
            return -1;
        count *= dim[i];
    }
    return count;
}

void lk_whole_strides(int rank, const int64_t *dim, int64_t *stride)
{
    int64_t step = 1;
    for (int i = rank - 1; i >= 0; i--) {
        stride[i] = step;
        step *= dim[i];
    }
}

/* --- constants --------------------------------------------------------------------------- */

static enum lk_status check_numbers(const draft *d, const struct lk_onnx_tensor *tensor)
{
    for (int64_t i = 0; i < tensor->count; i++) {
        const double number = lk_onnx_real(tensor, i);
        if (lk_onnx_is_whole(tensor->type) && fabs(number) > MOST_ELEMENTS)
            return lk_onnx_fail(d, "whole numbers beyond 2^24 are not supported where they "
                                   "are computed with");
        if (tensor->type == LK_ONNX_DOUBLE && isfinite(number) && fabs(number) > 3.4e38)
            return lk_onnx_fail(d, "a number that float32 has not");
    }
    return LK_OK;
}

static enum lk_status add_constant(draft *d, const struct lk_onnx_tensor *tensor,
                                   bool is_trained, value *made)
{
    struct lk_onnx_tensor flat = *tensor;
    const char *options;
    if (!d->anchor)
        return lk_onnx_fail(d, "nothing that is computed is among its inputs");
    if (tensor->count < 1 || tensor->count > MOST_ELEMENTS)
        return lk_onnx_fail(d, "an array of %lld elements", (long long)tensor->count);
    LK_TRY(check_numbers(d, tensor));
    flat.rank = 1;
    flat.dim[0] = flat.count;
    LK_TRY(lk_onnx_text(d, &options, "count=%lld", (long long)flat.count));
    LK_TRY(is_trained ? lk_onnx_add(d, "constant", options, 1, d->anchor, made)
                      : lk_onnx_add_frozen(d, "constant", options, d->anchor, made));
    LK_TRY(lk_onnx_set(d, made, "value", &flat, true, 1));
    made->type = tensor->type;
    return lk_whole_reshape(d, made, tensor->rank, tensor->dim);
}

enum lk_status lk_whole_constant(draft *d, const struct lk_onnx_tensor *tensor, value *made)
{
    return add_constant(d, tensor, false, made);
}

enum lk_status lk_whole_numbers(draft *d, const float *numbers, int rank, const int64_t *dim,
                                value *made)
{
    const struct lk_onnx_tensor all = {.name = "",
                                       .type = LK_ONNX_FLOAT,
                                       .rank = 1,
                                       .dim = {lk_whole_count(rank, dim)},
                                       .count = lk_whole_count(rank, dim),
                                       .data = numbers};
    LK_TRY(lk_whole_constant(d, &all, made));
    return lk_whole_reshape(d, made, rank, dim);
}

enum lk_status lk_whole_number(draft *d, double number, value *made)
{
    const float one = (float)number;
    return lk_whole_numbers(d, &one, 0, NULL, made);
}

bool lk_whole_has(const draft *d, int index)
{
    return lk_onnx_input(d, index) != NULL;
}

static enum lk_status take_input(draft *d, int index, bool is_trained, value *x)
{
    const value *found = lk_onnx_input(d, index);
    if (!found)
        return lk_onnx_fail(d, "its input %d is left out", index);
    if (found->constant)
        return add_constant(d, found->constant, is_trained, x);
    *x = *found;
    return LK_OK;
}

enum lk_status lk_whole_input(draft *d, int index, value *x)
{
    return take_input(d, index, false, x);
}

enum lk_status lk_whole_weight(draft *d, int index, value *x)
{
    return take_input(d, index, true, x);
}

double lk_whole_say(const draft *d, const char *name, double standard)
{
    const struct lk_onnx_attribute *said = lk_onnx_find_attribute(d->node, name);
    return said && said->kind == LK_ONNX_REAL ? (double)said->real : standard;
}

/* --- shapes ------------------------------------------------------------------------------ */

enum lk_status lk_whole_reshape(const draft *d, value *x, int rank, const int64_t *dim)
{
    int64_t kept[LK_ONNX_AXES];
    if (rank < 0 || rank > LK_ONNX_AXES)
        return lk_onnx_fail(d, "%d axes, expected at most %d", rank, LK_ONNX_AXES);
    memcpy(kept, dim ? dim : kept, dim ? (size_t)rank * sizeof *dim : 0);
    const int64_t count = lk_shape_count(&x->node->shapes.y);
    if (lk_whole_count(rank, kept) != count)
        return lk_onnx_fail(d, "an array of %lld elements gets a shape of others",
                            (long long)count);
    x->rank = rank;
    x->is_last = false;
    memcpy(x->dim, kept, (size_t)rank * sizeof *kept);
    return LK_OK;
}

/* --- moving ------------------------------------------------------------------------------ */

/* Fills the table; *is_same: it moves nothing. */
static enum lk_status fill_table(const draft *d, int64_t inputs, int rank, const int64_t *dim,
                                 lk_whole_place *place, const void *how, float *table,
                                 bool *is_same)
{
    int64_t at[LK_ONNX_AXES] = {0};
    const int64_t count = lk_whole_count(rank, dim);
    *is_same = count == inputs;
    for (int64_t e = 0; e < count; e++) {
        const int64_t from = place(how, at);
        if (from >= inputs)
            return lk_onnx_fail(d, "it reads behind the end of its input");
        table[e] = from < 0 ? -1 : (float)from;
        *is_same &= from == e;
        for (int i = rank - 1; i >= 0 && ++at[i] == dim[i]; i--)
            at[i] = 0;
    }
    return LK_OK;
}

static enum lk_status add_pick(draft *d, const value *x, const float *table, int64_t count,
                               double fill, value *made)
{
    const struct lk_onnx_tensor index = {.name = "",
                                         .type = LK_ONNX_FLOAT,
                                         .rank = 1,
                                         .dim = {count},
                                         .count = count,
                                         .data = table};
    char text[40];
    const char *options;
    const double kept = fill > 3.4e38 ? 3.5e38 : fill < -3.4e38 ? -3.5e38 : fill;
    lk_number_print(kept, text, sizeof text);
    LK_TRY(lk_onnx_text(d, &options, "count=%lld fill=%s", (long long)count, text));
    LK_TRY(lk_onnx_add_frozen(d, "pick", options, x, made));
    return lk_onnx_set(d, made, "index", &index, true, 1);
}

enum lk_status lk_whole_move(draft *d, const value *x, int rank, const int64_t *dim,
                             lk_whole_place *place, const void *how, double fill, value *made)
{
    const value from = *x;
    int64_t kept[LK_ONNX_AXES] = {0};
    bool is_same = false;
    if (rank < 0 || rank > LK_ONNX_AXES)
        return lk_onnx_fail(d, "%d axes, expected at most %d", rank, LK_ONNX_AXES);
    for (int i = 0; i < rank; i++)
        kept[i] = dim[i];
    const int64_t count = lk_whole_count(rank, kept);
    if (count == 0)
        return lk_onnx_fail(d, "an array that is empty");
    if (count < 0)
        return lk_onnx_fail(d, "its elements are found by a table of places, which would have "
                               "more than 2^24; of fewer samples at a time it has less");
    float *table = malloc((size_t)count * sizeof *table);
    if (!table)
        return lk_fail_memory("a table of places", (size_t)count * sizeof *table);
    enum lk_status status = fill_table(d, lk_shape_count(&from.node->shapes.y), rank, kept,
                                       place, how, table, &is_same);
    if (status == LK_OK && is_same)
        *made = from;
    else if (status == LK_OK)
        status = add_pick(d, &from, table, count, fill, made);
    free(table);
    LK_TRY(status);
    made->type = from.type;
    made->known = NULL;
    return lk_whole_reshape(d, made, rank, kept);
}

struct strided {
    int rank;
    const int64_t *stride;
};

static int64_t strided_place(const void *how, const int64_t *at)
{
    const struct strided *s = how;
    int64_t place = 0;
    for (int i = 0; i < s->rank; i++)
        place += at[i] * s->stride[i];
    return place;
}

enum lk_status lk_whole_stride(draft *d, const value *x, int rank, const int64_t *dim,
                               const int64_t *stride, value *made)
{
    const struct strided s = {rank, stride};
    return lk_whole_move(d, x, rank, dim, strided_place, &s, 0, made);
}

enum lk_status lk_whole_order(draft *d, const value *x, const int *order, value *made)
{
    int64_t own[LK_ONNX_AXES], stride[LK_ONNX_AXES], dim[LK_ONNX_AXES];
    lk_whole_strides(x->rank, x->dim, own);
    for (int i = 0; i < x->rank; i++) {
        stride[i] = own[order[i]];
        dim[i] = x->dim[order[i]];
    }
    return lk_whole_stride(d, x, x->rank, dim, stride, made);
}

enum lk_status lk_whole_rows(draft *d, value *x, int axis, int order[LK_ONNX_AXES], value *rows)
{
    const int64_t n = x->dim[axis];
    for (int i = 0; i < x->rank; i++)
        order[i] = i;
    order[axis] = x->rank - 1;
    order[x->rank - 1] = axis;
    LK_TRY(lk_whole_order(d, x, order, x));
    *rows = *x;
    return lk_whole_reshape(d, rows, 2,
                            (const int64_t[]){lk_whole_count(x->rank, x->dim) / n, n});
}

enum lk_status lk_whole_expand(draft *d, const value *x, int rank, const int64_t *dim,
                               value *made)
{
    int64_t own[LK_ONNX_AXES], stride[LK_ONNX_AXES];
    if (x->rank > rank || rank > LK_ONNX_AXES)
        return lk_onnx_fail(d, "%d axes cannot be repeated to %d", x->rank, rank);
    lk_whole_strides(x->rank, x->dim, own);
    for (int i = 0; i < rank; i++) {
        const int from = i - (rank - x->rank);
        const int64_t length = from < 0 ? 1 : x->dim[from];
        if (length != 1 && length != dim[i])
            return lk_onnx_fail(d, "arrays of shapes that do not go together");
        stride[i] = length == 1 ? 0 : own[from];
    }
    return lk_whole_stride(d, x, rank, dim, stride, made);
}

enum lk_status lk_whole_join(draft *d, const value *x, int count, value *made)
{
    value parts[LK_MOST_INPUTS] = {{0}};
    int found = 0;
    int64_t all = 0;
    const enum lk_onnx_type type = x[0].type;
    for (int i = 0; i < count; i++) {
        value flat = x[i];
        all += lk_shape_count(&flat.node->shapes.y);
        if (flat.node->shapes.y.rank != 1)
            LK_TRY(lk_onnx_add(d, "flatten", "", 1, &x[i], &flat));
        if (found == LK_MOST_INPUTS) { /* as many as fit become one */
            LK_TRY(lk_onnx_add(d, "concat", "axis=c", found, parts, &parts[0]));
            found = 1;
        }
        parts[found++] = flat;
    }
    if (found > 1)
        LK_TRY(lk_onnx_add(d, "concat", "axis=c", found, parts, &parts[0]));
    *made = parts[0];
    made->known = NULL;
    made->type = type;
    return lk_whole_reshape(d, made, 1, &all);
}
