/* The numbers of the samples themselves: 0 for the first, 1 for the second ... Exporters make
 * them by Range, and compute with them where in a row of all samples' numbers those of a sample
 * begin. A constant has them for the first sample, value.next for the second one, and each
 * sample has as much more than the one before. Where they grow unevenly, next is the constant
 * itself: its shape alone is known. */
#include "model/onnx_samples/samples.h"

#include "base/fail.h"
#include "model/onnx/fold.h"
#include <string.h>

static bool is_counted(const value *x)
{
    return x && x->constant && x->next;
}

static bool grows_unevenly(const value *x)
{
    return is_counted(x) && x->next == x->constant;
}

static enum lk_status refuse(const draft *d)
{
    return lk_onnx_fail(d, "it computes with the numbers of samples");
}

/* --- constants that are made of them ----------------------------------------------------- */

/* Range from 0 to the length of the batch. */
static bool is_count(const draft *d)
{
    static const int64_t expected[] = {0, LK_ONNX_OPEN, 1};
    bool is_all = strcmp(d->node->op, "Range") == 0 && d->node->input_count == 3;
    for (int i = 0; is_all && i < 3; i++) {
        const value *x = lk_onnx_input(d, i);
        is_all = x && x->constant && !x->next && x->constant->count == 1 &&
                 lk_onnx_is_whole(x->constant->type) &&
                 lk_onnx_integer(x->constant, 0) == expected[i];
    }
    return is_all;
}

static enum lk_status count(draft *d)
{
    struct lk_onnx_tensor *made[2];
    const int64_t one = 1;
    for (int i = 0; i < 2; i++) {
        LK_TRY(lk_onnx_new_tensor(d, LK_ONNX_INT64, 1, &one, &made[i]));
        lk_onnx_put_integer(made[i], 0, i);
    }
    return lk_onnx_give(d, 0, &(value){.constant = made[0], .next = made[1]});
}

/* Where Unsqueeze puts an axis of its input. */
static enum lk_status find_pushed(draft *d, int rank, int *at)
{
    int64_t said[LK_ONNX_AXES];
    int found, axis, left = *at;
    unsigned added = 0;
    LK_TRY(lk_onnx_numbers(d, "axes", 1, LK_ONNX_AXES, said, &found));
    for (int i = 0; i < found; i++) {
        LK_TRY(lk_onnx_axis(d, said[i], rank, &axis));
        added |= 1u << axis;
    }
    for (*at = 0; *at < rank && (added >> *at & 1 || left-- > 0);)
        ++*at;
    return LK_OK;
}

/* Whether an operator's result grows evenly from sample to sample where its inputs do, and
 * whether each element of it is made of those in the same place. */
struct kind {
    const char *op;
    bool is_even, is_placed;
};

static const struct kind *find_kind(const draft *d)
{
    static const struct kind kinds[] = {
        {"Cast", true, true},   {"Identity", true, true}, {"Unsqueeze", true, false},
        {"Expand", true, true}, {"Concat", true, true},   {"Add", true, true},
        {"Sub", true, true},    {"Mul", true, true},      {"Max", false, true},
        {"Min", false, true},
    };
    for (int i = 0; i < LK_COUNT(kinds); i++)
        if (strcmp(d->node->op, kinds[i].op) == 0)
            return &kinds[i];
    return NULL;
}

/* The axis of samples behind the node at work. */
static enum lk_status find_axis(draft *d, const struct kind *kind, int rank, int *at)
{
    int counted = 0;
    for (int i = 0; i < d->node->input_count; i++) {
        const value *x = lk_onnx_input(d, i);
        if (!is_counted(x))
            continue;
        const int place = x->at + (kind->is_placed ? rank - x->constant->rank : 0);
        if (counted++ && (place != *at || strcmp(kind->op, "Mul") == 0))
            return refuse(d);
        *at = place;
    }
    return kind->is_placed ? LK_OK : find_pushed(d, rank, at);
}

/* Puts what inputs are for the second sample in the place of the first, and back. */
static void swap_inputs(const draft *d)
{
    for (int i = 0; i < d->node->input_count; i++) {
        value *x = lk_onnx_input(d, i);
        bool is_new = is_counted(x);
        for (int before = 0; before < i; before++)
            is_new &= lk_onnx_input(d, before) != x;
        if (!is_new)
            continue;
        const struct lk_onnx_tensor *first = x->constant;
        x->constant = x->next;
        x->next = first;
    }
}

static enum lk_status fold(draft *d, const struct lk_onnx_tensor **made)
{
    bool folded;
    LK_TRY(lk_onnx_fold(d, &folded));
    const value *found = *d->node->outputs[0] ? lk_onnx_find(d, d->node->outputs[0]) : NULL;
    if (!folded || !found || !found->constant)
        return refuse(d);
    *made = found->constant;
    return LK_OK;
}

/* Its shape has the length of the batch along the axis of samples. */
static enum lk_status fold_shape(draft *d)
{
    value *x = lk_onnx_input(d, 0);
    const struct lk_onnx_tensor *made, *kept = x->constant;
    struct lk_onnx_tensor all = *kept;
    all.dim[x->at] = d->batch;
    x->constant = &all;
    const enum lk_status status = fold(d, &made);
    x->constant = kept;
    return status;
}

static enum lk_status fold_twice(draft *d, const struct kind *kind)
{
    value made = {0};
    swap_inputs(d);
    const enum lk_status status = fold(d, &made.next);
    swap_inputs(d);
    LK_TRY(status);
    LK_TRY(fold(d, &made.constant));
    LK_TRY(find_axis(d, kind, made.constant->rank, &made.at));
    if (made.at >= made.constant->rank || made.constant->dim[made.at] != 1 ||
        !lk_onnx_is_whole(made.constant->type) || made.constant->type == LK_ONNX_BOOL)
        return refuse(d);
    if (!kind->is_even)
        made.next = made.constant;
    return lk_onnx_give(d, 0, &made);
}

/* --- places of a sample's own numbers ---------------------------------------------------- */

/* Whether places are those of each sample's own numbers, `share` along the axis that every
 * `length`-th of them names. */
static bool are_own(const value *index, int64_t share, int64_t length)
{
    for (int64_t i = 0; i < index->constant->count; i++) {
        const int64_t place = lk_onnx_integer(index->constant, i);
        int64_t more;
        if (__builtin_sub_overflow(lk_onnx_integer(index->next, i), place, &more) ||
            (i % length == 0 ? more != share || place < 0 : more != 0))
            return false;
    }
    return true;
}

bool lk_samples_takes_own(const draft *d, const value *x)
{
    const bool is_tuple = strcmp(d->node->op, "GatherND") == 0;
    const bool is_gather = is_tuple || strcmp(d->node->op, "Gather") == 0;
    const value *index = is_gather ? lk_onnx_input(d, 1) : NULL;
    const struct lk_onnx_attribute *axis =
        lk_onnx_find_attribute(d->node, is_tuple ? "batch_dims" : "axis");
    if (!is_counted(index) || grows_unevenly(index) || x->rank < 1 || x->at != 0 ||
        x->outer > 1 || (axis && axis->integer != 0 && axis->integer != -x->rank))
        return false;
    const int last = index->constant->rank - 1;
    const int64_t length = is_tuple && last > 0 ? index->constant->dim[last] : 1;
    return (!is_tuple || (index->at < last && length > 0)) && are_own(index, x->dim[0], length);
}

/* The same of an input as it is. */
static bool takes_own(const draft *d)
{
    const value *x = lk_onnx_input(d, 0);
    if (!lk_samples_is_in(x) || x->at != 0)
        return false;
    value view = *x;
    view.dim[0] = lk_samples_share(d, x);
    return lk_samples_takes_own(d, &view);
}

/* Whether the numbers along an axis are as much more for every next sample. */
static bool counts_along(const struct lk_onnx_tensor *x, int axis, int64_t batch)
{
    int64_t inner = 1;
    for (int i = axis + 1; i < x->rank; i++)
        inner *= x->dim[i];
    for (int64_t i = 0; i < x->count; i++) {
        const int64_t sample = i / inner % batch, first = i - sample * inner;
        const int64_t begin = lk_onnx_integer(x, first);
        const int64_t next = lk_onnx_integer(x, first + inner);
        if (begin < 0 || begin > INT32_MAX || next < begin || next > INT32_MAX ||
            lk_onnx_integer(x, i) != begin + sample * (next - begin))
            return false;
    }
    return true;
}

enum lk_status lk_samples_take(draft *d, const struct lk_onnx_tensor *x, int axis,
                               int64_t which, struct lk_onnx_tensor **made)
{
    int64_t dim[LK_ONNX_AXES], inner = 1;
    memcpy(dim, x->dim, sizeof dim);
    dim[axis] = 1;
    for (int i = axis + 1; i < x->rank; i++)
        inner *= dim[i];
    LK_TRY(lk_onnx_new_tensor(d, x->type, x->rank, dim, made));
    for (int64_t i = 0; i < (*made)->count; i++)
        lk_onnx_copy_element(*made, i, x,
                             (i / inner * x->dim[axis] + which) * inner + i % inner);
    return LK_OK;
}

enum lk_status lk_samples_count_places(draft *d, value *index)
{
    const struct lk_onnx_tensor *all = index->constant;
    const value kept = *index;
    struct lk_onnx_tensor *made[2];
    if (!all || !lk_onnx_is_whole(all->type) || !lk_samples_is_in(lk_onnx_input(d, 0)))
        return LK_OK;
    for (int axis = 0; axis < all->rank; axis++) {
        if (all->dim[axis] != d->batch || !counts_along(all, axis, d->batch))
            continue;
        for (int i = 0; i < 2; i++)
            LK_TRY(lk_samples_take(d, all, axis, i, &made[i]));
        index->constant = made[0];
        index->next = made[1];
        index->at = axis;
        if (takes_own(d))
            return LK_OK;
        *index = kept;
    }
    return LK_OK;
}

enum lk_status lk_onnx_fold_counted(draft *d, bool *done)
{
    bool reads = false, is_known = true, is_uneven = false;
    const bool is_shape = strcmp(d->node->op, "Shape") == 0;
    const struct kind *kind = find_kind(d);
    for (int i = 0; i < d->node->input_count; i++) {
        const value *x = lk_onnx_input(d, i);
        reads |= is_counted(x);
        is_uneven |= grows_unevenly(x);
        is_known &= x && x->constant;
    }
    *done = is_count(d);
    if (*done)
        return count(d);
    if (!reads || takes_own(d))
        return LK_OK;
    *done = true;
    if (is_shape)
        return fold_shape(d);
    if (!is_known || is_uneven || !kind || d->node->input_count > LK_SAMPLES_INPUTS)
        return refuse(d);
    return fold_twice(d, kind);
}
