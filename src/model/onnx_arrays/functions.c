/* ONNX's functions of single numbers, of whole arrays. */
#include "model/onnx_arrays/whole.h"

#include "base/fail.h"
#include "model/onnx_arrays/tables.h"
#include <math.h>
#include <string.h>

/* --- one number -------------------------------------------------------------------------- */

/* Theirs, ours, and whether truths come out. */
static const struct {
    const char *name, *function;
    bool is_truth;
} of_one[] = {
    {"Log", "log", false},     {"Sqrt", "sqrt", false},   {"Reciprocal", "reciprocal", false},
    {"Sin", "sin", false},     {"Cos", "cos", false},     {"Tan", "tan", false},
    {"Asin", "asin", false},   {"Acos", "acos", false},   {"Atan", "atan", false},
    {"Sinh", "sinh", false},   {"Cosh", "cosh", false},   {"Asinh", "asinh", false},
    {"Acosh", "acosh", false}, {"Atanh", "atanh", false}, {"Erf", "erf", false},
    {"Floor", "floor", false}, {"Ceil", "ceil", false},   {"Round", "round", false},
    {"Sign", "sign", false},   {"Not", "not", true},      {"IsNaN", "is_nan", true},
};

static enum lk_status plain(draft *d)
{
    value x;
    int f = 0;
    while (strcmp(of_one[f].name, d->node->op) != 0)
        f++;
    LK_TRY(lk_whole_input(d, 0, &x));
    LK_TRY(lk_whole_math(d, of_one[f].function, 1, &x, &x));
    if (of_one[f].is_truth)
        x.type = LK_ONNX_BOOL;
    return lk_onnx_give(d, 0, &x);
}

static enum lk_status is_infinite(draft *d)
{
    value x;
    int64_t negative, positive;
    LK_TRY(lk_whole_input(d, 0, &x));
    LK_TRY(lk_onnx_say_integer(d, "detect_negative", 1, &negative));
    LK_TRY(lk_onnx_say_integer(d, "detect_positive", 1, &positive));
    LK_TRY(lk_whole_math_of(d, "is_infinite", negative != 0, positive != 0, &x, &x));
    x.type = LK_ONNX_BOOL;
    return lk_onnx_give(d, 0, &x);
}

/* Operations of their own, with no option. */
static const char *const applied[][2] = {
    {"Relu", "relu"}, {"Sigmoid", "sigmoid"},   {"Tanh", "tanh"},
    {"Exp", "exp"},   {"Softplus", "softplus"}, {"Softsign", "softsign"},
    {"Abs", "abs"},   {"Mish", "mish"},         {"HardSwish", "hard_swish"}};

static enum lk_status apply(draft *d)
{
    value x;
    int f = 0;
    while (strcmp(applied[f][0], d->node->op) != 0)
        f++;
    LK_TRY(lk_whole_input(d, 0, &x));
    LK_TRY(lk_whole_apply(d, applied[f][1], "", &x, &x));
    return lk_onnx_give(d, 0, &x);
}

static enum lk_status gelu(draft *d)
{
    value x;
    const char *how;
    LK_TRY(lk_onnx_say_text(d, "approximate", "none", &how));
    LK_TRY(lk_whole_input(d, 0, &x));
    LK_TRY(lk_whole_apply(d, strcmp(how, "tanh") == 0 ? "gelu_tanh" : "gelu", "", &x, &x));
    return lk_onnx_give(d, 0, &x);
}

/* Functions of `math` with one or two numbers that the node says. */
static const struct {
    const char *name, *function, *alpha, *beta;
    double standard[2];
} with_numbers[] = {
    {"Elu", "scaled_elu", "alpha", "", {1, 1}},
    {"Selu", "scaled_elu", "alpha", "gamma", {1.67326319217681884765625, 1.0507010221481323}},
    {"Celu", "celu", "alpha", "", {1, 1}},
    {"ThresholdedRelu", "threshold", "alpha", "", {1, 1}},
    {"Shrink", "shrink", "lambd", "bias", {0.5, 0}},
    {"Swish", "swish", "alpha", "", {1, 1}},
};

static enum lk_status function_with_numbers(draft *d)
{
    value x;
    int f = 0;
    while (strcmp(with_numbers[f].name, d->node->op) != 0)
        f++;
    LK_TRY(lk_whole_input(d, 0, &x));
    LK_TRY(lk_whole_math_of(d, with_numbers[f].function,
                            lk_whole_say(d, with_numbers[f].alpha, with_numbers[f].standard[0]),
                            lk_whole_say(d, with_numbers[f].beta, with_numbers[f].standard[1]),
                            &x, &x));
    return lk_onnx_give(d, 0, &x);
}

static enum lk_status leaky(draft *d)
{
    value x;
    LK_TRY(lk_whole_input(d, 0, &x));
    LK_TRY(lk_whole_with(d, "slope", &x, lk_whole_say(d, "alpha", 0.01), &x));
    return lk_onnx_give(d, 0, &x);
}

static enum lk_status hard_sigmoid(draft *d)
{
    value x;
    LK_TRY(lk_whole_input(d, 0, &x));
    LK_TRY(lk_whole_with(d, "product", &x, lk_whole_say(d, "alpha", 0.2), &x));
    LK_TRY(lk_whole_with(d, "sum", &x, lk_whole_say(d, "beta", 0.5), &x));
    LK_TRY(lk_whole_math_of(d, "clip", 0, 1, &x, &x));
    return lk_onnx_give(d, 0, &x);
}

static enum lk_status negate(draft *d)
{
    value x;
    LK_TRY(lk_whole_input(d, 0, &x));
    LK_TRY(lk_whole_with(d, "product", &x, -1, &x));
    return lk_onnx_give(d, 0, &x);
}

/* An upper bound below the lower one counts. */
static enum lk_status clip(draft *d)
{
    static const char *const names[] = {"min", "max"}, *const functions[] = {"larger",
                                                                             "smaller"};
    value x, bound;
    LK_TRY(lk_whole_input(d, 0, &x));
    const enum lk_onnx_type type = x.type;
    for (int i = 0; i < 2; i++) {
        const struct lk_onnx_attribute *said = lk_onnx_find_attribute(d->node, names[i]);
        if (lk_whole_has(d, 1 + i)) {
            LK_TRY(lk_whole_input(d, 1 + i, &bound));
            LK_TRY(lk_whole_two(d, functions[i], &x, &bound, &x));
        } else if (said) {
            LK_TRY(lk_whole_with(d, functions[i], &x, (double)said->real, &x));
        }
    }
    x.type = type;
    return lk_onnx_give(d, 0, &x);
}

/* --- two and more ------------------------------------------------------------------------ */

static const struct {
    const char *name, *function;
    bool is_truth, counts; /* counts: it computes with whole numbers, whose width matters */
} of_two[] = {
    {"Add", "sum", false, true},      {"Sub", "difference", false, true},
    {"Mul", "product", false, true},  {"Div", "quotient", false, true},
    {"Pow", "power", false, true},    {"Sum", "sum", false, true},
    {"Mean", "sum", false, false},    {"Min", "smaller", false, false},
    {"Max", "larger", false, false},  {"Equal", "equal", true, false},
    {"Less", "less", true, false},    {"LessOrEqual", "less_equal", true, false},
    {"Greater", "less", true, false}, {"GreaterOrEqual", "less_equal", true, false},
    {"And", "and", true, false},      {"Or", "or", true, false},
    {"Xor", "xor", true, false},      {"PRelu", "slope", false, false},
};

/* What whole numbers of a type become in floats must be what they are. */
static enum lk_status check_width(const draft *d, enum lk_onnx_type type)
{
    if (lk_onnx_is_whole(type) && lk_onnx_type_bytes(type) < 4)
        return lk_onnx_fail(d, "arithmetic with %s is not supported", lk_onnx_type_name(type));
    return LK_OK;
}

/* Operators of old sets say where the second input's axes begin: axis, with broadcast 1. */
static enum lk_status place_axes(const draft *d, const value *x, value *y)
{
    int64_t axis, repeats, dim[LK_ONNX_AXES];
    LK_TRY(lk_onnx_say_integer(d, "broadcast", 0, &repeats));
    LK_TRY(lk_onnx_say_integer(d, "axis", INT64_MAX, &axis));
    if (strcmp(d->node->op, "PRelu") == 0 && d->file->operators < 7)
        axis = repeats = 1; /* slopes are of channels */
    if (!repeats || axis == INT64_MAX || y->rank >= x->rank || x->rank < 2)
        return LK_OK;
    axis = axis < 0 ? axis + x->rank : axis;
    if (axis < 0 || axis + y->rank > x->rank)
        return lk_onnx_fail(d, "'axis' %lld", (long long)axis);
    for (int i = 0; i < x->rank; i++)
        dim[i] = i >= axis && i < axis + y->rank ? y->dim[i - axis] : 1;
    return lk_whole_reshape(d, y, x->rank, dim);
}

static enum lk_status join_two(draft *d, int f, const value *x, value *y, value *made)
{
    const bool is_whole = lk_onnx_is_whole(x->type);
    const bool is_turned = strncmp(of_two[f].name, "Greater", 7) == 0;
    const char *function = of_two[f].function;
    const enum lk_onnx_type type = x->type;
    LK_TRY(place_axes(d, x, y));
    if (is_whole && strcmp(function, "quotient") == 0)
        function = "whole_quotient";
    LK_TRY(lk_whole_two(d, function, is_turned ? y : x, is_turned ? x : y, made));
    made->type = of_two[f].is_truth ? LK_ONNX_BOOL : type;
    return is_whole && strcmp(function, "power") == 0
               ? lk_whole_math(d, "truncate", 1, made, made)
               : LK_OK;
}

static enum lk_status arithmetic(draft *d)
{
    value made, next;
    int f = 0;
    const int count = d->node->input_count;
    while (strcmp(of_two[f].name, d->node->op) != 0)
        f++;
    if (count < 1)
        return lk_onnx_fail(d, "it reads nothing");
    LK_TRY(lk_whole_input(d, 0, &made));
    if (of_two[f].counts)
        LK_TRY(check_width(d, made.type));
    for (int i = 1; i < count; i++) {
        LK_TRY(lk_whole_input(d, i, &next));
        LK_TRY(join_two(d, f, &made, &next, &made));
    }
    if (strcmp(d->node->op, "Mean") == 0)
        LK_TRY(lk_whole_with(d, "quotient", &made, count, &made));
    return lk_onnx_give(d, 0, &made);
}

static enum lk_status modulo(draft *d)
{
    value x, y;
    int64_t is_c;
    LK_TRY(lk_onnx_say_integer(d, "fmod", 0, &is_c));
    LK_TRY(lk_whole_input(d, 0, &x));
    LK_TRY(lk_whole_input(d, 1, &y));
    const enum lk_onnx_type type = x.type;
    LK_TRY(lk_whole_two(d, is_c ? "remainder" : "modulo", &x, &y, &x));
    x.type = type;
    return lk_onnx_give(d, 0, &x);
}

static enum lk_status where(draft *d)
{
    value x[3];
    for (int i = 0; i < 3; i++)
        LK_TRY(lk_whole_input(d, i, &x[i]));
    LK_TRY(lk_whole_math(d, "choice", 3, x, x));
    return lk_onnx_give(d, 0, x);
}

/* --- types ------------------------------------------------------------------------------- */

/* What is left of whole numbers in so many bits. */
static enum lk_status wrap(draft *d, enum lk_onnx_type to, value *x)
{
    const double all = lk_onnx_type_bytes(to) == 1 ? 256 : 65536;
    const bool is_signed = to == LK_ONNX_INT8 || to == LK_ONNX_INT16;
    if (is_signed)
        LK_TRY(lk_whole_with(d, "sum", x, all / 2, x));
    LK_TRY(lk_whole_with(d, "modulo", x, all, x));
    return is_signed ? lk_whole_with(d, "difference", x, all / 2, x) : LK_OK;
}

/* Floats stay as they are but that narrow ones are rounded where they come out. */
static enum lk_status convert_type(draft *d, value *x, enum lk_onnx_type to)
{
    value limit, huge;
    if (to == LK_ONNX_BOOL) {
        LK_TRY(lk_whole_math(d, "is_true", 1, x, x));
    } else if (lk_onnx_is_whole(to)) {
        if (to == LK_ONNX_UINT32 || to == LK_ONNX_UINT64)
            return lk_onnx_fail(d, "values become %s, which is not supported",
                                lk_onnx_type_name(to));
        LK_TRY(lk_whole_math(d, "truncate", 1, x, x));
        if (lk_onnx_type_bytes(to) < 4)
            LK_TRY(wrap(d, to, x));
    } else if (to == LK_ONNX_HALF && x->type != LK_ONNX_HALF) {
        value all[3];
        LK_TRY(lk_whole_apply(d, "abs", "", x, &limit)); /* what a half has not is infinite */
        LK_TRY(lk_whole_with(d, "less", &limit, 65520, &all[0]));
        LK_TRY(lk_whole_with(d, "product", x, 3e38, &huge));
        LK_TRY(lk_whole_with(d, "product", &huge, 3e38, &all[2]));
        all[1] = *x;
        LK_TRY(lk_whole_math(d, "choice", 3, all, x));
    } else if (to != LK_ONNX_FLOAT && to != LK_ONNX_DOUBLE && to != LK_ONNX_HALF) {
        return lk_onnx_fail(d, "values become %s, which is not supported",
                            lk_onnx_type_name(to));
    }
    x->type = to;
    return LK_OK;
}

static enum lk_status cast(draft *d)
{
    value x;
    int64_t to;
    LK_TRY(lk_whole_input(d, 0, &x));
    LK_TRY(lk_onnx_say_integer(d, "to", 0, &to));
    LK_TRY(convert_type(d, &x, (enum lk_onnx_type)to));
    return lk_onnx_give(d, 0, &x);
}

static enum lk_status cast_like(draft *d)
{
    value x;
    const value *like = lk_onnx_input(d, 1);
    LK_TRY(lk_whole_input(d, 0, &x));
    if (!like)
        return lk_onnx_fail(d, "its input 1 is left out");
    const enum lk_onnx_type to = like->constant ? like->constant->type : like->type;
    LK_TRY(convert_type(d, &x, to ? to : LK_ONNX_FLOAT));
    return lk_onnx_give(d, 0, &x);
}

#define OF_ONE(name)                                                                           \
    {                                                                                          \
        name, plain, LK_ONNX_KNOWS(NULL)                                                       \
    }
#define APPLIED(name)                                                                          \
    {                                                                                          \
        name, apply, LK_ONNX_KNOWS("consumed_inputs")                                          \
    }
#define OF_TWO(name)                                                                           \
    {                                                                                          \
        name, arithmetic, LK_ONNX_KNOWS("axis", "broadcast", "consumed_inputs")                \
    }

const struct lk_onnx_operator lk_array_functions[] = {
    OF_ONE("Log"),
    OF_ONE("Sqrt"),
    OF_ONE("Reciprocal"),
    OF_ONE("Sin"),
    OF_ONE("Cos"),
    OF_ONE("Tan"),
    OF_ONE("Asin"),
    OF_ONE("Acos"),
    OF_ONE("Atan"),
    OF_ONE("Sinh"),
    OF_ONE("Cosh"),
    OF_ONE("Asinh"),
    OF_ONE("Acosh"),
    OF_ONE("Atanh"),
    OF_ONE("Erf"),
    OF_ONE("Floor"),
    OF_ONE("Ceil"),
    OF_ONE("Round"),
    OF_ONE("Sign"),
    OF_ONE("Not"),
    OF_ONE("IsNaN"),
    APPLIED("Relu"),
    APPLIED("Sigmoid"),
    APPLIED("Tanh"),
    APPLIED("Exp"),
    APPLIED("Softplus"),
    APPLIED("Softsign"),
    APPLIED("Abs"),
    APPLIED("Mish"),
    APPLIED("HardSwish"),
    {"Elu", function_with_numbers, LK_ONNX_KNOWS("alpha")},
    {"Selu", function_with_numbers, LK_ONNX_KNOWS("alpha", "gamma")},
    {"Celu", function_with_numbers, LK_ONNX_KNOWS("alpha")},
    {"ThresholdedRelu", function_with_numbers, LK_ONNX_KNOWS("alpha")},
    {"Shrink", function_with_numbers, LK_ONNX_KNOWS("lambd", "bias")},
    {"Swish", function_with_numbers, LK_ONNX_KNOWS("alpha")},
    {"IsInf", is_infinite, LK_ONNX_KNOWS("detect_negative", "detect_positive")},
    {"Gelu", gelu, LK_ONNX_KNOWS("approximate")},
    {"LeakyRelu", leaky, LK_ONNX_KNOWS("alpha")},
    {"HardSigmoid", hard_sigmoid, LK_ONNX_KNOWS("alpha", "beta")},
    {"Neg", negate, LK_ONNX_KNOWS(NULL)},
    {"Clip", clip, LK_ONNX_KNOWS("min", "max")},
    OF_TWO("Add"),
    OF_TWO("Sub"),
    OF_TWO("Mul"),
    OF_TWO("Div"),
    OF_TWO("Pow"),
    OF_TWO("Sum"),
    OF_TWO("Mean"),
    OF_TWO("Min"),
    OF_TWO("Max"),
    OF_TWO("Equal"),
    OF_TWO("Less"),
    OF_TWO("LessOrEqual"),
    OF_TWO("Greater"),
    OF_TWO("GreaterOrEqual"),
    OF_TWO("And"),
    OF_TWO("Or"),
    OF_TWO("Xor"),
    OF_TWO("PRelu"),
    {"Mod", modulo, LK_ONNX_KNOWS("fmod")},
    {"Where", where, LK_ONNX_KNOWS(NULL)},
    {"Cast", cast, LK_ONNX_KNOWS("to", "saturate", "round_mode")},
    {"CastLike", cast_like, LK_ONNX_KNOWS("saturate", "round_mode")},
    {0},
};
