/* ONNX's sums along axes, and what is made of them: softmax, norms. */
#include "model/onnx_arrays/whole.h"

#include "base/fail.h"
#include "model/onnx_arrays/tables.h"
#include <string.h>

/* --- sums -------------------------------------------------------------------------------- */

/* Theirs, `reduce` of ours, with what is done before and behind. */
static const struct {
    const char *name, *function, *before, *behind;
} reductions[] = {
    {"ReduceSum", "sum", NULL, NULL},           {"ReduceMean", "mean", NULL, NULL},
    {"ReduceMax", "largest", NULL, NULL},       {"ReduceMin", "smallest", NULL, NULL},
    {"ReduceProd", "product", NULL, NULL},      {"ReduceLogSumExp", "log_sum_exp", NULL, NULL},
    {"ReduceL1", "sum", "abs", NULL},           {"ReduceL2", "sum", "square", "sqrt"},
    {"ReduceSumSquare", "sum", "square", NULL}, {"ReduceLogSum", "sum", NULL, "log"},
};

static enum lk_status reduce(draft *d)
{
    value x;
    unsigned axes;
    int64_t keeps, is_noop;
    bool found;
    int r = 0;
    while (strcmp(reductions[r].name, d->node->op) != 0)
        r++;
    LK_TRY(lk_whole_input(d, 0, &x));
    LK_TRY(lk_whole_axes(d, "axes", 1, x.rank, &axes, &found));
    LK_TRY(lk_onnx_say_integer(d, "keepdims", 1, &keeps));
    LK_TRY(lk_onnx_say_integer(d, "noop_with_empty_axes", 0, &is_noop));
    if (!found && !is_noop)
        axes = (1u << x.rank) - 1;
    const enum lk_onnx_type type = x.type;
    if (lk_onnx_is_whole(type) && lk_onnx_type_bytes(type) < 4 &&
        strcmp(reductions[r].function, "largest") != 0 &&
        strcmp(reductions[r].function, "smallest") != 0)
        return lk_onnx_fail(d, "sums of %s are not supported", lk_onnx_type_name(type));
    if (reductions[r].before)
        LK_TRY(lk_whole_apply(d, reductions[r].before, "", &x, &x));
    LK_TRY(lk_whole_reduce(d, reductions[r].function, &x, axes, &x));
    if (reductions[r].behind)
        LK_TRY(lk_whole_math(d, reductions[r].behind, 1, &x, &x));
    if (!keeps)
        lk_whole_drop_axes(&x, axes);
    x.type = type;
    return lk_onnx_give(d, 0, &x);
}

static enum lk_status place_of_extreme(draft *d)
{
    value x;
    int64_t said, keeps, last;
    int axis;
    const char *function;
    LK_TRY(lk_whole_input(d, 0, &x));
    LK_TRY(lk_onnx_say_integer(d, "axis", 0, &said));
    LK_TRY(lk_onnx_axis(d, said, x.rank, &axis));
    LK_TRY(lk_onnx_say_integer(d, "keepdims", 1, &keeps));
    LK_TRY(lk_onnx_say_integer(d, "select_last_index", 0, &last));
    LK_TRY(lk_onnx_text(d, &function, "%s%s",
                        strcmp(d->node->op, "ArgMax") == 0 ? "largest_place" : "smallest_place",
                        last ? " last=true" : ""));
    LK_TRY(lk_whole_reduce(d, function, &x, 1u << axis, &x));
    if (!keeps)
        lk_whole_drop_axes(&x, 1u << axis);
    x.type = LK_ONNX_INT64;
    return lk_onnx_give(d, 0, &x);
}

/* Rows of n elements times a triangle of ones: sums. For products each element is chosen, or 1,
 * for each of its results. */
static enum lk_status run_on(draft *d, const value *rows, const value *ones, value *made)
{
    const int64_t count = rows->dim[0], n = rows->dim[1];
    value x[3] = {*ones, *rows};
    if (strcmp(d->node->op, "CumSum") == 0)
        return lk_whole_matmul(d, rows, ones, made);
    LK_TRY(lk_whole_order(d, ones, (const int[]){1, 0}, &x[0]));
    LK_TRY(lk_whole_reshape(d, &x[1], 3, (const int64_t[]){count, 1, n}));
    LK_TRY(lk_whole_number(d, 1, &x[2]));
    LK_TRY(lk_whole_math(d, "choice", 3, x, made));
    LK_TRY(lk_whole_reduce(d, "product", made, 4, made));
    return lk_whole_reshape(d, made, 2, (const int64_t[]){count, n});
}

/* CumSum and CumProd. */
static enum lk_status running(draft *d)
{
    enum { MOST = 2048 };
    value x, ones, rows;
    const struct lk_onnx_tensor *said;
    struct lk_onnx_tensor *matrix;
    int64_t excludes, is_back;
    int axis, order[LK_ONNX_AXES];
    LK_TRY(lk_whole_input(d, 0, &x));
    LK_TRY(lk_onnx_constant(d, 1, &said));
    LK_TRY(lk_onnx_say_integer(d, "exclusive", 0, &excludes));
    LK_TRY(lk_onnx_say_integer(d, "reverse", 0, &is_back));
    if (!said || said->count != 1)
        return lk_onnx_fail(d, "one axis is expected");
    LK_TRY(lk_onnx_axis(d, lk_onnx_integer(said, 0), x.rank, &axis));
    const int64_t n = x.dim[axis];
    if (n > MOST)
        return lk_onnx_fail(d, "along %lld elements, expected at most %d", (long long)n, MOST);
    LK_TRY(lk_onnx_new_tensor(d, LK_ONNX_FLOAT, 2, (const int64_t[]){n, n}, &matrix));
    for (int64_t from = 0; from < n; from++)
        for (int64_t to = 0; to < n; to++) {
            const int64_t behind = is_back ? from - to : to - from;
            lk_onnx_put_real(matrix, from * n + to, behind > 0 || (behind == 0 && !excludes));
        }
    LK_TRY(lk_whole_constant(d, matrix, &ones));
    LK_TRY(lk_whole_rows(d, &x, axis, order, &rows));
    LK_TRY(run_on(d, &rows, &ones, &rows));
    LK_TRY(lk_whole_reshape(d, &rows, x.rank, x.dim));
    LK_TRY(lk_whole_order(d, &rows, order, &rows));
    rows.type = x.type;
    return lk_onnx_give(d, 0, &rows);
}

/* --- softmax ----------------------------------------------------------------------------- */

/* Before operator set 13 over all axes from one on. */
static enum lk_status softmax(draft *d)
{
    value x;
    int64_t said;
    int axis;
    const bool is_old = d->file->operators < 13;
    LK_TRY(lk_whole_input(d, 0, &x));
    LK_TRY(lk_onnx_say_integer(d, "axis", is_old ? 1 : -1, &said));
    LK_TRY(lk_onnx_axis(d, said, x.rank, &axis));
    const unsigned all = (1u << x.rank) - 1,
                   axes = is_old ? all & ~((1u << axis) - 1) : 1u << axis;
    LK_TRY(lk_whole_softmax(d, &x, axes, strcmp(d->node->op, "LogSoftmax") == 0, &x));
    return lk_onnx_give(d, 0, &x);
}

/* 1 where the first of the largest is. */
static enum lk_status hardmax(draft *d)
{
    value x, place, steps;
    int64_t said, dim[LK_ONNX_AXES];
    int axis;
    struct lk_onnx_tensor *counts;
    const bool is_old = d->file->operators < 13;
    LK_TRY(lk_whole_input(d, 0, &x));
    LK_TRY(lk_onnx_say_integer(d, "axis", is_old ? 1 : -1, &said));
    LK_TRY(lk_onnx_axis(d, said, x.rank, &axis));
    if (is_old && axis != x.rank - 1)
        return lk_onnx_fail(d, "over several axes it is not supported");
    LK_TRY(lk_whole_reduce(d, "largest_place", &x, 1u << axis, &place));
    LK_TRY(lk_onnx_new_tensor(d, LK_ONNX_FLOAT, 1, &x.dim[axis], &counts));
    for (int64_t i = 0; i < counts->count; i++)
        lk_onnx_put_real(counts, i, (double)i);
    LK_TRY(lk_whole_constant(d, counts, &steps));
    for (int i = 0; i < x.rank; i++)
        dim[i] = i == axis ? x.dim[i] : 1;
    LK_TRY(lk_whole_reshape(d, &steps, x.rank, dim));
    LK_TRY(lk_whole_two(d, "equal", &place, &steps, &place));
    place.type = x.type;
    return lk_onnx_give(d, 0, &place);
}

/* --- norms ------------------------------------------------------------------------------- */

static enum lk_status optional(draft *d, int index, value *x, bool *found)
{
    *found = lk_whole_has(d, index);
    return *found ? lk_whole_weight(d, index, x) : LK_OK;
}

/* Training mode also gives the moving averages. */
static enum lk_status batch_norm(draft *d)
{
    value x, p[4], mean, variance, other;
    int64_t trains, is_spatial, dim[LK_ONNX_AXES];
    const double epsilon = lk_whole_say(d, "epsilon", 1e-5),
                 momentum = lk_whole_say(d, "momentum", 0.9);
    LK_TRY(lk_whole_input(d, 0, &x));
    LK_TRY(lk_onnx_say_integer(d, "training_mode", 0, &trains));
    LK_TRY(lk_onnx_say_integer(d, "spatial", 1, &is_spatial));
    if (x.rank < 2 || !is_spatial)
        return lk_onnx_fail(d, "[n, c, ...] is expected");
    for (int i = 0; i < x.rank; i++)
        dim[i] = i == 1 ? x.dim[1] : 1;
    for (int i = 0; i < 4; i++) {
        LK_TRY(i < 2 ? lk_whole_weight(d, 1 + i, &p[i]) : lk_whole_input(d, 1 + i, &p[i]));
        LK_TRY(lk_whole_reshape(d, &p[i], x.rank, dim));
    }
    mean = p[2];
    variance = p[3];
    if (trains) {
        const unsigned axes = ((1u << x.rank) - 1) & ~2u;
        LK_TRY(lk_whole_reduce(d, "mean", &x, axes, &mean));
        LK_TRY(lk_whole_two(d, "difference", &x, &mean, &other));
        LK_TRY(lk_whole_apply(d, "square", "", &other, &other));
        LK_TRY(lk_whole_reduce(d, "mean", &other, axes, &variance));
        for (int i = 0; i < 2; i++) {
            LK_TRY(lk_whole_with(d, "product", &p[2 + i], momentum, &other));
            LK_TRY(lk_whole_with(d, "product", i ? &variance : &mean, 1 - momentum, &p[2 + i]));
            LK_TRY(lk_whole_two(d, "sum", &other, &p[2 + i], &other));
            LK_TRY(lk_whole_reshape(d, &other, 1, &x.dim[1]));
            LK_TRY(lk_onnx_give(d, 1 + i, &other));
        }
    } else if (d->node->output_count > 1 && *d->node->outputs[1]) {
        return lk_onnx_fail(d, "its further outputs are not supported");
    }
    LK_TRY(lk_whole_with(d, "sum", &variance, epsilon, &variance));
    LK_TRY(lk_whole_math(d, "sqrt", 1, &variance, &variance));
    LK_TRY(lk_whole_two(d, "difference", &x, &mean, &x));
    LK_TRY(lk_whole_two(d, "quotient", &x, &variance, &x));
    LK_TRY(lk_whole_two(d, "product", &x, &p[0], &x));
    LK_TRY(lk_whole_two(d, "sum", &x, &p[1], &x));
    return lk_onnx_give(d, 0, &x);
}

/* Over all axes from one on; it may also tell mean and 1 / deviation. */
static enum lk_status layer_norm(draft *d)
{
    value x, mean, apart, inverse, other;
    int64_t said;
    int axis;
    bool found;
    const bool has_mean = strcmp(d->node->op, "LayerNormalization") == 0;
    LK_TRY(lk_whole_input(d, 0, &x));
    LK_TRY(lk_onnx_say_integer(d, "axis", -1, &said));
    LK_TRY(lk_onnx_axis(d, said, x.rank, &axis));
    const unsigned axes = ((1u << x.rank) - 1) & ~((1u << axis) - 1);
    apart = x;
    if (has_mean) {
        LK_TRY(lk_whole_reduce(d, "mean", &x, axes, &mean));
        LK_TRY(lk_whole_two(d, "difference", &x, &mean, &apart));
        LK_TRY(lk_onnx_give(d, 1, &mean));
    }
    LK_TRY(lk_whole_apply(d, "square", "", &apart, &inverse));
    LK_TRY(lk_whole_reduce(d, "mean", &inverse, axes, &inverse));
    LK_TRY(lk_whole_with(d, "sum", &inverse, lk_whole_say(d, "epsilon", 1e-5), &inverse));
    LK_TRY(lk_whole_math(d, "sqrt", 1, &inverse, &inverse));
    LK_TRY(lk_whole_math(d, "reciprocal", 1, &inverse, &inverse));
    LK_TRY(lk_onnx_give(d, 2, &inverse));
    LK_TRY(lk_whole_two(d, "product", &apart, &inverse, &apart));
    for (int i = 1; i < 3; i++) {
        LK_TRY(optional(d, i, &other, &found));
        if (found)
            LK_TRY(lk_whole_two(d, i == 1 ? "product" : "sum", &apart, &other, &apart));
    }
    apart.type = x.type;
    return lk_onnx_give(d, 0, &apart);
}

static enum lk_status instance_norm(draft *d)
{
    value x, scale, shift;
    LK_TRY(lk_whole_input(d, 0, &x));
    LK_TRY(lk_whole_weight(d, 1, &scale));
    LK_TRY(lk_whole_weight(d, 2, &shift));
    if (x.rank < 3)
        return lk_onnx_fail(d, "[n, c, ...] is expected");
    LK_TRY(lk_whole_normalize(d, &x, ((1u << x.rank) - 1) & ~3u,
                              lk_whole_say(d, "epsilon", 1e-5), &x));
    LK_TRY(lk_whole_scale(d, &x, 1, &scale, &shift, &x));
    return lk_onnx_give(d, 0, &x);
}

/* Before operator set 21 scale and shift are those of groups. */
static enum lk_status group_norm(draft *d)
{
    value x, p[2], all;
    int64_t groups;
    LK_TRY(lk_whole_input(d, 0, &x));
    LK_TRY(lk_onnx_say_integer(d, "num_groups", 1, &groups));
    for (int i = 0; i < 2; i++)
        LK_TRY(lk_whole_weight(d, 1 + i, &p[i]));
    if (x.rank < 2 || groups < 1 || x.dim[1] % groups)
        return lk_onnx_fail(d, "%lld groups of channels", (long long)groups);
    const int64_t shape[] = {x.dim[0], groups,
                             lk_whole_count(x.rank, x.dim) / x.dim[0] / groups};
    all = x;
    LK_TRY(lk_whole_reshape(d, &all, 3, shape));
    LK_TRY(lk_whole_normalize(d, &all, 4, lk_whole_say(d, "epsilon", 1e-5), &all));
    const bool of_groups = lk_whole_count(p[0].rank, p[0].dim) == groups && groups != x.dim[1];
    if (of_groups)
        LK_TRY(lk_whole_scale(d, &all, 1, &p[0], &p[1], &all));
    LK_TRY(lk_whole_reshape(d, &all, x.rank, x.dim));
    if (!of_groups)
        LK_TRY(lk_whole_scale(d, &all, 1, &p[0], &p[1], &all));
    return lk_onnx_give(d, 0, &all);
}

static enum lk_status mean_variance(draft *d)
{
    value x;
    unsigned axes;
    bool found;
    LK_TRY(lk_whole_input(d, 0, &x));
    LK_TRY(lk_whole_axes(d, "axes", -1, x.rank, &axes, &found));
    LK_TRY(lk_whole_normalize(d, &x, found ? axes : 13u, 1e-9, &x));
    return lk_onnx_give(d, 0, &x);
}

/* x / |x|, 0 where that is 0. */
static enum lk_status lp_norm(draft *d)
{
    value x, length, all[3];
    int64_t said, power;
    int axis;
    LK_TRY(lk_whole_input(d, 0, &x));
    LK_TRY(lk_onnx_say_integer(d, "axis", -1, &said));
    LK_TRY(lk_onnx_say_integer(d, "p", 2, &power));
    LK_TRY(lk_onnx_axis(d, said, x.rank, &axis));
    if (power != 1 && power != 2)
        return lk_onnx_fail(d, "'p' is %lld", (long long)power);
    LK_TRY(lk_whole_apply(d, power == 2 ? "square" : "abs", "", &x, &length));
    LK_TRY(lk_whole_reduce(d, "sum", &length, 1u << axis, &length));
    if (power == 2)
        LK_TRY(lk_whole_math(d, "sqrt", 1, &length, &length));
    all[0] = length;
    LK_TRY(lk_whole_two(d, "quotient", &x, &length, &all[1]));
    LK_TRY(lk_whole_number(d, 0, &all[2]));
    LK_TRY(lk_whole_math(d, "choice", 3, all, &x));
    return lk_onnx_give(d, 0, &x);
}

#define SUM_OF(name)                                                                           \
    {                                                                                          \
        name, reduce, LK_ONNX_KNOWS("axes", "keepdims", "noop_with_empty_axes")                \
    }

const struct lk_onnx_operator lk_array_norms[] = {
    SUM_OF("ReduceSum"),
    SUM_OF("ReduceMean"),
    SUM_OF("ReduceMax"),
    SUM_OF("ReduceMin"),
    SUM_OF("ReduceProd"),
    SUM_OF("ReduceLogSumExp"),
    SUM_OF("ReduceL1"),
    SUM_OF("ReduceL2"),
    SUM_OF("ReduceSumSquare"),
    SUM_OF("ReduceLogSum"),
    {"ArgMax", place_of_extreme, LK_ONNX_KNOWS("axis", "keepdims", "select_last_index")},
    {"ArgMin", place_of_extreme, LK_ONNX_KNOWS("axis", "keepdims", "select_last_index")},
    {"CumSum", running, LK_ONNX_KNOWS("exclusive", "reverse")},
    {"CumProd", running, LK_ONNX_KNOWS("exclusive", "reverse")},
    {"Softmax", softmax, LK_ONNX_KNOWS("axis")},
    {"LogSoftmax", softmax, LK_ONNX_KNOWS("axis")},
    {"Hardmax", hardmax, LK_ONNX_KNOWS("axis")},
    {"BatchNormalization", batch_norm,
     LK_ONNX_KNOWS("epsilon", "momentum", "training_mode", "spatial", "is_test",
                   "consumed_inputs")},
    {"LayerNormalization", layer_norm, LK_ONNX_KNOWS("axis", "epsilon", "stash_type")},
    {"RMSNormalization", layer_norm, LK_ONNX_KNOWS("axis", "epsilon", "stash_type")},
    {"InstanceNormalization", instance_norm, LK_ONNX_KNOWS("epsilon", "consumed_inputs")},
    {"GroupNormalization", group_norm, LK_ONNX_KNOWS("epsilon", "num_groups", "stash_type")},
    {"MeanVarianceNormalization", mean_variance, LK_ONNX_KNOWS("axes")},
    {"LpNormalization", lp_norm, LK_ONNX_KNOWS("axis", "p")},
    {0},
};
