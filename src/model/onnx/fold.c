/* Computes what does not depend on samples, such as the shapes that exporters compute with: at
 * import, once. */
#include "model/onnx/draft.h"

#include "base/fail.h"
#include "model/onnx/fold.h"
#include <string.h>

/* Numbers as a tensor of their own. */
static enum lk_status list_numbers(struct lk_onnx_draft *draft, enum lk_onnx_type type,
                                   int count, const int64_t *integers, const float *reals,
                                   bool is_single)
{
    struct lk_onnx_tensor *made;
    LK_TRY(lk_onnx_new_tensor(draft, type, is_single ? 0 : 1, (const int64_t[]){count}, &made));
    for (int i = 0; i < count; i++)
        if (integers)
            lk_onnx_put_integer(made, i, integers[i]);
        else
            lk_onnx_put_real(made, i, (double)reals[i]);
    return lk_onnx_give_constant(draft, made);
}

static enum lk_status fold_constant(struct lk_onnx_draft *draft)
{
    const struct lk_onnx_attribute *a =
        draft->node->attribute_count == 1 ? draft->node->attributes : NULL;
    switch (a ? a->kind : LK_ONNX_OTHER) {
    case LK_ONNX_TENSOR:
        return lk_onnx_give_constant(draft, a->tensor);
    case LK_ONNX_INTEGER:
        return list_numbers(draft, LK_ONNX_INT64, 1, &a->integer, NULL, true);
    case LK_ONNX_REAL:
        return list_numbers(draft, LK_ONNX_FLOAT, 1, NULL, &a->real, true);
    case LK_ONNX_INTEGERS:
        return list_numbers(draft, LK_ONNX_INT64, a->count, a->integers, NULL, false);
    case LK_ONNX_REALS:
        return list_numbers(draft, LK_ONNX_FLOAT, a->count, NULL, a->reals, false);
    default:
        return lk_onnx_fail(draft, "a tensor, a number or numbers are expected");
    }
}

static enum lk_status fold_shape(struct lk_onnx_draft *draft)
{
    const struct lk_onnx_value *x = lk_onnx_input(draft, 0);
    int64_t start, end;
    if (!lk_onnx_is_made(x))
        return lk_onnx_fail(draft, "it reads nothing");
    const int rank = x->constant ? x->constant->rank : x->rank;
    const int64_t *dim = x->constant ? x->constant->dim : x->dim;
    LK_TRY(lk_onnx_say_integer(draft, "start", 0, &start));
    LK_TRY(lk_onnx_say_integer(draft, "end", rank, &end));
    start = start < 0 ? start + rank : start;
    end = end < 0 ? end + rank : end > rank ? rank : end;
    start = start < 0 ? 0 : start;
    if (start > end)
        start = end = 0;
    return list_numbers(draft, LK_ONNX_INT64, (int)(end - start), dim + start, NULL, false);
}

static enum lk_status fold_size(struct lk_onnx_draft *draft)
{
    const struct lk_onnx_value *x = lk_onnx_input(draft, 0);
    int64_t count = 1;
    if (!lk_onnx_is_made(x))
        return lk_onnx_fail(draft, "it reads nothing");
    for (int i = 0; !x->constant && i < x->rank; i++) {
        if (lk_onnx_share_of(x->dim[i]))
            return lk_onnx_fail(draft, "it computes with the length of the batch, which is not "
                                       "supported");
        count *= x->dim[i];
    }
    count = x->constant ? x->constant->count : count;
    return list_numbers(draft, LK_ONNX_INT64, 1, &count, NULL, true);
}

/* --- shapes ------------------------------------------------------------------------------ */

/* The same numbers in another shape. */
static enum lk_status give_shaped(struct lk_onnx_draft *draft, const struct lk_onnx_tensor *x,
                                  int rank, const int64_t *dim)
{
    void *memory;
    int64_t count = 1;
    LK_TRY(lk_arena_allocate(&draft->arena, sizeof *x, &memory));
    struct lk_onnx_tensor *made = memory;
    *made = *x;
    made->rank = rank;
    for (int i = 0; i < rank; i++) {
        made->dim[i] = dim[i];
        count *= dim[i] > 0 && dim[i] <= x->count ? dim[i] : dim[i] == 0 ? 0 : x->count + 1;
        if (count > x->count)
            break;
    }
    if (count != x->count)
        return lk_onnx_fail(draft, "a constant of %lld elements gets another number of them",
                            (long long)x->count);
    return lk_onnx_give_constant(draft, made);
}

static enum lk_status fold_reshape(struct lk_onnx_draft *draft, const struct lk_onnx_tensor *x)
{
    int64_t dim[LK_ONNX_AXES], zeros, rest = 1;
    int count, open = -1;
    LK_TRY(lk_onnx_numbers(draft, "shape", 1, LK_ONNX_AXES, dim, &count));
    LK_TRY(lk_onnx_say_integer(draft, "allowzero", 0, &zeros));
    for (int i = 0; i < count; i++) {
        if (dim[i] == 0 && i < x->rank && !zeros)
            dim[i] = x->dim[i];
        if (dim[i] == -1 && open < 0)
            open = i;
        else if (dim[i] < 0 || (dim[i] && rest > INT32_MAX / dim[i]))
            return lk_onnx_fail(draft, "a constant gets a shape that it cannot have");
        else
            rest *= dim[i];
    }
    if (open >= 0)
        dim[open] = rest ? x->count / rest : 0;
    return give_shaped(draft, x, count, dim);
}

static enum lk_status fold_unsqueeze(struct lk_onnx_draft *draft,
                                     const struct lk_onnx_tensor *x)
{
    int64_t axes[LK_ONNX_AXES], dim[LK_ONNX_AXES];
    bool is_new[LK_ONNX_AXES] = {0};
    int count, axis, from = 0;
    LK_TRY(lk_onnx_numbers(draft, "axes", 1, LK_ONNX_AXES, axes, &count));
    if (x->rank + count > LK_ONNX_AXES)
        return lk_onnx_fail(draft, "more than %d axes", LK_ONNX_AXES);
    for (int i = 0; i < count; i++) {
        LK_TRY(lk_onnx_axis(draft, axes[i], x->rank + count, &axis));
        if (is_new[axis])
            return lk_onnx_fail(draft, "axis %d twice", axis);
        is_new[axis] = true;
    }
    for (int i = 0; i < x->rank + count; i++)
        dim[i] = is_new[i] ? 1 : x->dim[from++];
    return give_shaped(draft, x, x->rank + count, dim);
}

static enum lk_status fold_squeeze(struct lk_onnx_draft *draft, const struct lk_onnx_tensor *x)
{
    int64_t axes[LK_ONNX_AXES], dim[LK_ONNX_AXES];
    bool goes[LK_ONNX_AXES] = {0};
    int count, axis, rank = 0;
    LK_TRY(lk_onnx_numbers(draft, "axes", 1, LK_ONNX_AXES, axes, &count));
    for (int i = 0; i < count; i++) {
        LK_TRY(lk_onnx_axis(draft, axes[i], x->rank, &axis));
        goes[axis] = true;
    }
    for (int i = 0; i < x->rank; i++)
        if (count ? !goes[i] : x->dim[i] != 1)
            dim[rank++] = x->dim[i];
    return give_shaped(draft, x, rank, dim);
}

/* --- moving elements --------------------------------------------------------------------- */

void lk_onnx_copy_element(struct lk_onnx_tensor *to, int64_t index,
                          const struct lk_onnx_tensor *from, int64_t at)
{
    if (lk_onnx_is_whole(from->type))
        lk_onnx_put_integer(to, index, lk_onnx_integer(from, at));
    else
        lk_onnx_put_real(to, index, lk_onnx_real(from, at));
}

enum lk_status lk_onnx_turn(struct lk_onnx_draft *draft, const struct lk_onnx_tensor *x,
                            const int *order, struct lk_onnx_tensor **turned)
{
    int64_t dim[LK_ONNX_AXES] = {0}, stride[LK_ONNX_AXES], at[LK_ONNX_AXES] = {0}, step = 1;
    void *memory;
    for (int i = x->rank - 1; i >= 0; i--) {
        stride[i] = step;
        step *= x->dim[i];
    }
    for (int i = 0; i < x->rank; i++)
        dim[i] = x->dim[order[i]];
    if (x->is_one) {
        LK_TRY(lk_arena_allocate(&draft->arena, sizeof *x, &memory));
        *turned = memory;
        **turned = *x;
        memcpy((*turned)->dim, dim, sizeof dim);
        return LK_OK;
    }
    LK_TRY(lk_onnx_new_tensor(draft, x->type, x->rank, dim, turned));
    (*turned)->name = x->name;
    for (int64_t e = 0; e < x->count; e++) {
        int64_t from = 0;
        for (int i = 0; i < x->rank; i++)
            from += at[i] * stride[order[i]];
        lk_onnx_copy_element(*turned, e, x, from);
        for (int i = x->rank - 1; i >= 0 && ++at[i] == dim[i]; i--)
            at[i] = 0;
    }
    return LK_OK;
}

static enum lk_status fold_transpose(struct lk_onnx_draft *draft,
                                     const struct lk_onnx_tensor *x)
{
    int64_t wanted[LK_ONNX_AXES];
    int order[LK_ONNX_AXES], seen = 0;
    struct lk_onnx_tensor *turned;
    const bool is_said = lk_onnx_find_attribute(draft->node, "perm") != NULL;
    LK_TRY(lk_onnx_say_list(draft, "perm", x->rank, 0, wanted));
    for (int i = 0; i < x->rank; i++) {
        LK_TRY(lk_onnx_axis(draft, is_said ? wanted[i] : x->rank - 1 - i, x->rank, &order[i]));
        seen |= 1 << order[i];
    }
    if (seen != (1 << x->rank) - 1)
        return lk_onnx_fail(draft, "'perm' is no order of %d axes", x->rank);
    LK_TRY(lk_onnx_turn(draft, x, order, &turned));
    return lk_onnx_give_constant(draft, turned);
}

/* Lengths before an axis, and behind it. */
static void cut_at(const struct lk_onnx_tensor *x, int axis, int64_t *outer, int64_t *inner)
{
    *outer = *inner = 1;
    for (int i = 0; i < x->rank; i++)
        *(i < axis ? outer : inner) *= i == axis ? 1 : x->dim[i];
}

static enum lk_status fold_gather(struct lk_onnx_draft *draft, const struct lk_onnx_tensor *x,
                                  const struct lk_onnx_tensor *which)
{
    int64_t said, dim[LK_ONNX_AXES], outer, inner;
    int axis, rank = 0;
    struct lk_onnx_tensor *made;
    LK_TRY(lk_onnx_say_integer(draft, "axis", 0, &said));
    LK_TRY(lk_onnx_axis(draft, said, x->rank, &axis));
    if (x->rank - 1 + which->rank > LK_ONNX_AXES)
        return lk_onnx_fail(draft, "more than %d axes", LK_ONNX_AXES);
    for (int i = 0; i < axis; i++)
        dim[rank++] = x->dim[i];
    for (int i = 0; i < which->rank; i++)
        dim[rank++] = which->dim[i];
    for (int i = axis + 1; i < x->rank; i++)
        dim[rank++] = x->dim[i];
    cut_at(x, axis, &outer, &inner);
    LK_TRY(lk_onnx_new_tensor(draft, x->type, rank, dim, &made));
    for (int64_t o = 0; o < outer; o++)
        for (int64_t w = 0; w < which->count; w++) {
            int64_t from = lk_onnx_integer(which, w);
            from = from < 0 ? from + x->dim[axis] : from;
            if (from < 0 || from >= x->dim[axis])
                return lk_onnx_fail(draft, "index %lld of an axis of %lld", (long long)from,
                                    (long long)x->dim[axis]);
            for (int64_t i = 0; i < inner; i++)
                lk_onnx_copy_element(made, (o * which->count + w) * inner + i, x,
                                     (o * x->dim[axis] + from) * inner + i);
        }
    return lk_onnx_give_constant(draft, made);
}

static enum lk_status fold_concat(struct lk_onnx_draft *draft, const struct lk_onnx_tensor *x)
{
    int64_t said, dim[LK_ONNX_AXES], outer, inner, before = 0;
    int axis;
    struct lk_onnx_tensor *made;
    LK_TRY(lk_onnx_say_integer(draft, "axis", 0, &said));
    LK_TRY(lk_onnx_axis(draft, said, x->rank, &axis));
    memcpy(dim, x->dim, sizeof dim);
    dim[axis] = 0;
    for (int p = 0; p < draft->node->input_count; p++) {
        if (!lk_onnx_input(draft, p))
            return lk_onnx_fail(draft, "its input %d is left out", p);
        const struct lk_onnx_tensor *part = lk_onnx_input(draft, p)->constant;
        for (int i = 0; i < x->rank; i++)
            if (part->rank != x->rank || (i != axis && part->dim[i] != x->dim[i]))
                return lk_onnx_fail(draft, "constants of different shapes are joined");
        dim[axis] += part->dim[axis];
    }
    cut_at(x, axis, &outer, &inner);
    LK_TRY(lk_onnx_new_tensor(draft, x->type, x->rank, dim, &made));
    for (int p = 0; p < draft->node->input_count; p++) {
        const struct lk_onnx_tensor *part = lk_onnx_input(draft, p)->constant;
        const int64_t row = part->dim[axis] * inner;
        for (int64_t o = 0; o < outer; o++)
            for (int64_t i = 0; i < row; i++)
                lk_onnx_copy_element(made, o * dim[axis] * inner + before + i, part,
                                     o * row + i);
        before += row;
    }
    return lk_onnx_give_constant(draft, made);
}

static enum lk_status convert_type(struct lk_onnx_draft *draft, const struct lk_onnx_tensor *x,
                                   int64_t to)
{
    struct lk_onnx_tensor *made;
    if (!lk_onnx_type_bytes((enum lk_onnx_type)to))
        return lk_onnx_fail(draft, "type %lld", (long long)to);
    if (!draft->is_whole && to != LK_ONNX_BOOL && lk_onnx_is_whole((enum lk_onnx_type)to))
        to = LK_ONNX_INT64; /* as wide as what stands for an open batch */
    LK_TRY(lk_onnx_new_tensor(draft, (enum lk_onnx_type)to, x->rank, x->dim, &made));
    for (int64_t i = 0; i < x->count; i++)
        if (to == LK_ONNX_BOOL)
            lk_onnx_put_integer(made, i, lk_onnx_real(x, i) != 0);
        else if (lk_onnx_is_whole(x->type) && lk_onnx_is_whole(made->type))
            lk_onnx_put_integer(made, i, lk_onnx_integer(x, i));
        else if (lk_onnx_is_whole(x->type) && lk_onnx_share_of(lk_onnx_integer(x, i)) &&
                 !draft->is_whole)
            return lk_onnx_fail(draft, "the length of the batch becomes a float");
        else
            lk_onnx_put_real(made, i, lk_onnx_real(x, i));
    return lk_onnx_give_constant(draft, made);
}

static enum lk_status fold_cast(struct lk_onnx_draft *draft, const struct lk_onnx_tensor *x)
{
    int64_t to;
    LK_TRY(lk_onnx_say_integer(draft, "to", 0, &to));
    return convert_type(draft, x, to);
}

/* To the type of another value, which need not be known. */
static enum lk_status fold_cast_like(struct lk_onnx_draft *draft)
{
    const struct lk_onnx_value *like = lk_onnx_input(draft, 1);
    const enum lk_onnx_type type = like->constant ? like->constant->type : like->type;
    return convert_type(draft, lk_onnx_input(draft, 0)->constant, type ? type : LK_ONNX_FLOAT);
}

/* x is the shape. All elements are equal, so that one is kept. */
static enum lk_status fold_constant_of_shape(struct lk_onnx_draft *draft,
                                             const struct lk_onnx_tensor *x)
{
    static const float zero;
    static const struct lk_onnx_tensor standard = {
        .type = LK_ONNX_FLOAT, .count = 1, .data = &zero};
    const struct lk_onnx_attribute *said = lk_onnx_find_attribute(draft->node, "value");
    const struct lk_onnx_tensor *value = said && said->tensor ? said->tensor : &standard;
    int64_t dim[LK_ONNX_AXES];
    struct lk_onnx_tensor *made;
    if (x->count > LK_ONNX_AXES || value->count != 1)
        return lk_onnx_fail(draft, "a shape of %lld axes, or several values",
                            (long long)x->count);
    for (int64_t i = 0; i < x->count; i++)
        dim[i] = lk_onnx_number_of_one(lk_onnx_integer(x, i));
    LK_TRY(lk_onnx_new_tensor(draft, value->type, 0, NULL, &made));
    lk_onnx_copy_element(made, 0, value, 0);
    made->rank = (int)x->count;
    for (int i = 0; i < made->rank; i++) {
        if (dim[i] < 0 || (dim[i] && made->count > LK_ONNX_MOST_EQUAL / dim[i]))
            return lk_onnx_fail(draft, "constants of far more elements than the file has");
        made->dim[i] = dim[i];
        made->count *= dim[i];
    }
    made->is_one = true;
    return lk_onnx_give_constant(draft, made);
}

/* --- which ------------------------------------------------------------------------------- */

static bool reads_constants(const struct lk_onnx_draft *draft)
{
    for (int i = 0; i < draft->node->input_count; i++) {
        const struct lk_onnx_value *x = lk_onnx_input(draft, i);
        if (x && !x->constant)
            return false;
    }
    return draft->node->input_count > 0 && lk_onnx_input(draft, 0);
}

typedef enum lk_status fold(struct lk_onnx_draft *draft, const struct lk_onnx_tensor *x);

static const struct {
    const char *op;
    fold *of_one;
} folds[] = {{"Reshape", fold_reshape},
             {"Unsqueeze", fold_unsqueeze},
             {"Squeeze", fold_squeeze},
             {"Transpose", fold_transpose},
             {"Concat", fold_concat},
             {"Slice", lk_onnx_fold_slice},
             {"Cast", fold_cast},
             {"ConstantOfShape", fold_constant_of_shape},
             {"Split", lk_onnx_fold_split},
             {"Expand", lk_onnx_fold_expand},
             {"ReduceProd", lk_onnx_fold_product},
             {"GatherElements", lk_onnx_fold_elements}};

enum lk_status lk_onnx_fold(struct lk_onnx_draft *draft, bool *done)
{
    const char *op = draft->node->op;
    *done = true;
    if (strcmp(op, "Constant") == 0)
        return fold_constant(draft);
    if (strcmp(op, "Shape") == 0)
        return fold_shape(draft);
    if (strcmp(op, "Size") == 0)
        return fold_size(draft);
    if (strcmp(op, "CastLike") == 0 && lk_onnx_input(draft, 0) && lk_onnx_input(draft, 1) &&
        lk_onnx_input(draft, 0)->constant)
        return fold_cast_like(draft);
    *done = reads_constants(draft);
    if (!*done)
        return LK_OK;
    const struct lk_onnx_tensor *x = lk_onnx_input(draft, 0)->constant;
    if (strcmp(op, "Identity") == 0)
        return lk_onnx_give_constant(draft, x);
    if (x->count == 0 && draft->is_whole) {
        LK_TRY(lk_onnx_fold_empty(draft, x, done));
        if (*done)
            return LK_OK;
        *done = true;
    }
    for (int i = 0; i < LK_COUNT(folds); i++)
        if (strcmp(op, folds[i].op) == 0)
            return folds[i].of_one(draft, x);
    if (strcmp(op, "Gather") == 0 && lk_onnx_input(draft, 1))
        return fold_gather(draft, x, lk_onnx_input(draft, 1)->constant);
    return lk_onnx_fold_numbers(draft, done);
}
