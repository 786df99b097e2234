/* The numbers of the samples themselves: 0 for the first, 1 for the second ... Exporters make
 * them by Range, and compute with them where in a row of all samples' numbers those of a sample
 * begin. A constant has them for the first sample, and value.each is what each next one has
 * more. */
#include "model/onnx_samples/samples.h"

#include "base/fail.h"
#include "model/onnx/fold.h"
#include <string.h>

static bool is_counted(const value *x)
{
    return x && x->constant && x->each != 0;
}

/* Range from 0 to the length of the batch. */
static bool is_count(const draft *d)
{
    static const int64_t expected[] = {0, LK_ONNX_OPEN, 1};
    bool is_all = strcmp(d->node->op, "Range") == 0 && d->node->input_count == 3;
    for (int i = 0; is_all && i < 3; i++) {
        const value *x = lk_onnx_input(d, i);
        is_all = x && x->constant && !x->each && x->constant->count == 1 &&
                 lk_onnx_is_whole(x->constant->type) &&
                 lk_onnx_integer(x->constant, 0) == expected[i];
    }
    return is_all;
}

static enum lk_status count(draft *d)
{
    struct lk_onnx_tensor *made;
    const int64_t one = 1;
    LK_TRY(lk_onnx_new_tensor(d, LK_ONNX_INT64, 1, &one, &made));
    lk_onnx_put_integer(made, 0, 0);
    return lk_onnx_give(d, 0, &(value){.constant = made, .each = 1});
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

/* What is added for each sample, and the axis of samples, behind the node at work. */
static enum lk_status follow(draft *d, int rank, int64_t *each, int *at)
{
    const char *op = d->node->op;
    const bool adds = strcmp(op, "Add") == 0, times = strcmp(op, "Mul") == 0;
    const value *x[2] = {lk_onnx_input(d, 0), lk_onnx_input(d, 1)};
    *each = 0;
    if (strcmp(op, "Cast") == 0 || strcmp(op, "Identity") == 0 ||
        strcmp(op, "Unsqueeze") == 0) {
        *each = x[0]->each;
        *at = x[0]->at;
        return strcmp(op, "Unsqueeze") == 0 ? find_pushed(d, rank, at) : LK_OK;
    }
    for (int i = 0; i < 2 && (adds || times); i++) {
        const value *other = x[1 - i];
        if (!is_counted(x[i]))
            continue;
        const int place = rank - x[i]->constant->rank + x[i]->at;
        const bool is_number = other->constant->count == 1 && !other->each;
        if ((*each && place != *at) || (times && !is_number))
            return lk_onnx_fail(d, "it computes with the numbers of samples");
        *each += x[i]->each * (times ? lk_onnx_integer(other->constant, 0) : 1);
        *at = place;
    }
    return *each ? LK_OK : lk_onnx_fail(d, "it computes with the numbers of samples");
}

bool lk_samples_takes_own(const draft *d, const value *x)
{
    const value *index = strcmp(d->node->op, "Gather") == 0 ? lk_onnx_input(d, 1) : NULL;
    return is_counted(index) && x->rank == 1 && x->at == 0 && x->outer <= 1 &&
           index->each == x->dim[0];
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

/* Whether the numbers along an axis are `each` more for every next sample. */
static bool counts_along(const struct lk_onnx_tensor *x, int axis, int64_t batch, int64_t each)
{
    int64_t inner = 1;
    for (int i = axis + 1; i < x->rank; i++)
        inner *= x->dim[i];
    for (int64_t i = 0; i < x->count; i++) {
        const int64_t sample = i / inner % batch;
        if (lk_onnx_integer(x, i) != lk_onnx_integer(x, i - sample * inner) + sample * each)
            return false;
    }
    return true;
}

enum lk_status lk_samples_take_first(draft *d, const struct lk_onnx_tensor *x, int axis,
                                     struct lk_onnx_tensor **made)
{
    int64_t dim[LK_ONNX_AXES], inner = 1;
    memcpy(dim, x->dim, sizeof dim);
    dim[axis] = 1;
    for (int i = axis + 1; i < x->rank; i++)
        inner *= dim[i];
    LK_TRY(lk_onnx_new_tensor(d, x->type, x->rank, dim, made));
    for (int64_t i = 0; i < (*made)->count; i++)
        lk_onnx_copy_element(*made, i, x, i / inner * x->dim[axis] * inner + i % inner);
    return LK_OK;
}

enum lk_status lk_samples_count_places(draft *d, value *index)
{
    const value *x = lk_onnx_input(d, 0);
    const struct lk_onnx_tensor *all = index->constant;
    struct lk_onnx_tensor *first;
    if (!lk_samples_is_in(x) || x->rank != 1 || !all || !lk_onnx_is_whole(all->type))
        return LK_OK;
    const int64_t each = lk_samples_share(d, x);
    for (int axis = 0; axis < all->rank; axis++)
        if (all->dim[axis] == d->batch && counts_along(all, axis, d->batch, each)) {
            LK_TRY(lk_samples_take_first(d, all, axis, &first));
            index->constant = first;
            index->each = each;
            index->at = axis;
            break;
        }
    return LK_OK;
}

enum lk_status lk_onnx_fold_counted(draft *d, bool *done)
{
    bool reads = false, is_known = true, folded;
    int64_t each;
    int at = 0;
    for (int i = 0; i < d->node->input_count; i++) {
        const value *x = lk_onnx_input(d, i);
        reads |= is_counted(x);
        is_known &= x && x->constant;
    }
    *done = is_count(d);
    if (*done)
        return count(d);
    if (!reads || takes_own(d))
        return LK_OK;
    if (!is_known)
        return lk_onnx_fail(d, "it computes with the numbers of samples");
    LK_TRY(lk_onnx_fold(d, &folded));
    value *made = *d->node->outputs[0] ? lk_onnx_find(d, d->node->outputs[0]) : NULL;
    if (!folded || !made || !made->constant)
        return lk_onnx_fail(d, "it computes with the numbers of samples");
    LK_TRY(follow(d, made->constant->rank, &each, &at));
    if (at >= made->constant->rank || made->constant->dim[at] != 1)
        return lk_onnx_fail(d, "it computes with the numbers of samples");
    made->each = each;
    made->at = at;
    *done = true;
    return LK_OK;
}
