/* ONNX's functions of single numbers, softmax, and arithmetic of two values. */
#include "model/onnx/convert.h"

#include "base/fail.h"
#include "base/number.h"
#include <math.h>
#include <string.h>

/* --- functions of one number ------------------------------------------------------------- */

/* Adds an operation that changes no shape, and keeps the shape that is noted. */
static enum lk_status apply(struct lk_onnx_draft *draft, const char *op, const char *options,
                            const struct lk_onnx_value *x, struct lk_onnx_value *made)
{
    const struct lk_onnx_value from = *x;
    LK_TRY(lk_onnx_add(draft, op, options, 1, &from, made));
    made->rank = from.rank;
    made->is_last = from.is_last;
    memcpy(made->dim, from.dim, sizeof made->dim);
    return LK_OK;
}

static enum lk_status rescale(struct lk_onnx_draft *draft, double scale, double shift,
                              const struct lk_onnx_value *x, struct lk_onnx_value *made)
{
    char text[2][40];
    const char *options;
    lk_number_print(scale, text[0], sizeof text[0]);
    lk_number_print(shift, text[1], sizeof text[1]);
    LK_TRY(lk_onnx_text(draft, &options, "scale=%s shift=%s", text[0], text[1]));
    return apply(draft, "rescale", options, x, made);
}

/* Theirs and ours; the attributes become options of the same order. */
static const struct {
    const char *name, *op;
    const char *attributes[2], *options[2];
    double standard[2];
} functions[] = {
    {"Relu", "relu", {0}, {0}, {0}},
    {"Sigmoid", "sigmoid", {0}, {0}, {0}},
    {"Tanh", "tanh", {0}, {0}, {0}},
    {"Softplus", "softplus", {0}, {0}, {0}},
    {"Softsign", "softsign", {0}, {0}, {0}},
    {"Exp", "exp", {0}, {0}, {0}},
    {"Abs", "abs", {0}, {0}, {0}},
    {"Mish", "mish", {0}, {0}, {0}},
    {"HardSwish", "hard_swish", {0}, {0}, {0}},
    {"LeakyRelu", "leaky_relu", {"alpha"}, {"alpha"}, {0.01}},
    {"Elu", "elu", {"alpha"}, {"alpha"}, {1}},
    {"HardSigmoid", "hard_sigmoid", {"alpha", "beta"}, {"alpha", "beta"}, {0.2, 0.5}},
};

static enum lk_status plain_function(struct lk_onnx_draft *draft)
{
    const struct lk_onnx_value *x;
    struct lk_onnx_value made;
    const char *options = "";
    int f = 0;
    while (strcmp(functions[f].name, draft->node->op) != 0)
        f++;
    LK_TRY(lk_onnx_computed(draft, 0, &x));
    for (int i = 0; i < 2 && functions[f].attributes[i]; i++) {
        double number;
        char text[40];
        LK_TRY(lk_onnx_say_real(draft, functions[f].attributes[i], functions[f].standard[i],
                                &number));
        lk_number_print(number, text, sizeof text);
        LK_TRY(lk_onnx_text(draft, &options, "%s%s%s=%s", options, i ? " " : "",
                            functions[f].options[i], text));
    }
    LK_TRY(apply(draft, functions[f].op, options, x, &made));
    return lk_onnx_give(draft, 0, &made);
}

/* Its numbers are those of the paper, which exporters write out. */
static enum lk_status selu(struct lk_onnx_draft *draft)
{
    const struct lk_onnx_value *x;
    struct lk_onnx_value made;
    double alpha, gamma;
    LK_TRY(lk_onnx_computed(draft, 0, &x));
    LK_TRY(lk_onnx_say_real(draft, "alpha", 1.67326319, &alpha));
    LK_TRY(lk_onnx_say_real(draft, "gamma", 1.05070102, &gamma));
    if (fabs(alpha - 1.6732632) > 1e-5 || fabs(gamma - 1.050701) > 1e-5)
        return lk_onnx_fail(draft, "'alpha' %g and 'gamma' %g are not those of selu", alpha,
                            gamma);
    LK_TRY(apply(draft, "selu", "", x, &made));
    return lk_onnx_give(draft, 0, &made);
}

static enum lk_status gelu(struct lk_onnx_draft *draft)
{
    const struct lk_onnx_value *x;
    struct lk_onnx_value made;
    const char *how;
    LK_TRY(lk_onnx_computed(draft, 0, &x));
    LK_TRY(lk_onnx_say_text(draft, "approximate", "none", &how));
    LK_TRY(apply(draft, strcmp(how, "tanh") == 0 ? "gelu_tanh" : "gelu", "", x, &made));
    return lk_onnx_give(draft, 0, &made);
}

static enum lk_status negate(struct lk_onnx_draft *draft)
{
    const struct lk_onnx_value *x;
    struct lk_onnx_value made;
    LK_TRY(lk_onnx_computed(draft, 0, &x));
    LK_TRY(rescale(draft, -1, 0, x, &made));
    return lk_onnx_give(draft, 0, &made);
}

/* A bound of Clip: an attribute of old models, an input of new ones; infinite where absent. */
static enum lk_status read_bound(struct lk_onnx_draft *draft, const char *name, int index,
                                 double standard, double *bound)
{
    const struct lk_onnx_attribute *said = lk_onnx_find_attribute(draft->node, name);
    const struct lk_onnx_tensor *tensor;
    LK_TRY(lk_onnx_constant(draft, index, &tensor));
    if (tensor && tensor->count != 1)
        return lk_onnx_fail(draft, "'%s' is expected to be one number", name);
    *bound = tensor ? lk_onnx_real(tensor, 0) : said ? (double)said->real : standard;
    if (isnan(*bound))
        return lk_onnx_fail(draft, "'%s' is no number", name);
    if (fabs(*bound) > 3e38)
        *bound = *bound < 0 ? -INFINITY : INFINITY;
    return LK_OK;
}

/* min(max(x, low), high), by functions that begin at 0. */
static enum lk_status clip(struct lk_onnx_draft *draft)
{
    const struct lk_onnx_value *x;
    struct lk_onnx_value made;
    double low, high;
    char text[40];
    const char *options;
    LK_TRY(lk_onnx_computed(draft, 0, &x));
    LK_TRY(read_bound(draft, "min", 1, -INFINITY, &low));
    LK_TRY(read_bound(draft, "max", 2, INFINITY, &high));
    made = *x;
    if (low == 0 && high == 6) {
        LK_TRY(apply(draft, "relu6", "", x, &made));
    } else if (isfinite(low)) {
        if (low != 0)
            LK_TRY(rescale(draft, 1, -low, x, &made));
        lk_number_print(high - low, text, sizeof text);
        LK_TRY(lk_onnx_text(draft, &options, "max=%s", text));
        LK_TRY(apply(draft, isinf(high) ? "relu" : "clipped_relu", isinf(high) ? "" : options,
                     &made, &made));
        if (low != 0)
            LK_TRY(rescale(draft, 1, low, &made, &made));
    } else if (isfinite(high)) { /* high - relu(high - x) */
        LK_TRY(rescale(draft, -1, high, x, &made));
        LK_TRY(apply(draft, "relu", "", &made, &made));
        LK_TRY(rescale(draft, -1, high, &made, &made));
    }
    return lk_onnx_give(draft, 0, &made);
}

static enum lk_status prelu(struct lk_onnx_draft *draft)
{
    const struct lk_onnx_value *x;
    const struct lk_onnx_tensor *slopes;
    struct lk_onnx_value settled, made;
    LK_TRY(lk_onnx_computed(draft, 0, &x));
    LK_TRY(lk_onnx_constant(draft, 1, &slopes));
    if (!slopes || x->is_last)
        return lk_onnx_fail(draft, "slopes are expected to be a constant");
    LK_TRY(lk_onnx_settle(draft, x, &settled));
    LK_TRY(lk_onnx_add(draft, "prelu", slopes->count == 1 ? "slopes=one" : "", 1, &settled,
                       &made));
    const char *param = made.node->shapes.param[0].name;
    LK_TRY(slopes->count == 1 ? lk_onnx_set_all(draft, &made, param, lk_onnx_real(slopes, 0))
                              : lk_onnx_set(draft, &made, param, slopes, true, 1));
    return lk_onnx_give(draft, 0, &made);
}

/* Over the channels, which before operator set 13 the standard axis 1 is for vectors alone. */
static enum lk_status softmax(struct lk_onnx_draft *draft)
{
    const struct lk_onnx_value *x;
    struct lk_onnx_value settled, made;
    int64_t said;
    int axis;
    LK_TRY(lk_onnx_computed(draft, 0, &x));
    const bool is_old = draft->file->operators < 13;
    LK_TRY(lk_onnx_say_integer(draft, "axis", is_old ? 1 : -1, &said));
    LK_TRY(lk_onnx_axis(draft, said, x->rank, &axis));
    const int channels = x->rank == 4 && !x->is_last ? 1 : x->rank - 1;
    bool is_single = true; /* all axes behind the one that is said have length 1 */
    for (int i = axis + 1; i < x->rank; i++)
        is_single &= x->dim[i] == 1;
    if (axis != channels || (is_old && !is_single))
        return lk_onnx_fail(draft, "over axis %lld it is not supported", (long long)said);
    LK_TRY(lk_onnx_settle(draft, x, &settled));
    LK_TRY(apply(draft, "softmax", "", &settled, &made));
    return lk_onnx_give(draft, 0, &made);
}

/* --- with constants ---------------------------------------------------------------------- */

/* Whether a constant has one number for each channel of x and is repeated for all else. */
static bool is_of_channels(const struct lk_onnx_value *x, const struct lk_onnx_tensor *constant)
{
    const int channels = x->rank == 4 && !x->is_last ? 1 : x->rank - 1;
    const int first = x->rank - constant->rank;
    if (first < 0 || constant->count != x->dim[channels])
        return false;
    for (int i = 0; i < constant->rank; i++)
        if (constant->dim[i] != (i + first == channels ? constant->count : 1))
            return false;
    return true;
}

/* x scale + factor shift for each channel: a frozen batch_norm, whose averages are 0 and 1.
 * NULL: 1, or 0. */
static enum lk_status scale_channels(struct lk_onnx_draft *draft, const struct lk_onnx_value *x,
                                     const struct lk_onnx_tensor *scale,
                                     const struct lk_onnx_tensor *shift, double factor,
                                     struct lk_onnx_value *made)
{
    static const char *const params[] = {"gamma", "beta"};
    const struct lk_onnx_tensor *numbers[] = {scale, shift};
    struct lk_onnx_value settled;
    LK_TRY(lk_onnx_settle(draft, x, &settled));
    LK_TRY(lk_onnx_add_frozen(draft, "batch_norm", "epsilon=1e-12", &settled, made));
    for (int i = 0; i < 2; i++) {
        if (!numbers[i]) {
            LK_TRY(lk_onnx_set_all(draft, made, params[i], i == 0));
            continue;
        }
        struct lk_onnx_tensor vector = *numbers[i];
        vector.rank = 1;
        vector.dim[0] = vector.count;
        LK_TRY(lk_onnx_set(draft, made, params[i], &vector, true, i == 0 ? 1 : factor));
    }
    LK_TRY(lk_onnx_set_all(draft, made, "moving_mean", 0));
    return lk_onnx_set_all(draft, made, "moving_variance", 1);
}

/* 1 / each number. */
static enum lk_status invert(struct lk_onnx_draft *draft, const struct lk_onnx_tensor *constant,
                             const struct lk_onnx_tensor **inverse)
{
    struct lk_onnx_tensor *made;
    LK_TRY(lk_onnx_new_tensor(draft, LK_ONNX_DOUBLE, constant->rank, constant->dim, &made));
    for (int64_t i = 0; i < constant->count; i++)
        lk_onnx_put_real(made, i, 1 / lk_onnx_real(constant, i));
    *inverse = made;
    return LK_OK;
}

/* x op constant, or constant op x where is_left. */
static enum lk_status with_constant(struct lk_onnx_draft *draft, const struct lk_onnx_value *x,
                                    const struct lk_onnx_tensor *constant, bool is_left)
{
    const char *op = draft->node->op;
    const bool is_scale = strcmp(op, "Mul") == 0 || strcmp(op, "Div") == 0;
    const bool subtracts = strcmp(op, "Sub") == 0;
    struct lk_onnx_value made = *x;
    if (strcmp(op, "Div") == 0) {
        if (is_left)
            return lk_onnx_fail(draft, "a constant divided by a value is not supported");
        LK_TRY(invert(draft, constant, &constant));
    }
    if (subtracts && is_left)
        LK_TRY(rescale(draft, -1, 0, x, &made));
    const double sign = subtracts && !is_left ? -1 : 1;
    const struct lk_onnx_node *adds = NULL; /* what is added behind a scale is part of it */
    const struct lk_onnx_tensor *shift =
        is_scale ? lk_onnx_find_bias(draft, constant->count, &adds) : constant;
    if (adds && !is_of_channels(x, shift) && (shift->count > 1 || shift->rank > x->rank))
        adds = NULL, shift = NULL;
    if (constant->count == 1 && constant->rank <= x->rank) {
        const double by = is_scale ? lk_onnx_real(constant, 0) : 1;
        LK_TRY(rescale(draft, by, shift ? sign * lk_onnx_real(shift, 0) : 0, &made, &made));
    } else if (is_of_channels(x, constant)) {
        LK_TRY(scale_channels(draft, &made, is_scale ? constant : NULL, shift, sign, &made));
    } else {
        return lk_onnx_fail(draft, "of a constant one number, or one for each channel, is "
                                   "supported");
    }
    return lk_onnx_give_sum(draft, adds, &made);
}

/* --- of two values ----------------------------------------------------------------------- */

static bool same_dims(const struct lk_onnx_value *a, const struct lk_onnx_value *b)
{
    bool same = a->rank == b->rank && a->is_last == b->is_last;
    for (int i = 0; same && i < a->rank; i++)
        same = a->dim[i] == b->dim[i];
    return same;
}

/* Whether b has one number for each channel of the image a. */
static bool is_per_channel(const struct lk_onnx_value *a, const struct lk_onnx_value *b)
{
    return a->rank == 4 && b->rank == 4 && !a->is_last && !b->is_last &&
           a->dim[1] == b->dim[1] && b->dim[2] == 1 && b->dim[3] == 1;
}

/* Joins values by `op`, larger ones first where some count for all pixels. */
static enum lk_status join(struct lk_onnx_draft *draft, const char *op, int count,
                           struct lk_onnx_value *x)
{
    struct lk_onnx_value made;
    for (int i = 1; i < count; i++)
        if (is_per_channel(&x[i], &x[0]) && !same_dims(&x[i], &x[0])) {
            const struct lk_onnx_value larger = x[i];
            x[i] = x[0];
            x[0] = larger;
        }
    for (int i = 0; i < count; i++) {
        if (!same_dims(&x[0], &x[i]) && !is_per_channel(&x[0], &x[i]))
            return lk_onnx_fail(draft,
                                "its inputs have shapes that are not supported together");
        LK_TRY(lk_onnx_settle(draft, &x[i], &x[i]));
    }
    LK_TRY(lk_onnx_add(draft, op, "", count, x, &made));
    return lk_onnx_give(draft, 0, &made);
}

static enum lk_status arithmetic(struct lk_onnx_draft *draft)
{
    const char *op = draft->node->op;
    const struct lk_onnx_value *a = lk_onnx_input(draft, 0), *b = lk_onnx_input(draft, 1);
    if (!a || !b)
        return lk_onnx_fail(draft, "two inputs are expected");
    if (a->constant || b->constant)
        return with_constant(draft, a->constant ? b : a,
                             a->constant ? a->constant : b->constant, a->constant != NULL);
    struct lk_onnx_value x[2] = {*a, *b};
    if (strcmp(op, "Div") == 0)
        return lk_onnx_fail(draft, "a division by a value that is computed is not supported");
    if (strcmp(op, "Sub") == 0)
        LK_TRY(rescale(draft, -1, 0, b, &x[1]));
    if (strcmp(op, "Mul") == 0 && a->node == b->node) {
        LK_TRY(apply(draft, "square", "", a, &x[0]));
        return lk_onnx_give(draft, 0, &x[0]);
    }
    return join(draft, strcmp(op, "Mul") == 0 ? "multiply" : "add", 2, x);
}

static enum lk_status sum(struct lk_onnx_draft *draft)
{
    struct lk_onnx_value x[LK_MOST_INPUTS];
    const struct lk_onnx_value *part;
    const int count = draft->node->input_count;
    if (count < 1 || count > LK_MOST_INPUTS)
        return lk_onnx_fail(draft, "%d inputs, expected at most %d", count, LK_MOST_INPUTS);
    for (int i = 0; i < count; i++) {
        LK_TRY(lk_onnx_computed(draft, i, &part));
        x[i] = *part;
    }
    return count == 1 ? lk_onnx_give(draft, 0, &x[0]) : join(draft, "add", count, x);
}

/* The square alone. */
static enum lk_status power(struct lk_onnx_draft *draft)
{
    const struct lk_onnx_value *x;
    const struct lk_onnx_tensor *exponent;
    struct lk_onnx_value made;
    LK_TRY(lk_onnx_computed(draft, 0, &x));
    LK_TRY(lk_onnx_constant(draft, 1, &exponent));
    if (!exponent || exponent->count != 1 || lk_onnx_real(exponent, 0) != 2)
        return lk_onnx_fail(draft, "an exponent of 2 is expected");
    LK_TRY(apply(draft, "square", "", x, &made));
    return lk_onnx_give(draft, 0, &made);
}

const struct lk_onnx_operator lk_onnx_functions[] = {
    {"Relu", plain_function, LK_ONNX_KNOWS(NULL)},
    {"Sigmoid", plain_function, LK_ONNX_KNOWS(NULL)},
    {"Tanh", plain_function, LK_ONNX_KNOWS(NULL)},
    {"Softplus", plain_function, LK_ONNX_KNOWS(NULL)},
    {"Softsign", plain_function, LK_ONNX_KNOWS(NULL)},
    {"Exp", plain_function, LK_ONNX_KNOWS(NULL)},
    {"Abs", plain_function, LK_ONNX_KNOWS(NULL)},
    {"Mish", plain_function, LK_ONNX_KNOWS(NULL)},
    {"HardSwish", plain_function, LK_ONNX_KNOWS(NULL)},
    {"LeakyRelu", plain_function, LK_ONNX_KNOWS("alpha")},
    {"Elu", plain_function, LK_ONNX_KNOWS("alpha")},
    {"HardSigmoid", plain_function, LK_ONNX_KNOWS("alpha", "beta")},
    {"Selu", selu, LK_ONNX_KNOWS("alpha", "gamma")},
    {"Gelu", gelu, LK_ONNX_KNOWS("approximate")},
    {"Neg", negate, LK_ONNX_KNOWS(NULL)},
    {"Clip", clip, LK_ONNX_KNOWS("min", "max")},
    {"PRelu", prelu, LK_ONNX_KNOWS(NULL)},
    {"Softmax", softmax, LK_ONNX_KNOWS("axis")},
    {"Add", arithmetic, LK_ONNX_KNOWS(NULL)},
    {"Sub", arithmetic, LK_ONNX_KNOWS(NULL)},
    {"Mul", arithmetic, LK_ONNX_KNOWS(NULL)},
    {"Div", arithmetic, LK_ONNX_KNOWS(NULL)},
    {"Sum", sum, LK_ONNX_KNOWS(NULL)},
    {"Pow", power, LK_ONNX_KNOWS(NULL)},
    {0},
};
