/* ONNX's losses, and operators that make arrays of known numbers. */
#include "model/onnx_arrays/whole.h"

#include "base/fail.h"
#include "model/onnx/convert.h"
#include "model/onnx_arrays/tables.h"
#include <string.h>

/* --- losses ------------------------------------------------------------------------------ */

/* The class of each sample and pixel; ignored ones have none. */
struct classes {
    const struct lk_onnx_tensor *labels;
    int64_t classes, pixels, ignored;
    bool ignores, of_weights;
};

static int64_t class_place(const void *how, const int64_t *at)
{
    const struct classes *c = how;
    const int64_t label = lk_onnx_integer(c->labels, at[0]);
    if (c->ignores && label == c->ignored)
        return -1;
    const int64_t n = at[0] / c->pixels, p = at[0] % c->pixels;
    return c->of_weights ? label : (n * c->classes + label) * c->pixels + p;
}

static enum lk_status open_classes(draft *d, const value *x, struct classes *c)
{
    LK_TRY(lk_onnx_constant(d, 1, &c->labels));
    LK_TRY(lk_onnx_say_integer(d, "ignore_index", 0, &c->ignored));
    c->ignores = lk_onnx_find_attribute(d->node, "ignore_index") != NULL;
    c->of_weights = false;
    if (x->rank < 2 || !c->labels || !lk_onnx_is_whole(c->labels->type))
        return lk_onnx_fail(d, "[n, c, ...] and labels are expected");
    c->classes = x->dim[1];
    c->pixels = lk_whole_count(x->rank - 2, x->dim + 2);
    bool fits = c->labels->rank == x->rank - 1 && c->labels->dim[0] == x->dim[0];
    for (int i = 1; fits && i < c->labels->rank; i++)
        fits = c->labels->dim[i] == x->dim[1 + i];
    if (!fits)
        return lk_onnx_fail(d, "labels of another shape");
    for (int64_t i = 0; i < c->labels->count; i++) {
        const int64_t label = lk_onnx_integer(c->labels, i);
        if ((label < 0 || label >= c->classes) && !(c->ignores && label == c->ignored))
            return lk_onnx_fail(d, "label %lld of %lld classes", (long long)label,
                                (long long)c->classes);
    }
    return LK_OK;
}

/* -x of each label times its weight, and what is made of all. */
static enum lk_status likelihood(draft *d, const value *x)
{
    value picked, weights, sum;
    struct classes c;
    const char *reduction;
    LK_TRY(open_classes(d, x, &c));
    LK_TRY(lk_onnx_say_text(d, "reduction", "mean", &reduction));
    LK_TRY(lk_whole_move(d, x, 1, &c.labels->count, class_place, &c, 0, &picked));
    if (lk_whole_has(d, 2)) {
        LK_TRY(lk_whole_input(d, 2, &weights));
    } else {
        LK_TRY(lk_whole_number(d, 1, &weights));
        LK_TRY(lk_whole_expand(d, &weights, 1, &c.classes, &weights));
    }
    if (lk_whole_count(weights.rank, weights.dim) != c.classes)
        return lk_onnx_fail(d, "a weight of each class is expected");
    c.of_weights = true;
    LK_TRY(lk_whole_move(d, &weights, 1, &c.labels->count, class_place, &c, 0, &weights));
    LK_TRY(lk_whole_two(d, "product", &picked, &weights, &picked));
    LK_TRY(lk_whole_with(d, "product", &picked, -1, &picked));
    if (strcmp(reduction, "none") == 0) {
        LK_TRY(lk_whole_reshape(d, &picked, c.labels->rank, c.labels->dim));
        return lk_onnx_give(d, 0, &picked);
    }
    LK_TRY(lk_whole_reduce(d, "sum", &picked, 1, &picked));
    if (strcmp(reduction, "mean") == 0) {
        LK_TRY(lk_whole_reduce(d, "sum", &weights, 1, &sum));
        LK_TRY(lk_whole_two(d, "quotient", &picked, &sum, &picked));
    } else if (strcmp(reduction, "sum") != 0) {
        return lk_onnx_fail(d, "'reduction' is %.40s", reduction);
    }
    lk_whole_drop_axes(&picked, 1);
    return lk_onnx_give(d, 0, &picked);
}

static enum lk_status negative_log_likelihood(draft *d)
{
    value x;
    LK_TRY(lk_whole_input(d, 0, &x));
    return likelihood(d, &x);
}

static enum lk_status cross_entropy(draft *d)
{
    value x;
    LK_TRY(lk_whole_input(d, 0, &x));
    if (x.rank < 2)
        return lk_onnx_fail(d, "[n, c, ...] is expected");
    LK_TRY(lk_whole_softmax(d, &x, 2, true, &x));
    LK_TRY(lk_onnx_give(d, 1, &x));
    return likelihood(d, &x);
}

/* --- arrays of known numbers ------------------------------------------------------------- */

/* off where an index is another place than its own, else on. */
struct hot {
    const struct lk_onnx_tensor *index;
    int axis;
    int64_t depth;
};

static int64_t hot_place(const void *how, const int64_t *at)
{
    const struct hot *h = how;
    int64_t place = 0;
    for (int i = 0; i < h->index->rank; i++)
        place = place * h->index->dim[i] + at[i < h->axis ? i : i + 1];
    int64_t index = lk_onnx_integer(h->index, place);
    index = index < 0 ? index + h->depth : index;
    return index == at[h->axis];
}

static enum lk_status one_hot(draft *d)
{
    value x;
    struct hot h;
    const struct lk_onnx_tensor *depth;
    int64_t said, dim[LK_ONNX_AXES];
    LK_TRY(lk_onnx_constant(d, 0, &h.index));
    LK_TRY(lk_onnx_constant(d, 1, &depth));
    LK_TRY(lk_whole_input(d, 2, &x));
    LK_TRY(lk_onnx_say_integer(d, "axis", -1, &said));
    if (!h.index || !depth || depth->count != 1 || lk_whole_count(x.rank, x.dim) != 2 ||
        h.index->rank + 1 > LK_ONNX_AXES)
        return lk_onnx_fail(d, "indices, a depth and two numbers are expected");
    LK_TRY(lk_onnx_axis(d, said, h.index->rank + 1, &h.axis));
    h.depth = lk_onnx_integer(depth, 0);
    for (int i = 0; i <= h.index->rank; i++)
        dim[i] = i < h.axis ? h.index->dim[i] : i == h.axis ? h.depth : h.index->dim[i - 1];
    LK_TRY(lk_whole_move(d, &x, h.index->rank + 1, dim, hot_place, &h, 0, &x));
    return lk_onnx_give(d, 0, &x);
}

static enum lk_status eye_like(draft *d)
{
    const value *like = lk_onnx_input(d, 0);
    int64_t diagonal, to;
    struct lk_onnx_tensor *made;
    if (!lk_onnx_is_made(like))
        return lk_onnx_fail(d, "it reads nothing");
    const int64_t *dim = like->constant ? like->constant->dim : like->dim;
    const int rank = like->constant ? like->constant->rank : like->rank;
    const enum lk_onnx_type own = like->constant ? like->constant->type : like->type;
    LK_TRY(lk_onnx_say_integer(d, "k", 0, &diagonal));
    LK_TRY(lk_onnx_say_integer(d, "dtype", own ? own : LK_ONNX_FLOAT, &to));
    if (rank != 2 || !lk_onnx_type_bytes((enum lk_onnx_type)to))
        return lk_onnx_fail(d, "a matrix of a type that is known is expected");
    LK_TRY(lk_onnx_new_tensor(d, (enum lk_onnx_type)to, 2, dim, &made));
    for (int64_t i = 0; i < made->count; i++)
        lk_onnx_put_real(made, i, i % dim[1] - i / dim[1] == diagonal);
    return lk_onnx_give_constant(d, made);
}

/* Of arrays that are given; of constants it is folded. Narrow floats, whose steps would be
 * rounded otherwise, are refused. */
static enum lk_status range(draft *d)
{
    const struct lk_onnx_tensor *x[3];
    for (int i = 0; i < 3; i++) {
        LK_TRY(lk_onnx_constant(d, i, &x[i]));
        if (!x[i] || x[i]->count != 1 || x[i]->type != x[0]->type ||
            !(lk_onnx_is_whole(x[i]->type) || x[i]->type == LK_ONNX_FLOAT ||
              x[i]->type == LK_ONNX_DOUBLE))
            return lk_onnx_fail(d, "three numbers of the same type are expected, of float32, "
                                   "float64 or whole ones");
    }
    return lk_onnx_fold_range(d, x);
}

const struct lk_onnx_operator lk_array_losses[] = {
    {"NegativeLogLikelihoodLoss", negative_log_likelihood,
     LK_ONNX_KNOWS("ignore_index", "reduction")},
    {"SoftmaxCrossEntropyLoss", cross_entropy, LK_ONNX_KNOWS("ignore_index", "reduction")},
    {"OneHot", one_hot, LK_ONNX_KNOWS("axis")},
    {"EyeLike", eye_like, LK_ONNX_KNOWS("dtype", "k")},
    {"Range", range, LK_ONNX_KNOWS(NULL)},
    {0},
};
