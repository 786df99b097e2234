/* A dense layer: y[k] = act(b[k] + sum_c w[c][k] x[c]), on vectors or on every time step of a
 * sequence. The kernels and the orders of their sums are in matrix.cl and weights.cl
 * of cl/products/matrix. */
#include "base/fail.h"
#include "ops/activation.h"
#include "ops/products.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct options {
    int64_t units;
    bool bias;
    int activation;
};

static const struct lk_option table[] = {
    {.name = "units",
     .kind = LK_OPTION_INT,
     .offset = offsetof(struct options, units),
     .count = 1,
     .min = 1,
     .max = 1 << 22,
     .help = "outputs"},
    {.name = "bias",
     .kind = LK_OPTION_BOOL,
     .offset = offsetof(struct options, bias),
     .standard = "true",
     .help = "add a learned number to every output"},
    LK_ACTIVATION_OPTION(struct options, activation),
    {0},
};

static enum lk_status infer(struct lk_op_shapes *shapes)
{
    const struct options *o = shapes->options;
    const struct lk_shape *x = &shapes->x[0];
    char text[96];
    lk_shape_print_hwc(x, text, sizeof text);
    if (shapes->x_dtype[0] != LK_F32)
        return lk_fail(LK_E_SHAPE, "dense takes numbers, not labels");
    if (x->rank != 1 && x->rank != 2)
        return lk_fail(LK_E_SHAPE, "dense takes a vector [c] or a sequence [t, c], not %s%s",
                       text, x->rank == 3 ? ": flatten first" : "");
    const int64_t channels = x->dim[x->rank - 1], time_steps = x->rank == 2 ? x->dim[0] : 1;
    shapes->y = *x;
    shapes->y.dim[x->rank - 1] = o->units;
    shapes->param[0] = (struct lk_param_spec){.name = "weight",
                                              .shape = {2, {channels, o->units}},
                                              .init = LK_INIT_GLOROT_UNIFORM,
                                              .fan_in = channels,
                                              .fan_out = o->units};
    shapes->param[1] =
        (struct lk_param_spec){.name = "bias", .shape = {1, {o->units}}, LK_INIT_ZEROS};
    if (lk_shape_count(&shapes->param[0].shape) < 0 || lk_shape_count(&shapes->y) < 0)
        return lk_fail(LK_E_SHAPE, "dense: %lld units of an input %s are too many",
                       (long long)o->units, text);
    shapes->params = o->bias ? 2 : 1;
    shapes->backward_reads_x = true;
    shapes->backward_reads_y = o->activation == LK_RELU;
    shapes->scales = true;
    shapes->flops = 2.0 * (double)channels * (double)o->units * (double)time_steps;
    return LK_OK;
}

/* The time steps of a sequence are one product. */
static struct lk_product_setup products_of(const struct lk_op_setup *setup, const char *problem)
{
    const struct lk_shape *x = &setup->shapes.x[0];
    return lk_op_step_products(setup, x->rank == 2 ? x->dim[0] : 0, problem);
}

static struct lk_product_shape shape_of(const struct lk_op_setup *setup)
{
    const struct options *o = setup->options;
    const struct lk_shape *x = &setup->shapes.x[0];
    return lk_matrix_shape(x->dim[x->rank - 1], o->units, o->bias, o->activation == LK_RELU);
}

/* The setup of the layer's products. A device that takes a matrix for a convolution of one
 * pixel keeps what was tuned for both under one key. */
static struct lk_product_setup setup_of(const struct lk_op_setup *setup, char problem[],
                                        size_t bytes)
{
    const struct options *o = setup->options;
    const struct lk_shape *x = &setup->shapes.x[0];
    snprintf(problem, bytes, "[%" PRId64 ", 1, 1] filters=%" PRId64 " kernel=1,1%s%s",
             x->dim[x->rank - 1], o->units, o->bias ? "" : " bias=false",
             o->activation == LK_RELU ? " activation=relu" : "");
    return products_of(setup, problem);
}

static enum lk_status prepare(struct lk_op_setup *setup)
{
    void *memory;
    char problem[128];
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct lk_layer), &memory));
    struct lk_layer *layer = setup->state = memory;
    const struct lk_product_setup of = setup_of(setup, problem, sizeof problem);
    const struct lk_product_shape shape = shape_of(setup);
    const struct lk_layer_wants wants = lk_op_wants(setup);
    LK_TRY(lk_layer_prepare(&of, &shape, &wants, layer));
    setup->gates_dx[0] = layer->gates_dx;
    setup->workspace_bytes = layer->workspace_bytes;
    return LK_OK;
}

static enum lk_status forward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct lk_product_setup of = products_of(setup, "");
    const struct lk_layer_run operands = lk_op_layer_run(setup, run);
    return lk_layer_forward(&of, setup->state, &operands);
}

static enum lk_status backward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct lk_product_setup of = products_of(setup, "");
    const struct lk_layer_run operands = lk_op_layer_run(setup, run);
    return lk_layer_backward(&of, setup->state, &operands);
}

static bool choice(const struct lk_op_setup *setup, int index, struct lk_choice *choice)
{
    char problem[128];
    const struct lk_product_setup of = setup_of(setup, problem, sizeof problem);
    const struct lk_product_shape shape = shape_of(setup);
    const struct lk_layer_wants wants = lk_op_wants(setup);
    return lk_layer_choice(&of, &shape, &wants, index, choice);
}

static bool device_choice(const struct lk_op_setup *setup, struct lk_choice *choice)
{
    char problem[128];
    const struct lk_product_setup of = setup_of(setup, problem, sizeof problem);
    const struct lk_product_shape shape = shape_of(setup);
    return lk_layer_device_choice(&of, &shape, choice);
}

static bool absorb(void *options, const char *next, const char *next_options)
{
    (void)next_options;
    return lk_activation_absorb(&((struct options *)options)->activation, next);
}

const struct lk_op lk_op_dense = {
    .name = "dense",
    .options = table,
    .options_bytes = sizeof(struct options),
    .min_inputs = 1,
    .max_inputs = 1,
    .time = LK_TIME_OWN,
    .infer = infer,
    .prepare = prepare,
    .forward = forward,
    .backward = backward,
    .choice = choice,
    .device_choice = device_choice,
    .absorb = absorb,
};
