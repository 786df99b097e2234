/* Products, norms, functions and sums as operators of ONNX. */
#include "model/onnx_export/export.h"

#include "base/fail.h"
#include <string.h>

/* --- products ---------------------------------------------------------------------------- */

static enum lk_status dense(struct lk_onnx_export *e, const char *const *x, const char *y)
{
    const bool is_vector = e->node->shapes.x[0].rank == 1;
    const char *inputs[] = {x[0], NULL, NULL}, *product;
    LK_TRY(lk_onnx_emit_param(e, "weight", !is_vector, NULL, &inputs[1]));
    LK_TRY(lk_onnx_emit_param(e, "bias", true, NULL, &inputs[2]));
    if (is_vector) {
        LK_TRY(lk_onnx_emit_node(e, "Gemm", y, 3, inputs));
        lk_onnx_emit_integer(e, "transB", 1);
        return LK_OK;
    }
    if (e->node->shapes.x[0].rank != 2)
        return lk_onnx_export_fail(e, "of vectors and sequences it is exported, not of images");
    if (!inputs[2])
        return lk_onnx_emit_node(e, "MatMul", y, 2, inputs);
    LK_TRY(lk_onnx_name(e, "product", &product));
    LK_TRY(lk_onnx_emit_node(e, "MatMul", product, 2, inputs));
    return lk_onnx_emit_node(e, "Add", y, 2, (const char *[]){product, inputs[2]});
}

/* The weights may be an embedding's, [units][c]. */
static enum lk_status dense_transpose(struct lk_onnx_export *e, const char *const *x,
                                      const char *y)
{
    const char *inputs[] = {x[0], NULL}, *weight;
    LK_TRY(lk_onnx_emit_param(e, "weight", true, NULL, &weight));
    LK_TRY(lk_onnx_emit_transpose(e, "turned", 2, (int64_t[]){1, 0}, weight, &inputs[1]));
    return lk_onnx_emit_node(e, "MatMul", y, 2, inputs);
}

/* --- norms ------------------------------------------------------------------------------- */

static enum lk_status batch_norm(struct lk_onnx_export *e, const char *const *x, const char *y)
{
    static const char *const params[] = {"gamma", "beta", "moving_mean", "moving_variance"};
    const char *inputs[5] = {x[0]};
    for (int i = 0; i < 4; i++)
        LK_TRY(lk_onnx_emit_param(e, params[i], true, NULL, &inputs[1 + i]));
    LK_TRY(lk_onnx_emit_node(e, "BatchNormalization", y, 5, inputs));
    lk_onnx_emit_real(e, "epsilon", lk_onnx_option_real(e, "epsilon"));
    lk_onnx_emit_real(e, "momentum", lk_onnx_option_real(e, "momentum"));
    return LK_OK;
}

/* gamma and beta; ones and zeros for so many channels where the node has none. */
static enum lk_status emit_scale(struct lk_onnx_export *e, int64_t channels,
                                 const char *inputs[2])
{
    static const char *const params[] = {"gamma", "beta"};
    enum { MOST = 4096 };
    double standard[MOST];
    for (int i = 0; i < 2; i++) {
        LK_TRY(lk_onnx_emit_param(e, params[i], true, NULL, &inputs[i]));
        if (inputs[i])
            continue;
        if (channels < 1 || channels > MOST)
            return lk_onnx_export_fail(e, "without %s it is not exported", params[i]);
        for (int64_t c = 0; c < channels; c++)
            standard[c] = i == 0;
        LK_TRY(lk_onnx_emit_reals(e, params[i], 1, (int)channels, standard, &inputs[i]));
    }
    return LK_OK;
}

static enum lk_status layer_norm(struct lk_onnx_export *e, const char *const *x, const char *y)
{
    const struct lk_shape *shape = &e->node->shapes.x[0];
    const bool is_all = lk_onnx_option_is(e, "axis", "all");
    const char *inputs[3] = {x[0]};
    if (e->graph.operators < 17)
        return lk_onnx_export_fail(e, "before operator set 17 it is not exported");
    if (shape->rank == 3 && !is_all)
        return lk_onnx_export_fail(e, "over the channels of images it is not exported");
    LK_TRY(
        emit_scale(e, is_all && shape->rank > 1 ? 0 : shape->dim[shape->rank - 1], &inputs[1]));
    LK_TRY(lk_onnx_emit_node(e, "LayerNormalization", y, 3, inputs));
    lk_onnx_emit_integer(e, "axis", is_all ? 1 : -1);
    lk_onnx_emit_real(e, "epsilon", lk_onnx_option_real(e, "epsilon"));
    return LK_OK;
}

static enum lk_status group_norm(struct lk_onnx_export *e, const char *const *x, const char *y)
{
    const int64_t channels = e->node->shapes.x[0].dim[0];
    const char *inputs[3] = {x[0]};
    int64_t groups;
    lk_onnx_option_integers(e, "groups", 1, &groups);
    const bool is_instance = groups == channels;
    if (e->node->shapes.x[0].rank != 3 || (!is_instance && e->graph.operators < 21))
        return lk_onnx_export_fail(e, "it is exported of images, and, with fewer groups than "
                                      "channels, from operator set 21 on");
    LK_TRY(emit_scale(e, channels, &inputs[1]));
    LK_TRY(lk_onnx_emit_node(e, is_instance ? "InstanceNormalization" : "GroupNormalization", y,
                             3, inputs));
    if (!is_instance)
        lk_onnx_emit_integer(e, "num_groups", groups);
    lk_onnx_emit_real(e, "epsilon", lk_onnx_option_real(e, "epsilon"));
    return LK_OK;
}

/* --- functions of one number ------------------------------------------------------------- */

/* Ours, theirs from a set of operators on, and the options that become attributes. */
static const struct {
    const char *op, *theirs;
    int set;
    const char *options[2];
} functions[] = {
    {"relu", "Relu", 0, {0}},
    {"sigmoid", "Sigmoid", 0, {0}},
    {"tanh", "Tanh", 0, {0}},
    {"softsign", "Softsign", 0, {0}},
    {"softplus", "Softplus", 0, {0}},
    {"exp", "Exp", 0, {0}},
    {"abs", "Abs", 0, {0}},
    {"selu", "Selu", 0, {0}},
    {"leaky_relu", "LeakyRelu", 0, {"alpha"}},
    {"elu", "Elu", 0, {"alpha"}},
    {"hard_sigmoid", "HardSigmoid", 0, {"alpha", "beta"}},
    {"hard_swish", "HardSwish", 14, {0}},
    {"dropout", "Identity", 0, {0}},
    {"flatten", "Flatten", 0, {0}},
};

static enum lk_status function(struct lk_onnx_export *e, const char *const *x, const char *y)
{
    int f = 0;
    while (strcmp(functions[f].op, e->node->op->name) != 0)
        f++;
    if (e->graph.operators < functions[f].set)
        return lk_onnx_export_fail(e, "before operator set %d it is not exported",
                                   functions[f].set);
    LK_TRY(lk_onnx_emit_node(e, functions[f].theirs, y, 1, x));
    for (int i = 0; i < 2 && functions[f].options[i]; i++)
        lk_onnx_emit_real(e, functions[f].options[i],
                          lk_onnx_option_real(e, functions[f].options[i]));
    return LK_OK;
}

/* x inner(x), inner = (1 + erf(x / sqrt(2))) / 2, or (1 + tanh(sqrt(2 / pi) (x + 0.044715
 * x^3))) / 2. */
static enum lk_status emit_gelu(struct lk_onnx_export *e, bool is_tanh, const char *x,
                                const char *y)
{
    const char *at[2] = {x}, *cube[2] = {x}, *sum[2] = {x}, *inner, *plus[2], *half[2],
               *both[2] = {x};
    if (is_tanh) {
        LK_TRY(lk_onnx_emit(e, "Mul", "square", 2, (const char *[]){x, x}, &cube[1]));
        LK_TRY(lk_onnx_emit(e, "Mul", "cube", 2, cube, &cube[0]));
        LK_TRY(lk_onnx_emit_real_constant(e, "of_cube", 0.044715, &cube[1]));
        LK_TRY(lk_onnx_emit(e, "Mul", "part", 2, cube, &sum[1]));
        LK_TRY(lk_onnx_emit(e, "Add", "sum", 2, sum, &at[0]));
    }
    LK_TRY(lk_onnx_emit_real_constant(
        e, "scale", is_tanh ? 0.7978845608028654 : 0.7071067811865476, &at[1]));
    LK_TRY(lk_onnx_emit(e, "Mul", "scaled", 2, at, &inner));
    LK_TRY(lk_onnx_emit(e, is_tanh ? "Tanh" : "Erf", "inner", 1, &inner, &plus[0]));
    LK_TRY(lk_onnx_emit_real_constant(e, "one", 1, &plus[1]));
    LK_TRY(lk_onnx_emit(e, "Add", "plus", 2, plus, &half[0]));
    LK_TRY(lk_onnx_emit_real_constant(e, "half", 0.5, &half[1]));
    LK_TRY(lk_onnx_emit(e, "Mul", "gate", 2, half, &both[1]));
    return lk_onnx_emit_node(e, "Mul", y, 2, both);
}

static enum lk_status gelu(struct lk_onnx_export *e, const char *const *x, const char *y)
{
    const bool is_tanh = strcmp(e->node->op->name, "gelu_tanh") == 0;
    if (e->graph.operators < 20)
        return emit_gelu(e, is_tanh, x[0], y);
    LK_TRY(lk_onnx_emit_node(e, "Gelu", y, 1, x));
    lk_onnx_emit_text(e, "approximate", is_tanh ? "tanh" : "none");
    return LK_OK;
}

/* Bounds; relu6, and clipped_relu with a slope below 0. */
static enum lk_status clip(struct lk_onnx_export *e, const char *const *x, const char *y)
{
    const bool is_six = strcmp(e->node->op->name, "relu6") == 0;
    const double low = 0, high = is_six ? 6 : lk_onnx_option_real(e, "max");
    const double slope = is_six ? 0 : lk_onnx_option_real(e, "slope");
    const char *inputs[] = {x[0], "", NULL};
    LK_TRY(lk_onnx_emit_reals(e, "high", 0, 1, &high, &inputs[2]));
    if (slope == 0) {
        LK_TRY(lk_onnx_emit_reals(e, "low", 0, 1, &low, &inputs[1]));
    } else {
        LK_TRY(lk_onnx_name(e, "sloped", &inputs[0]));
        LK_TRY(lk_onnx_emit_node(e, "LeakyRelu", inputs[0], 1, x));
        lk_onnx_emit_real(e, "alpha", slope);
    }
    return lk_onnx_emit_node(e, "Clip", y, 3, inputs);
}

/* x times a function of x. */
static enum lk_status times(struct lk_onnx_export *e, const char *const *x, const char *y)
{
    const bool is_mish = strcmp(e->node->op->name, "mish") == 0;
    const char *gate, *plus;
    LK_TRY(lk_onnx_name(e, "gate", &gate));
    LK_TRY(lk_onnx_name(e, "plus", &plus));
    if (is_mish)
        LK_TRY(lk_onnx_emit_node(e, "Softplus", plus, 1, x));
    LK_TRY(lk_onnx_emit_node(e, is_mish ? "Tanh" : "Sigmoid", gate, 1, is_mish ? &plus : x));
    return lk_onnx_emit_node(e, "Mul", y, 2, (const char *[]){x[0], gate});
}

static enum lk_status square(struct lk_onnx_export *e, const char *const *x, const char *y)
{
    return lk_onnx_emit_node(e, "Mul", y, 2, (const char *[]){x[0], x[0]});
}

static enum lk_status rescale(struct lk_onnx_export *e, const char *const *x, const char *y)
{
    const double number[] = {lk_onnx_option_real(e, "scale"), lk_onnx_option_real(e, "shift")};
    const char *scale, *shift, *scaled;
    LK_TRY(lk_onnx_name(e, "scaled", &scaled));
    LK_TRY(lk_onnx_emit_reals(e, "scale", 0, 1, &number[0], &scale));
    LK_TRY(lk_onnx_emit_reals(e, "shift", 0, 1, &number[1], &shift));
    LK_TRY(lk_onnx_emit_node(e, "Mul", scaled, 2, (const char *[]){x[0], scale}));
    return lk_onnx_emit_node(e, "Add", y, 2, (const char *[]){scaled, shift});
}

/* Slopes of the channels of an image count for all pixels. */
static enum lk_status prelu(struct lk_onnx_export *e, const char *const *x, const char *y)
{
    const struct lk_shape *in = &e->node->shapes.x[0];
    const bool is_channels = lk_onnx_option_is(e, "slopes", "channels") && in->rank == 3;
    const struct lk_shape pixels = {3, {in->dim[0], 1, 1}};
    const char *inputs[] = {x[0], NULL};
    LK_TRY(lk_onnx_emit_param(e, "slope", true, is_channels ? &pixels : NULL, &inputs[1]));
    return lk_onnx_emit_node(e, "PRelu", y, 2, inputs);
}

static enum lk_status softmax(struct lk_onnx_export *e, const char *const *x, const char *y)
{
    LK_TRY(lk_onnx_emit_node(e, "Softmax", y, 1, x));
    lk_onnx_emit_integer(e, "axis", e->node->shapes.y.rank == 2 ? 2 : 1);
    return LK_OK;
}

/* --- shapes, sums ------------------------------------------------------------------------ */

static enum lk_status reshape(struct lk_onnx_export *e, const char *const *x, const char *y)
{
    return lk_onnx_emit_reshape(e, "shape", x[0], &e->node->shapes.y, y);
}

/* Sums and products; beside images [c] counts for all pixels, as [c, 1, 1] does there. */
static enum lk_status join(struct lk_onnx_export *e, const char *const *x, const char *y)
{
    static const char *const words[][3] = {
        {"wide0", "shape0", "part0"}, {"wide1", "shape1", "part1"},
        {"wide2", "shape2", "part2"}, {"wide3", "shape3", "part3"},
        {"wide4", "shape4", "part4"}, {"wide5", "shape5", "part5"},
        {"wide6", "shape6", "part6"}, {"wide7", "shape7", "part7"}};
    const bool is_sum = strcmp(e->node->op->name, "add") == 0;
    const struct lk_op_shapes *shapes = &e->node->shapes;
    const char *before = NULL;
    for (int i = 0; i < e->node->inputs; i++) {
        const char *part = x[i], *joined = y;
        if (shapes->y.rank == 3 && shapes->x[i].rank == 1) {
            const struct lk_shape pixel = {3, {shapes->x[i].dim[0], 1, 1}};
            LK_TRY(lk_onnx_name(e, words[i][0], &part));
            LK_TRY(lk_onnx_emit_reshape(e, words[i][1], x[i], &pixel, part));
        }
        if (i > 0 && i + 1 < e->node->inputs)
            LK_TRY(lk_onnx_name(e, words[i][2], &joined));
        if (i > 0)
            LK_TRY(lk_onnx_emit_node(e, is_sum ? "Add" : "Mul", joined, 2,
                                     (const char *[]){before, part}));
        before = i > 0 ? joined : part;
    }
    return LK_OK;
}

const struct lk_onnx_pairing lk_onnx_plain_pairings[] = {
    {"dense", dense},
    {"dense_transpose", dense_transpose},
    {"batch_norm", batch_norm},
    {"layer_norm", layer_norm},
    {"group_norm", group_norm},
    {"relu", function},
    {"sigmoid", function},
    {"tanh", function},
    {"softsign", function},
    {"softplus", function},
    {"exp", function},
    {"abs", function},
    {"selu", function},
    {"leaky_relu", function},
    {"elu", function},
    {"hard_sigmoid", function},
    {"hard_swish", function},
    {"dropout", function},
    {"flatten", function},
    {"gelu", gelu},
    {"gelu_tanh", gelu},
    {"relu6", clip},
    {"clipped_relu", clip},
    {"silu", times},
    {"mish", times},
    {"square", square},
    {"rescale", rescale},
    {"prelu", prelu},
    {"softmax", softmax},
    {"reshape", reshape},
    {"add", join},
    {"multiply", join},
    {0},
};
