/* Convolution of images: y[k,i,j] = act(b[k] + sum over c,r,s of w[c,r,s,k] *
 * x[c, i*stride + r*dilation - pad, ...]), then a 2x2 max-pool where it took one over. The
 * kernels and the orders of their sums are in cl/products/. */
#include "ops/conv2d.h"
#include "ops/activation.h"
#include "ops/products.h"

#include "base/fail.h"
#include "base/number.h"
#include <stdio.h>
#include <string.h>

#define ROW(field, kind_, count_, least, most, standard_, help_)                               \
    {                                                                                          \
        .name = #field, .kind = kind_, .offset = offsetof(struct lk_conv2d_options, field),    \
        .count = count_, .min = least, .max = most, .standard = standard_, .help = help_       \
    }
const struct lk_option lk_conv2d_table[] = {
    ROW(filters, LK_OPTION_INT, 1, 1, 1 << 24, NULL, "channels of the output"),
    ROW(kernel, LK_OPTION_INT, 2, 1, 64, "3", "rows and columns of taps"),
    ROW(stride, LK_OPTION_INT, 2, 1, 64, "1", "inputs from one output to the next"),
    ROW(dilation, LK_OPTION_INT, 2, 1, 64, "1", "inputs from one tap to the next"),
    ROW(groups, LK_OPTION_INT, 1, 1, 1 << 24, "1",
        "parts that channels and filters are cut in"),
    LK_PADDING_OPTION(struct lk_conv2d_options),
    ROW(bias, LK_OPTION_BOOL, 1, 0, 0, "true", "add a learned number to every filter's output"),
    ROW(pool, LK_OPTION_BOOL, 1, 0, 0, "false", "max-pool of 2x2 outputs, stride 2"),
    LK_ACTIVATION_OPTION(struct lk_conv2d_options, activation),
    {0},
};

/* The parameters of a batch normalization behind it; they were listed as that one's. */
static void add_norm(const struct lk_conv2d_options *o, struct lk_op_shapes *shapes)
{
    for (int i = 0; i < LK_NORMS; i++)
        shapes->param[shapes->params++] =
            (struct lk_param_spec){.name = "norm", .shape = {1, {o->filters}}};
}

static enum lk_status infer(struct lk_op_shapes *shapes)
{
    const struct lk_conv2d_options *o = shapes->options;
    if (shapes->x_dtype[0] != LK_F32)
        return lk_fail(LK_E_SHAPE, "conv2d takes numbers, not labels");
    struct lk_product_shape s;
    LK_TRY(lk_conv2d_shape(o, &shapes->x[0], &s));
    const int64_t taps = s.axis[0].taps * s.axis[1].taps;
    shapes->y =
        (struct lk_shape){3, {o->filters, s.axis[0].out >> s.pool, s.axis[1].out >> s.pool}};
    shapes->param[0] = (struct lk_param_spec){
        .name = "weight",
        .shape = {4, {s.channels, s.axis[0].taps, s.axis[1].taps, o->filters}},
        .init = LK_INIT_GLOROT_UNIFORM,
        .fan_in = s.channels * taps,
        .fan_out = s.filters * taps};
    shapes->param[1] = (struct lk_param_spec){
        .name = "bias", .shape = {1, {o->filters}}, .init = LK_INIT_ZEROS};
    const int64_t weights = lk_shape_count(&shapes->param[0].shape);
    if (lk_shape_count(&shapes->y) < 0 || weights < 0 || weights > INT32_MAX)
        return lk_fail(LK_E_SHAPE, "conv2d: %lld filters of %lld channels are too many",
                       (long long)o->filters, (long long)s.channels);
    shapes->params = o->bias ? 2 : 1;
    if (o->norm)
        add_norm(o, shapes);
    shapes->backward_reads_x = true;
    shapes->backward_reads_y = shapes->is_gate = s.relu && !s.pool;
    shapes->scales = true;
    shapes->flops =
        2.0 * (double)weights * (double)s.axis[0].all_out * (double)s.axis[1].all_out;
    return LK_OK;
}

/* The setup that the products of this node have in common. `problem`: room for its text. */
static struct lk_product_setup setup_of(const struct lk_op_setup *setup, char problem[],
                                        size_t bytes)
{
    lk_shape_print(&setup->shapes.x[0], problem, bytes);
    const size_t used = strlen(problem);
    snprintf(problem + used, bytes - used, " ");
    (void)!lk_options_print(lk_conv2d_table, setup->options, false, problem + used + 1,
                            bytes - used - 1);
    return lk_op_products(setup, problem);
}

static enum lk_status prepare(struct lk_op_setup *setup)
{
    void *memory;
    char problem[320];
    struct lk_product_shape shape;
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct lk_layer), &memory));
    struct lk_layer *layer = setup->state = memory;
    LK_TRY(lk_conv2d_shape(setup->options, &setup->shapes.x[0], &shape));
    const struct lk_product_setup of = setup_of(setup, problem, sizeof problem);
    struct lk_layer_wants wants = lk_op_wants(setup);
    wants.weights_stay = setup->weights_stay;
    LK_TRY(lk_layer_prepare(&of, &shape, &wants, layer));
    setup->gates_dx[0] = layer->gates_dx;
    setup->workspace_bytes = layer->workspace_bytes;
    setup->packed_bytes = layer->packed_bytes;
    setup->saved_bytes = setup->training && shape.pool && (wants.dx || wants.dw)
                             ? lk_tiled_bytes(&setup->tiling, &setup->shapes.y, LK_U8)
                             : 0;
    return LK_OK;
}

static enum lk_status forward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct lk_product_setup of = lk_op_products(setup, "");
    const struct lk_conv2d_options *o = setup->options;
    struct lk_layer_run operands = lk_op_layer_run(setup, run);
    for (int i = 0; o->norm && i < LK_NORMS; i++)
        operands.norm[i] = run->w[(o->bias ? 2 : 1) + i];
    operands.more = o->adds ? run->x[1] : NULL;
    return lk_layer_forward(&of, setup->state, &operands);
}

static enum lk_status backward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct lk_product_setup of = lk_op_products(setup, "");
    const struct lk_layer_run operands = lk_op_layer_run(setup, run);
    return lk_layer_backward(&of, setup->state, &operands);
}

static bool choice(const struct lk_op_setup *setup, int index, struct lk_choice *choice)
{
    char problem[320];
    struct lk_product_shape shape;
    const struct lk_product_setup of = setup_of(setup, problem, sizeof problem);
    const struct lk_layer_wants wants = lk_op_wants(setup);
    return lk_conv2d_shape(setup->options, &setup->shapes.x[0], &shape) == LK_OK &&
           lk_layer_choice(&of, &shape, &wants, index, choice);
}

static bool device_choice(const struct lk_op_setup *setup, struct lk_choice *choice)
{
    struct lk_product_shape shape;
    const struct lk_product_setup of = lk_op_products(setup, "");
    return lk_conv2d_shape(setup->options, &setup->shapes.x[0], &shape) == LK_OK &&
           lk_layer_device_choice(&of, &shape, choice);
}

/* Whether `options` has the word "name=value". */
static bool has(const char *options, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = options; (at = strstr(at, word)) != NULL; at += n)
        if ((at == options || at[-1] == ' ') && (at[n] == '\0' || at[n] == ' '))
            return true;
    return false;
}

static bool absorb(void *options, const char *next, const char *next_options)
{
    struct lk_conv2d_options *o = options;
    if (!o->pool && lk_activation_absorb(&o->activation, next))
        return true;
    if (strcmp(next, "max_pool") == 0 && !o->pool && has(next_options, "size=2,2") &&
        (has(next_options, "stride=2,2") || has(next_options, "stride=0,0")) && /* 0: size */
        has(next_options, "padding=\"valid\"")) {
        o->pool = true;
        return true;
    }
    return false;
}

/* The number behind "name=" in options. */
static double number_of(const char *options, const char *name)
{
    const char *at = strstr(options, name);
    return at ? lk_number_read(at + strlen(name), NULL) : 0;
}

/* A relu, perhaps with an upper bound, or a silu. */
static bool absorb_function(struct lk_conv2d_options *o, const char *next,
                            const char *next_options)
{
    const bool is_clipped =
        strcmp(next, "clipped_relu") == 0 && number_of(next_options, "slope=") == 0;
    o->silu = strcmp(next, "silu") == 0;
    if (is_clipped)
        o->most = number_of(next_options, "max=");
    if (strcmp(next, "relu6") == 0)
        o->most = 6;
    if (o->most > 0)
        o->activation = LK_RELU;
    return o->silu || o->most > 0 || lk_activation_absorb(&o->activation, next);
}

/* A batch normalization, then a sum, then a function, each of which may be missing. */
static bool absorb_forward(void *options, const char *next, const char *next_options)
{
    struct lk_conv2d_options *o = options;
    if (o->pool || o->activation != LK_NO_ACTIVATION || o->silu)
        return false;
    if (strcmp(next, "batch_norm") == 0 && !o->norm && !o->adds) {
        o->norm = true;
        o->epsilon = number_of(next_options, "epsilon=");
        o->activation = has(next_options, "activation=relu") ? LK_RELU : LK_NO_ACTIVATION;
        return true;
    }
    if (strcmp(next, "add") == 0 && !o->adds) {
        o->adds = true;
        o->activation = has(next_options, "relu=true") ? LK_RELU : LK_NO_ACTIVATION;
        return true;
    }
    return absorb_function(o, next, next_options);
}

const struct lk_op lk_op_conv2d = {.name = "conv2d",
                                   .options = lk_conv2d_table,
                                   .options_bytes = sizeof(struct lk_conv2d_options),
                                   .min_inputs = 1,
                                   .max_inputs = 1,
                                   .infer = infer,
                                   .prepare = prepare,
                                   .forward = forward,
                                   .backward = backward,
                                   .choice = choice,
                                   .device_choice = device_choice,
                                   .planes = LK_PLANES_KNOWN,
                                   .trains_planes = true,
                                   .absorb = absorb,
                                   .absorb_forward = absorb_forward};
