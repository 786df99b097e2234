/* A dense layer by the transpose of its weights: y[k] = sum_c w[k][c] x[c], on vectors or on
 * every time step of a sequence. So it can have the table of an embedding, and give a number
 * for each of its tokens. It is the data gradient of a dense layer of that w: its own data
 * gradient is that one's forward pass, and the weight gradient is the same with x and dy
 * changed over. */
#include "base/fail.h"
#include "ops/products.h"
#include <inttypes.h>
#include <stdio.h>

struct options {
    int64_t units;
};

static const struct lk_option table[] = {
    {.name = "units",
     .kind = LK_OPTION_INT,
     .offset = offsetof(struct options, units),
     .count = 1,
     .min = 1,
     .max = 1 << 28,
     .help = "outputs: rows of the weights, as an embedding has for its vocabulary"},
    {0},
};

static enum lk_status infer(struct lk_op_shapes *shapes)
{
    const struct options *o = shapes->options;
    const struct lk_shape *x = &shapes->x[0];
    char text[96];
    lk_shape_print_hwc(x, text, sizeof text);
    if (shapes->x_dtype[0] != LK_F32)
        return lk_fail(LK_E_SHAPE, "dense_transpose takes numbers, not labels");
    if (x->rank != 1 && x->rank != 2)
        return lk_fail(LK_E_SHAPE,
                       "dense_transpose takes a vector [c] or a sequence [t, c], not %s", text);
    const int64_t channels = x->dim[x->rank - 1], time_steps = x->rank == 2 ? x->dim[0] : 1;
    shapes->y = *x;
    shapes->y.dim[x->rank - 1] = o->units;
    shapes->param[0] = (struct lk_param_spec){.name = "weight",
                                              .shape = {2, {o->units, channels}},
                                              .init = LK_INIT_GLOROT_UNIFORM,
                                              .fan_in = channels,
                                              .fan_out = o->units};
    if (lk_shape_count(&shapes->param[0].shape) < 0 || lk_shape_count(&shapes->y) < 0)
        return lk_fail(LK_E_SHAPE, "dense_transpose: %lld units of an input %s are too many",
                       (long long)o->units, text);
    shapes->params = 1;
    shapes->backward_reads_x = true;
    shapes->scales = true;
    shapes->flops = 2.0 * (double)channels * (double)o->units * (double)time_steps;
    return LK_OK;
}

/* The setup of the dense layer's products, whose keys are those of such a layer, and its shape.
 * `problem`: room for its text. */
static struct lk_product_setup describe(const struct lk_op_setup *setup, char problem[],
                                        size_t bytes, struct lk_product_shape *shape)
{
    const struct options *o = setup->options;
    const struct lk_shape *x = &setup->shapes.x[0];
    const int64_t channels = x->dim[x->rank - 1];
    *shape = lk_matrix_shape(o->units, channels, false, false);
    snprintf(problem, bytes, "[%" PRId64 ", 1, 1] filters=%" PRId64 " kernel=1,1 bias=false",
             o->units, channels);
    return lk_op_step_products(setup, x->rank == 2 ? x->dim[0] : 0, problem);
}

static struct lk_layer_wants wants_of(const struct lk_op_setup *setup)
{
    return (struct lk_layer_wants){.training = true,
                                   .dx = true,
                                   .dw = setup->training && setup->wants_dw,
                                   .without_y = !setup->training || !setup->wants_dx[0]};
}

static enum lk_status prepare(struct lk_op_setup *setup)
{
    const struct lk_layer_wants wants = wants_of(setup);
    struct lk_product_shape shape;
    char problem[128];
    void *memory;
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct lk_layer), &memory));
    struct lk_layer *layer = setup->state = memory;
    const struct lk_product_setup of = describe(setup, problem, sizeof problem, &shape);
    LK_TRY(lk_layer_prepare(&of, &shape, &wants, layer));
    setup->workspace_bytes = layer->workspace_bytes;
    return LK_OK;
}

static enum lk_status forward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    struct lk_product_shape shape;
    char problem[128];
    const struct lk_product_setup of = describe(setup, problem, sizeof problem, &shape);
    const struct lk_layer_run operands = {
        .w = run->w[0], .dy = run->x[0], .dx = run->y, .workspace = run->workspace};
    return lk_layer_backward(&of, setup->state, &operands);
}

static enum lk_status backward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    struct lk_product_shape shape;
    char problem[128];
    const struct lk_product_setup of = describe(setup, problem, sizeof problem, &shape);
    struct lk_layer_run operands = {.x = run->dy,
                                    .w = run->w[0],
                                    .y = run->dx[0],
                                    .workspace = run->workspace,
                                    .dw_stride = run->dw_stride};
    if (run->dx[0])
        LK_TRY(lk_layer_forward(&of, setup->state, &operands));
    operands.y = NULL;
    operands.dy = run->x[0];
    operands.dw = run->dw[0];
    return run->dw[0] ? lk_layer_backward(&of, setup->state, &operands) : LK_OK;
}

/* The dense layer's passes have other parts here: its data gradient is forward. */
static bool choice(const struct lk_op_setup *setup, int index, struct lk_choice *choice)
{
    char problem[128];
    struct lk_product_shape shape;
    const struct lk_layer_wants wants = wants_of(setup);
    const struct lk_product_setup of = describe(setup, problem, sizeof problem, &shape);
    if (!lk_layer_choice(&of, &shape, &wants, index, choice))
        return false;
    const bool is_dw = choice->dw, is_forward = choice->dx;
    choice->is_backward = !is_forward;
    choice->dx = !is_forward && !is_dw;
    return true;
}

static bool device_choice(const struct lk_op_setup *setup, struct lk_choice *choice)
{
    char problem[128];
    struct lk_product_shape shape;
    const struct lk_product_setup of = describe(setup, problem, sizeof problem, &shape);
    return lk_layer_device_choice(&of, &shape, choice);
}

const struct lk_op lk_op_dense_transpose = {
    .name = "dense_transpose",
    .options = table,
    .options_bytes = sizeof(struct options),
    .min_inputs = 1,
    .max_inputs = 1,
    .shares_rows = true,
    .time = LK_TIME_OWN,
    .infer = infer,
    .prepare = prepare,
    .forward = forward,
    .backward = backward,
    .choice = choice,
    .device_choice = device_choice,
};
