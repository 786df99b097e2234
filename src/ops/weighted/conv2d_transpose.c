/* Transposed convolution of images: the data gradient of a convolution as a layer, of which x
 * is the gradient and y the image, y[k,i,j] = act(b[k] + sum over c,r,s of w[k,r,s,c] *
 * x[c,p,q]) with p*stride + r*dilation - pad = i, and so for j and q. Its own data gradient is
 * that convolution's forward pass. source: Dumoulin and Visin, A guide to convolution
 * arithmetic (2016), 4; sizes as Keras's for valid and same, as PyTorch's for numbers. */
#include "base/fail.h"
#include "ops/activation.h"
#include "ops/conv2d.h"
#include "ops/products.h"
#include "products/expand.h"

#include <stdio.h>
#include <string.h>

struct options {
    struct lk_conv2d_options conv; /* of the layer; its pool is not used */
    int64_t output_padding[2];
};

#define ROW(field, kind_, count_, least, most, standard_, help_)                               \
    {                                                                                          \
        .name = #field, .kind = kind_, .offset = offsetof(struct options, conv.field),         \
        .count = count_, .min = least, .max = most, .standard = standard_, .help = help_       \
    }
static const struct lk_option table[] = {
    ROW(filters, LK_OPTION_INT, 1, 1, 1 << 24, NULL, "channels of the output"),
    ROW(kernel, LK_OPTION_INT, 2, 1, 64, "3", "rows and columns of taps"),
    ROW(stride, LK_OPTION_INT, 2, 1, 64, "1", "outputs from one input to the next"),
    ROW(dilation, LK_OPTION_INT, 2, 1, 64, "1", "outputs from one tap to the next"),
    ROW(groups, LK_OPTION_INT, 1, 1, 1 << 24, "1",
        "parts that channels and filters are cut in"),
    ROW(padding, LK_OPTION_TEXT, LK_PADDING_BYTES, 0, 0, "valid",
        "what is cut off the output; valid: nothing; same: so that it is stride times as "
        "large; "
        "or pixels: n, rows,columns or top,bottom,left,right"),
    {.name = "output_padding",
     .kind = LK_OPTION_INT,
     .offset = offsetof(struct options, output_padding),
     .count = 2,
     .max = 63,
     .standard = "0",
     .help = "rows and columns added behind the output, fewer than stride"},
    ROW(bias, LK_OPTION_BOOL, 1, 0, 0, "true", "add a learned number to every filter's output"),
    LK_ACTIVATION_OPTION(struct options, conv.activation),
    {0},
};

/* --- shapes ------------------------------------------------------------------------------ */

/* How far y reaches along an axis, and how much of it lies before what is kept. `number`: the
 * padding before and behind; text: valid or same, or NULL. */
static void extend(const struct options *o, int axis, const char *text, int64_t in,
                   const int64_t number[2], int64_t *out, int64_t *before)
{
    const int64_t stride = o->conv.stride[axis];
    const int64_t reach = (o->conv.kernel[axis] - 1) * o->conv.dilation[axis] + 1;
    const int64_t beyond = reach > stride ? reach - stride : 0;
    *before = number[0];
    *out = (in - 1) * stride + reach - number[0] - number[1];
    if (text) /* both fill what a stride that is longer than the taps leaves behind */
        *out = in * stride + beyond;
    if (text && strcmp(text, "same") == 0) {
        *before = beyond / 2;
        *out = in * stride;
    }
    *out += o->output_padding[axis];
}

/* The convolution that this is the transpose of, and the image that it takes: y. Its padding
 * behind is what the last of x still reaches. */
static enum lk_status transpose(const struct options *o, const struct lk_shape *x,
                                struct lk_conv2d_options *conv, struct lk_shape *y)
{
    int64_t number[4] = {0}, out[2], before[2], behind[2];
    const char *padding = o->conv.padding;
    const bool is_word = strcmp(padding, "same") == 0 || strcmp(padding, "valid") == 0;
    LK_TRY(lk_windows_padding(padding, number, "conv2d_transpose"));
    for (int i = 0; i < 2; i++) {
        const int64_t stride = o->conv.stride[i];
        const int64_t reach = (o->conv.kernel[i] - 1) * o->conv.dilation[i] + 1;
        extend(o, i, is_word ? padding : NULL, x->dim[1 + i], &number[2 * i], &out[i],
               &before[i]);
        behind[i] = (x->dim[1 + i] - 1) * stride + reach - before[i] - out[i];
        if (out[i] < 1)
            return lk_fail(LK_E_SHAPE, "conv2d_transpose: padding %s leaves no output of %s",
                           padding, i ? "width" : "height");
        if (-behind[i] >= stride)
            return lk_fail(LK_E_ARGUMENT,
                           "conv2d_transpose: output_padding %lld is too large: no input "
                           "reaches the last %lld, not fewer than stride %lld",
                           (long long)o->output_padding[i], (long long)-behind[i],
                           (long long)stride);
        behind[i] = behind[i] > 0 ? behind[i] : 0;
    }
    *y = (struct lk_shape){3, {o->conv.filters, out[0], out[1]}};
    *conv = o->conv;
    conv->filters = x->dim[0];
    conv->bias = conv->pool = false;
    conv->activation = LK_NO_ACTIVATION;
    const int used = snprintf(conv->padding, sizeof conv->padding, "%lld,%lld,%lld,%lld",
                              (long long)before[0], (long long)behind[0], (long long)before[1],
                              (long long)behind[1]);
    return used < (int)sizeof conv->padding
               ? LK_OK
               : lk_fail(LK_E_SHAPE, "conv2d_transpose: padding %s is too large", padding);
}

/* Checks what the convolution would check in words that are not the user's. */
static enum lk_status check(const struct options *o, const struct lk_op_shapes *shapes)
{
    const struct lk_shape *x = &shapes->x[0];
    char text[96];
    lk_shape_print_hwc(x, text, sizeof text);
    if (shapes->x_dtype[0] != LK_F32)
        return lk_fail(LK_E_SHAPE, "conv2d_transpose takes numbers, not labels");
    if (x->rank != 3)
        return lk_fail(LK_E_SHAPE, "conv2d_transpose takes an image [h, w, c], not %s", text);
    if (x->dim[0] % o->conv.groups != 0)
        return lk_fail(LK_E_SHAPE,
                       "conv2d_transpose: %lld channels of %s do not divide into %lld groups",
                       (long long)x->dim[0], text, (long long)o->conv.groups);
    if (o->conv.filters % o->conv.groups != 0)
        return lk_fail(LK_E_ARGUMENT,
                       "conv2d_transpose: %lld filters do not divide into %lld groups",
                       (long long)o->conv.filters, (long long)o->conv.groups);
    return LK_OK;
}

static enum lk_status infer(struct lk_op_shapes *shapes)
{
    const struct options *o = shapes->options;
    const struct lk_shape *x = &shapes->x[0];
    struct lk_conv2d_options conv;
    LK_TRY(check(o, shapes));
    LK_TRY(transpose(o, x, &conv, &shapes->y));
    const int64_t taps = o->conv.kernel[0] * o->conv.kernel[1];
    const int64_t filters = o->conv.filters / o->conv.groups;
    shapes->param[0] = (struct lk_param_spec){
        .name = "weight",
        .shape = {4, {filters, o->conv.kernel[0], o->conv.kernel[1], x->dim[0]}},
        .init = LK_INIT_GLOROT_UNIFORM,
        .fan_in = x->dim[0] / o->conv.groups * taps,
        .fan_out = filters * taps};
    shapes->param[1] = (struct lk_param_spec){
        .name = "bias", .shape = {1, {o->conv.filters}}, .init = LK_INIT_ZEROS};
    const int64_t weights = lk_shape_count(&shapes->param[0].shape);
    if (lk_shape_count(&shapes->y) < 0 || weights < 0 || weights > INT32_MAX)
        return lk_fail(LK_E_SHAPE,
                       "conv2d_transpose: %lld filters of %lld channels are too many",
                       (long long)o->conv.filters, (long long)x->dim[0]);
    shapes->params = o->conv.bias ? 2 : 1;
    shapes->backward_reads_x = true;
    shapes->backward_reads_y = shapes->is_gate = o->conv.activation == LK_RELU;
    shapes->scales = true;
    shapes->flops = 2.0 * (double)weights * (double)x->dim[1] * (double)x->dim[2];
    return LK_OK;
}

/* --- kernels ----------------------------------------------------------------------------- */

struct state {
    struct lk_layer layer;   /* of the convolution: x is its dy, y its dx */
    struct lk_expand expand; /* of y: dz behind a relu, where the layer finds it as its x */
    struct lk_kernel *finish;
};

/* Geometry and setup of the convolution's products, whose keys are those of a conv2d of that
 * shape. `problem`: room for its text. */
static enum lk_status describe(const struct lk_op_setup *setup, char problem[], size_t bytes,
                               struct lk_product_setup *of, struct lk_product_shape *shape)
{
    struct lk_conv2d_options conv;
    struct lk_shape y;
    LK_TRY(transpose(setup->options, &setup->shapes.x[0], &conv, &y));
    LK_TRY(lk_conv2d_shape(&conv, &y, shape));
    lk_shape_print(&y, problem, bytes);
    const size_t used = strlen(problem);
    snprintf(problem + used, bytes - used, " ");
    (void)!lk_options_print(lk_conv2d_table, &conv, false, problem + used + 1,
                            bytes - used - 1);
    *of = lk_op_products(setup, problem);
    return LK_OK;
}

static struct lk_layer_wants wants_of(const struct lk_op_setup *setup)
{
    return (struct lk_layer_wants){.training = true,
                                   .dx = true,
                                   .dw = setup->training && setup->wants_dw,
                                   .without_y = !setup->training || !setup->wants_dx[0]};
}

static bool masks(const struct lk_op_setup *setup)
{
    const struct options *o = setup->options;
    return o->conv.activation == LK_RELU && !setup->dy_is_gated;
}

static enum lk_status prepare_expand(const struct lk_op_setup *setup,
                                     const struct lk_product_setup *of, struct state *s,
                                     int64_t *reals)
{
    const struct options *o = setup->options;
    const struct lk_shape *y = &setup->shapes.y;
    if (!setup->training)
        return LK_OK;
    s->expand = (struct lk_expand){.filters = y->dim[0],
                                   .height = y->dim[1],
                                   .width = y->dim[2],
                                   .masks = masks(setup),
                                   .makes_dz = masks(setup),
                                   .makes_db = setup->wants_dw && o->conv.bias};
    LK_TRY(lk_expand_prepare(of, &s->expand, reals));
    *reals = lk_divide_up(*reals, 16) * 16;
    return LK_OK;
}

static enum lk_status prepare(struct lk_op_setup *setup)
{
    const struct options *o = setup->options;
    const bool relu = o->conv.activation == LK_RELU;
    struct lk_layer_wants wants = wants_of(setup);
    struct lk_product_setup of;
    struct lk_product_shape shape;
    char problem[320];
    void *memory;
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct state), &memory));
    struct state *s = setup->state = memory;
    LK_TRY(describe(setup, problem, sizeof problem, &of, &shape));
    LK_TRY(prepare_expand(setup, &of, s, &wants.kept));
    LK_TRY(lk_layer_prepare(&of, &shape, &wants, &s->layer));
    setup->workspace_bytes = s->layer.workspace_bytes;
    if (!o->conv.bias && !relu)
        return LK_OK;
    return lk_op_kernel(setup, "ops/weighted/conv2d_transpose", "conv2d_transpose_finish",
                        relu ? "-DRELU=1" : "-DRELU=0", &s->finish);
}

/* b and the relu, which the products' data gradients do not know. */
static enum lk_status enqueue_finish(const struct lk_op_setup *setup,
                                     const struct lk_op_run *run)
{
    const struct state *s = setup->state;
    const struct options *o = setup->options;
    const int64_t *y = setup->shapes.y.dim, pixels = y[1] * y[2];
    const int64_t each = setup->tiling.vector == 1 ? 64 : 1024;
    const struct lk_grid grid = {{lk_divide_up(pixels, each), y[0], setup->tiling.tiles},
                                 lk_op_items(setup)};
    return LK_ENQUEUE(s->finish, grid, LK_BUF(o->conv.bias ? run->w[1] : NULL), LK_BUF(run->y),
                      LK_INT(pixels), LK_INT(each));
}

static enum lk_status forward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct state *s = setup->state;
    const struct lk_product_setup of = lk_op_products(setup, "");
    const struct lk_layer_run operands = {
        .w = run->w[0], .dy = run->x[0], .dx = run->y, .workspace = run->workspace};
    LK_TRY(lk_layer_backward(&of, &s->layer, &operands));
    return s->finish ? enqueue_finish(setup, run) : LK_OK;
}

static enum lk_status backward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct state *s = setup->state;
    const struct options *o = setup->options;
    const struct lk_product_setup of = lk_op_products(setup, "");
    const bool wants_dz = masks(setup) && (run->dx[0] || run->dw[0]);
    const struct lk_expand_run expand = {.dy = run->dy,
                                         .y = run->y,
                                         .workspace = run->workspace,
                                         .db = o->conv.bias ? run->dw[1] : NULL,
                                         .dw_stride = run->dw_stride,
                                         .wants_dz = wants_dz};
    struct lk_layer_run operands = {.x = wants_dz ? run->workspace : run->dy,
                                    .w = run->w[0],
                                    .workspace = run->workspace,
                                    .dw_stride = run->dw_stride};
    if (wants_dz || expand.db)
        LK_TRY(lk_expand_enqueue(&of, &s->expand, &expand));
    operands.y = run->dx[0];
    if (run->dx[0])
        LK_TRY(lk_layer_forward(&of, &s->layer, &operands));
    operands.y = NULL;
    operands.dy = run->x[0];
    operands.dw = run->dw[0];
    return run->dw[0] ? lk_layer_backward(&of, &s->layer, &operands) : LK_OK;
}

/* --- choices ----------------------------------------------------------------------------- */

/* The convolution's passes have other parts here: its data gradient is forward. */
static bool choice(const struct lk_op_setup *setup, int index, struct lk_choice *choice)
{
    char problem[320];
    struct lk_product_setup of;
    struct lk_product_shape shape;
    const struct lk_layer_wants wants = wants_of(setup);
    if (describe(setup, problem, sizeof problem, &of, &shape) != LK_OK ||
        !lk_layer_choice(&of, &shape, &wants, index, choice))
        return false;
    const bool is_dw = choice->dw, is_forward = choice->dx;
    choice->is_backward = !is_forward;
    choice->dx = !is_forward && !is_dw;
    return true;
}

static bool device_choice(const struct lk_op_setup *setup, struct lk_choice *choice)
{
    char problem[320];
    struct lk_product_setup of;
    struct lk_product_shape shape;
    return describe(setup, problem, sizeof problem, &of, &shape) == LK_OK &&
           lk_layer_device_choice(&of, &shape, choice);
}

static bool absorb(void *options, const char *next, const char *next_options)
{
    (void)next_options;
    return lk_activation_absorb(&((struct options *)options)->conv.activation, next);
}

const struct lk_op lk_op_conv2d_transpose = {.name = "conv2d_transpose",
                                             .options = table,
                                             .options_bytes = sizeof(struct options),
                                             .min_inputs = 1,
                                             .max_inputs = 1,
                                             .infer = infer,
                                             .prepare = prepare,
                                             .forward = forward,
                                             .backward = backward,
                                             .choice = choice,
                                             .device_choice = device_choice,
                                             .absorb = absorb};
