/* Operators that give values other shapes: no number moves, and the axis of samples is found
 * again by what comes before it. */
#include "model/onnx_samples/samples.h"

#include "base/fail.h"
#include <string.h>

static int64_t product(const int64_t *dim, int count)
{
    int64_t all = 1;
    for (int i = 0; i < count; i++) {
        if (dim[i] < 0 || (dim[i] && all > (1 << 24) / dim[i]))
            return -1;
        all *= dim[i];
    }
    return all;
}

/* Input 0 as one sample has it. Tokens stay tokens. */
static enum lk_status open_input(draft *d, value *x)
{
    const value *found;
    LK_TRY(lk_onnx_computed(d, 0, &found));
    if (!found->node->op && found->node->input.dtype == LK_I32 && found->at >= 0) {
        *x = *found;
        x->dim[x->at] = lk_samples_share(d, found);
        return LK_OK;
    }
    return lk_samples_view(d, found, x);
}

static int64_t outer_of(const value *x)
{
    return x->outer > 1 ? x->outer : 1;
}

/* How many numbers of an axis lie outside of the samples, where `before` are to be outside in
 * all; 0: the axis cannot have the samples. */
static int64_t find_outer(int64_t before, const int64_t *dim, int axis)
{
    const int64_t there = product(dim, axis);
    if (there < 1 || before % there || dim[axis] < 1 || dim[axis] % (before / there))
        return 0;
    return before / there;
}

/* x in a shape for one sample, whose axis `at` has the samples. The numbers outside of them
 * must be as many as they were, or samples would be mixed. */
static enum lk_status give(draft *d, const value *x, int rank, const int64_t *dim, int at)
{
    value made = *x;
    const int64_t count = product(x->dim, x->rank);
    if (rank > LK_ONNX_AXES || product(dim, rank) != count)
        return lk_onnx_fail(d, "%lld numbers of a sample become another number of them",
                            (long long)count);
    const int64_t before = x->at < 0 ? 1 : product(x->dim, x->at) * outer_of(x);
    made.outer = x->at < 0 || at < 0 || at >= rank ? 0 : find_outer(before, dim, at);
    if (x->at >= 0 && !made.outer)
        return lk_onnx_fail(d, "it would join the numbers of several samples, which is not "
                               "supported");
    made.rank = rank;
    memcpy(made.dim, dim, (size_t)rank * sizeof *dim);
    return lk_samples_give(d, 0, &made, x->at >= 0 ? at : -1);
}

/* --- Reshape ----------------------------------------------------------------------------- */

/* A shape with an open batch: one number of it is n k, or the number that is left out is. */
static enum lk_status find_open(draft *d, const value *x, int rank, int64_t *dim, int left,
                                int *at)
{
    *at = -1;
    for (int i = 0; i < rank; i++)
        if (lk_onnx_share_of(dim[i])) {
            if (*at >= 0)
                return lk_onnx_fail(d, "a shape that has the batch twice");
            dim[i] = lk_onnx_share_of(dim[i]);
            *at = i;
        }
    *at = *at >= 0 ? *at : left;
    if (left >= 0) {
        dim[left] = 1;
        const int64_t others = product(dim, rank), all = product(x->dim, x->rank);
        if (others < 1 || all % others)
            return lk_onnx_fail(d, "a shape that its input cannot have");
        dim[left] = all / others;
    }
    return LK_OK;
}

/* With a batch of `batch` samples, all numbers are known. The axis of samples begins where it
 * did, and is a multiple of the batch: it stays where it was if it can. */
static enum lk_status find_fixed(draft *d, const value *x, int rank, int64_t *dim, int left,
                                 int *at)
{
    const int64_t all = product(x->dim, x->rank);
    const int64_t before = product(x->dim, x->at) * outer_of(x);
    int best = -1, score = 0;
    if (left >= 0) {
        dim[left] = 1;
        const int64_t others = product(dim, rank);
        if (others < 1 || all * d->batch % others)
            return lk_onnx_fail(d, "a shape that its input cannot have");
        dim[left] = all * d->batch / others;
    }
    for (int i = 0; i < rank; i++) {
        const int64_t length = dim[i];
        dim[i] = length / d->batch;
        const bool fits = length % d->batch == 0 && find_outer(before, dim, i) > 0;
        dim[i] = length;
        if (!fits)
            continue;
        const int found = 1 + (length == d->batch) * 2 + (i == x->at);
        if (found > score) {
            score = found;
            best = i;
        }
    }
    if (best < 0)
        return lk_onnx_fail(d, "it would join the numbers of several samples, which is not "
                               "supported");
    dim[best] /= d->batch;
    *at = best;
    return LK_OK;
}

static enum lk_status reshape(draft *d)
{
    value x;
    int64_t dim[LK_ONNX_AXES] = {0}, zeros;
    int rank, left = -1, at = -1;
    LK_TRY(open_input(d, &x));
    LK_TRY(lk_onnx_numbers(d, "shape", 1, LK_ONNX_AXES, dim, &rank));
    LK_TRY(lk_onnx_say_integer(d, "allowzero", 0, &zeros));
    for (int i = 0; i < rank; i++) {
        if (dim[i] == 0 && i < x.rank && !zeros) {
            dim[i] = x.dim[i];
            if (i == x.at)
                dim[i] =
                    d->batch == LK_ONNX_OPEN ? LK_ONNX_OPEN + dim[i] - 1 : d->batch * dim[i];
        }
        if (dim[i] == -1 && left < 0)
            left = i;
        else if (dim[i] < 1 && !lk_onnx_share_of(dim[i]))
            return lk_onnx_fail(d, "a shape that its input cannot have");
    }
    LK_TRY(d->batch == LK_ONNX_OPEN || x.at < 0 ? find_open(d, &x, rank, dim, left, &at)
                                                : find_fixed(d, &x, rank, dim, left, &at));
    return give(d, &x, rank, dim, at);
}

/* --- its kin ----------------------------------------------------------------------------- */

static enum lk_status flatten(draft *d)
{
    value x;
    int64_t said;
    LK_TRY(open_input(d, &x));
    LK_TRY(lk_onnx_say_integer(d, "axis", 1, &said));
    const int64_t axis = said < 0 ? said + x.rank : said;
    if (axis < 0 || axis > x.rank)
        return lk_onnx_fail(d, "axis %lld of %d", (long long)said, x.rank);
    const int64_t dim[] = {product(x.dim, (int)axis),
                           product(x.dim + axis, x.rank - (int)axis)};
    return give(d, &x, 2, dim, x.at >= axis);
}

static enum lk_status squeeze(draft *d)
{
    value x;
    int64_t axes[LK_ONNX_AXES], dim[LK_ONNX_AXES];
    bool goes[LK_ONNX_AXES] = {0};
    int count, axis, rank = 0, at = -1;
    LK_TRY(open_input(d, &x));
    LK_TRY(lk_onnx_numbers(d, "axes", 1, LK_ONNX_AXES, axes, &count));
    for (int i = 0; i < count; i++) {
        LK_TRY(lk_onnx_axis(d, axes[i], x.rank, &axis));
        goes[axis] = true;
    }
    for (int i = 0; i < x.rank; i++) {
        if (count ? goes[i] : x.dim[i] == 1 && i != x.at)
            continue;
        at = i == x.at ? rank : at;
        dim[rank++] = x.dim[i];
    }
    return give(d, &x, rank, dim, at);
}

static enum lk_status unsqueeze(draft *d)
{
    value x;
    int64_t axes[LK_ONNX_AXES], dim[LK_ONNX_AXES];
    bool is_new[LK_ONNX_AXES] = {0};
    int count, axis, from = 0, at = -1;
    LK_TRY(open_input(d, &x));
    LK_TRY(lk_onnx_numbers(d, "axes", 1, LK_ONNX_AXES, axes, &count));
    const int rank = x.rank + count;
    if (rank > LK_ONNX_AXES)
        return lk_onnx_fail(d, "more than %d axes", LK_ONNX_AXES);
    for (int i = 0; i < count; i++) {
        LK_TRY(lk_onnx_axis(d, axes[i], rank, &axis));
        if (is_new[axis])
            return lk_onnx_fail(d, "axis %d twice", axis);
        is_new[axis] = true;
    }
    for (int i = 0; i < rank; i++) {
        at = !is_new[i] && from == x.at ? i : at;
        dim[i] = is_new[i] ? 1 : x.dim[from++];
    }
    return give(d, &x, rank, dim, at);
}

/* Tokens that become whole numbers of another width. */
static enum lk_status cast(draft *d)
{
    const value *x;
    int64_t to;
    LK_TRY(lk_onnx_computed(d, 0, &x));
    LK_TRY(lk_onnx_say_integer(d, "to", 0, &to));
    if (x->node->op || x->node->input.dtype != LK_I32 || to == LK_ONNX_BOOL ||
        !lk_onnx_is_whole((enum lk_onnx_type)to))
        return lk_onnx_fail(d, "tokens are expected");
    return lk_onnx_give(d, 0, x);
}

const struct lk_onnx_operator lk_samples_shapes[] = {
    {"Reshape", reshape, LK_ONNX_KNOWS("shape", "allowzero")},
    {"Flatten", flatten, LK_ONNX_KNOWS("axis")},
    {"Squeeze", squeeze, LK_ONNX_KNOWS("axes")},
    {"Unsqueeze", unsqueeze, LK_ONNX_KNOWS("axes")},
    {"Cast", cast, LK_ONNX_KNOWS("to", "saturate", "round_mode")},
    {0},
};
