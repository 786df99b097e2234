/* Operations on elements of arrays as operators of ONNX: functions, products of matrices,
 * picked elements, and one number of many. */
#include "model/onnx_export/export.h"

#include "base/fail.h"
#include <string.h>

/* --- functions -----------------------------------------------------------------------------
 */

/* alpha, beta: attributes that have our options' numbers. */
static const struct function {
    const char *ours, *theirs, *alpha, *beta;
    bool truths, is_truth; /* reads, makes bool */
} functions[] = {
    {"log", "Log", NULL, NULL, false, false},
    {"sqrt", "Sqrt", NULL, NULL, false, false},
    {"reciprocal", "Reciprocal", NULL, NULL, false, false},
    {"sin", "Sin", NULL, NULL, false, false},
    {"cos", "Cos", NULL, NULL, false, false},
    {"tan", "Tan", NULL, NULL, false, false},
    {"asin", "Asin", NULL, NULL, false, false},
    {"acos", "Acos", NULL, NULL, false, false},
    {"atan", "Atan", NULL, NULL, false, false},
    {"sinh", "Sinh", NULL, NULL, false, false},
    {"cosh", "Cosh", NULL, NULL, false, false},
    {"asinh", "Asinh", NULL, NULL, false, false},
    {"acosh", "Acosh", NULL, NULL, false, false},
    {"atanh", "Atanh", NULL, NULL, false, false},
    {"erf", "Erf", NULL, NULL, false, false},
    {"floor", "Floor", NULL, NULL, false, false},
    {"ceil", "Ceil", NULL, NULL, false, false},
    {"round", "Round", NULL, NULL, false, false},
    {"sign", "Sign", NULL, NULL, false, false},
    {"celu", "Celu", "alpha", NULL, false, false},
    {"scaled_elu", "Selu", "alpha", "gamma", false, false},
    {"threshold", "ThresholdedRelu", "alpha", NULL, false, false},
    {"shrink", "Shrink", "lambd", "bias", false, false},
    {"sum", "Add", NULL, NULL, false, false},
    {"difference", "Sub", NULL, NULL, false, false},
    {"product", "Mul", NULL, NULL, false, false},
    {"quotient", "Div", NULL, NULL, false, false},
    {"power", "Pow", NULL, NULL, false, false},
    {"smaller", "Min", NULL, NULL, false, false},
    {"larger", "Max", NULL, NULL, false, false},
    {"slope", "PRelu", NULL, NULL, false, false},
    {"remainder", "Mod", NULL, NULL, false, false},
    {"is_nan", "IsNaN", NULL, NULL, false, true},
    {"is_infinite", "IsInf", NULL, NULL, false, true},
    {"equal", "Equal", NULL, NULL, false, true},
    {"less", "Less", NULL, NULL, false, true},
    {"less_equal", "LessOrEqual", NULL, NULL, false, true},
    {"not", "Not", NULL, NULL, true, true},
    {"and", "And", NULL, NULL, true, true},
    {"or", "Or", NULL, NULL, true, true},
    {"xor", "Xor", NULL, NULL, true, true},
    {0},
};

/* Names of values between, by the number of an input. */
static const char *const shaped[] = {"a.shaped", "b.shaped", "c.shaped"};
static const char *const shapes[] = {"a.shape", "b.shape", "c.shape"};
static const char *const truths[] = {"a.truth", "b.truth", "c.truth"};

static enum lk_status emit_cast(struct lk_onnx_export *e, const char *x, enum lk_onnx_type to,
                                const char *y)
{
    LK_TRY(lk_onnx_emit_node(e, "Cast", y, 1, &x));
    lk_onnx_emit_integer(e, "to", to);
    return LK_OK;
}

static enum lk_status emit_truth(struct lk_onnx_export *e, const char *what, const char **x)
{
    LK_TRY(lk_onnx_emit(e, "Cast", what, 1, x, x));
    lk_onnx_emit_integer(e, "to", LK_ONNX_BOOL);
    return LK_OK;
}

static enum lk_status emit_function(struct lk_onnx_export *e, const struct function *f,
                                    const char **x, const char *y)
{
    const char *made = y;
    for (int i = 0; f->truths && i < e->node->inputs; i++)
        LK_TRY(emit_truth(e, truths[i], &x[i]));
    if (f->is_truth)
        LK_TRY(lk_onnx_name(e, "truth", &made));
    LK_TRY(lk_onnx_emit_node(e, f->theirs, made, e->node->inputs, x));
    if (f->alpha)
        lk_onnx_emit_real(e, f->alpha, lk_onnx_option_real(e, "alpha"));
    if (f->beta)
        lk_onnx_emit_real(e, f->beta, lk_onnx_option_real(e, "beta"));
    if (strcmp(f->theirs, "Mod") == 0)
        lk_onnx_emit_integer(e, "fmod", 1);
    if (strcmp(f->theirs, "IsInf") == 0) {
        lk_onnx_emit_integer(e, "detect_negative", lk_onnx_option_real(e, "alpha") != 0);
        lk_onnx_emit_integer(e, "detect_positive", lk_onnx_option_real(e, "beta") != 0);
    }
    return f->is_truth ? emit_cast(e, made, LK_ONNX_FLOAT, y) : LK_OK;
}

/* x towards 0: its sign times what is left of its size. */
static enum lk_status emit_truncate(struct lk_onnx_export *e, const char *x, const char *y)
{
    const char *parts[2], *size;
    LK_TRY(lk_onnx_emit(e, "Sign", "sign", 1, &x, &parts[0]));
    LK_TRY(lk_onnx_emit(e, "Abs", "size", 1, &x, &size));
    LK_TRY(lk_onnx_emit(e, "Floor", "floor", 1, &size, &parts[1]));
    return lk_onnx_emit_node(e, "Mul", y, 2, parts);
}

/* a - b floor(a / b), which has the sign of b. */
static enum lk_status emit_modulo(struct lk_onnx_export *e, const char *const *x, const char *y)
{
    const char *quotient, *parts[2] = {x[1]}, *rest[2] = {x[0]};
    LK_TRY(lk_onnx_emit(e, "Div", "quotient", 2, x, &quotient));
    LK_TRY(lk_onnx_emit(e, "Floor", "floor", 1, &quotient, &parts[1]));
    LK_TRY(lk_onnx_emit(e, "Mul", "whole", 2, parts, &rest[1]));
    return lk_onnx_emit_node(e, "Sub", y, 2, rest);
}

/* What takes several operators. */
static enum lk_status emit_other(struct lk_onnx_export *e, const char *name, const char **x,
                                 const char *y)
{
    const double alpha = lk_onnx_option_real(e, "alpha"), beta = lk_onnx_option_real(e, "beta");
    const char *inputs[3] = {x[0]}, *made;
    if (strcmp(name, "clip") == 0) {
        LK_TRY(lk_onnx_emit_real_constant(e, "alpha", alpha, &inputs[1]));
        LK_TRY(lk_onnx_emit_real_constant(e, "beta", beta, &inputs[2]));
        return lk_onnx_emit_node(e, "Clip", y, 3, inputs);
    }
    if (strcmp(name, "swish") == 0) {
        LK_TRY(lk_onnx_emit_real_constant(e, "alpha", alpha, &inputs[1]));
        LK_TRY(lk_onnx_emit(e, "Mul", "scaled", 2, inputs, &made));
        LK_TRY(lk_onnx_emit(e, "Sigmoid", "gate", 1, &made, &inputs[1]));
        return lk_onnx_emit_node(e, "Mul", y, 2, inputs);
    }
    if (strcmp(name, "truncate") == 0)
        return emit_truncate(e, x[0], y);
    if (strcmp(name, "whole_quotient") == 0) {
        LK_TRY(lk_onnx_emit(e, "Div", "quotient", 2, x, &made));
        return emit_truncate(e, made, y);
    }
    if (strcmp(name, "modulo") == 0)
        return emit_modulo(e, x, y);
    if (strcmp(name, "is_true") != 0 && strcmp(name, "choice") != 0)
        return lk_onnx_export_fail(e, "function '%s' is not exported", name);
    LK_TRY(emit_truth(e, truths[0], &x[0]));
    return strcmp(name, "choice") == 0 ? lk_onnx_emit_node(e, "Where", y, 3, x)
                                       : emit_cast(e, x[0], LK_ONNX_FLOAT, y);
}

/* Inputs have as many elements as the first one, perhaps in another shape. */
static enum lk_status math(struct lk_onnx_export *e, const char *const *x, const char *y)
{
    const struct lk_op_shapes *of = &e->node->shapes;
    const char *inputs[3];
    char name[96];
    lk_onnx_option(e, "function", name);
    for (int i = 0; i < e->node->inputs; i++) {
        inputs[i] = x[i];
        if (lk_shape_equal(&of->x[i], &of->y))
            continue;
        LK_TRY(lk_onnx_name(e, shaped[i], &inputs[i]));
        LK_TRY(lk_onnx_emit_reshape(e, shapes[i], x[i], &of->y, inputs[i]));
    }
    for (const struct function *f = functions; f->ours; f++)
        if (strcmp(f->ours, name) == 0)
            return emit_function(e, f, inputs, y);
    return emit_other(e, name, inputs, y);
}

/* --- arrays ------------------------------------------------------------------------------- */

static enum lk_status emit_flat(struct lk_onnx_export *e, const char *x, const char *y)
{
    return lk_onnx_emit_reshape(e, "flat", x, &e->node->shapes.y, y);
}

static enum lk_status matmul(struct lk_onnx_export *e, const char *const *x, const char *y)
{
    int64_t rows, inner, columns;
    const char *inputs[2], *product;
    lk_onnx_option_integers(e, "rows", 1, &rows);
    lk_onnx_option_integers(e, "inner", 1, &inner);
    lk_onnx_option_integers(e, "columns", 1, &columns);
    const int64_t matrices = lk_shape_count(&e->node->shapes.x[0]) / (rows * inner);
    for (int i = 0; i < 2; i++) {
        const struct lk_shape shape = {
            3, {matrices, i == 0 ? rows : inner, i == 0 ? inner : columns}};
        LK_TRY(lk_onnx_name(e, shaped[i], &inputs[i]));
        LK_TRY(lk_onnx_emit_reshape(e, shapes[i], x[i], &shape, inputs[i]));
    }
    LK_TRY(lk_onnx_emit(e, "MatMul", "product", 2, inputs, &product));
    return emit_flat(e, product, y);
}

/* Places that are none of x find `fill`, which is appended to it. */
static enum lk_status pick(struct lk_onnx_export *e, const char *const *x, const char *y)
{
    const int64_t count = lk_shape_count(&e->node->shapes.x[0]);
    const int64_t wanted = e->node->shapes.y.dim[0];
    const struct lk_shape flat = {1, {count}};
    const float *index;
    int64_t *places;
    const char *inputs[2], *padded[3];
    LK_TRY(lk_onnx_take_param(e, "index", &index));
    LK_TRY(lk_onnx_take(e, (size_t)wanted, sizeof *places, &places));
    for (int64_t i = 0; i < wanted; i++) {
        const bool is_place = index[i] >= -0.5F && index[i] < (float)count - 0.5F;
        places[i] = is_place ? (int64_t)(index[i] + 0.5F) : count;
    }
    LK_TRY(lk_onnx_name(e, "elements", &padded[0]));
    LK_TRY(lk_onnx_emit_reshape(e, "flat", x[0], &flat, padded[0]));
    LK_TRY(lk_onnx_emit_integers(e, "pads", 4, (int64_t[]){0, 0, 0, 1}, &padded[1]));
    LK_TRY(lk_onnx_emit_real_constant(e, "fill", lk_onnx_option_real(e, "fill"), &padded[2]));
    LK_TRY(lk_onnx_emit(e, "Pad", "padded", 3, padded, &inputs[0]));
    LK_TRY(lk_onnx_emit_integers(e, "places", (int)wanted, places, &inputs[1]));
    LK_TRY(lk_onnx_emit_node(e, "Gather", y, 2, inputs));
    lk_onnx_emit_integer(e, "axis", 1);
    return LK_OK;
}

enum lk_status lk_onnx_emit_reduce(struct lk_onnx_export *e, const char *op, int64_t axis,
                                   const char *x, const char *y)
{
    const bool has_input = e->graph.operators >= 18 || strcmp(op, "ReduceSum") == 0;
    const char *inputs[2] = {x, NULL};
    if (has_input)
        LK_TRY(lk_onnx_emit_integers(e, "axis", 1, &axis, &inputs[1]));
    LK_TRY(lk_onnx_emit_node(e, op, y, 2, inputs));
    lk_onnx_emit_integer(e, "keepdims", 0);
    return has_input ? LK_OK : lk_onnx_emit_list(e, "axes", 1, &axis);
}

static enum lk_status reduce(struct lk_onnx_export *e, const char *const *x, const char *y)
{
    static const char *const words[][2] = {
        {"sum", "ReduceSum"},        {"mean", "ReduceMean"},
        {"largest", "ReduceMax"},    {"smallest", "ReduceMin"},
        {"product", "ReduceProd"},   {"log_sum_exp", "ReduceLogSumExp"},
        {"largest_place", "ArgMax"}, {"smallest_place", "ArgMin"}};
    enum { FIRST_PLACE = 6 };
    int64_t length, inner;
    char name[96];
    int f = 0;
    const char *rows, *reduced, *number;
    lk_onnx_option(e, "function", name);
    lk_onnx_option_integers(e, "length", 1, &length);
    lk_onnx_option_integers(e, "inner", 1, &inner);
    while (strcmp(words[f][0], name) != 0)
        f++;
    const int64_t outer = lk_shape_count(&e->node->shapes.x[0]) / length / inner;
    const struct lk_shape shape = {3, {outer, length, inner}};
    LK_TRY(lk_onnx_name(e, "rows", &rows));
    LK_TRY(lk_onnx_emit_reshape(e, "shape", x[0], &shape, rows));
    LK_TRY(lk_onnx_name(e, "reduced", &reduced));
    if (f < FIRST_PLACE) {
        LK_TRY(lk_onnx_emit_reduce(e, words[f][1], 2, rows, reduced));
        return emit_flat(e, reduced, y);
    }
    LK_TRY(lk_onnx_emit_node(e, words[f][1], reduced, 1, &rows));
    lk_onnx_emit_integer(e, "axis", 2);
    lk_onnx_emit_integer(e, "keepdims", 0);
    lk_onnx_emit_integer(e, "select_last_index", lk_onnx_option_is(e, "last", "true"));
    LK_TRY(lk_onnx_name(e, "number", &number));
    LK_TRY(emit_cast(e, reduced, LK_ONNX_FLOAT, number));
    return emit_flat(e, number, y);
}

/* As many times as there are samples. */
static enum lk_status constant(struct lk_onnx_export *e, const char *const *x, const char *y)
{
    const char *inputs[2], *lengths[2], *all[2];
    LK_TRY(lk_onnx_emit_param(e, "value", true, NULL, &inputs[0]));
    LK_TRY(lk_onnx_emit(e, "Shape", "shape", 1, x, &all[0]));
    LK_TRY(lk_onnx_emit_integers(e, "first", 1, (int64_t[]){0}, &all[1]));
    LK_TRY(lk_onnx_emit(e, "Gather", "batch", 2, all, &lengths[0]));
    LK_TRY(lk_onnx_emit_integers(e, "count", 1, e->node->shapes.y.dim, &lengths[1]));
    LK_TRY(lk_onnx_emit(e, "Concat", "wanted", 2, lengths, &inputs[1]));
    lk_onnx_emit_integer(e, "axis", 0);
    return lk_onnx_emit_node(e, "Expand", y, 2, inputs);
}

const struct lk_onnx_pairing lk_onnx_array_pairings[] = {
    {"math", math},     {"matmul", matmul},     {"pick", pick},
    {"reduce", reduce}, {"constant", constant}, {0},
};
