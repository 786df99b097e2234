/* Convolution over time: y[o][k] = act(b[k] + sum over j, c of w[j][c][k] x[t][c]), with
 * t = o stride + j dilation - before. Each window is copied into a row of size * c numbers, so
 * that a product of matrices over all windows, which count as tiles, does the rest. Backward
 * copies them again.
 */
#include "base/fail.h"
#include "ops/activation.h"
#include "ops/products.h"
#include "ops/sequence/steps.h"
#include <inttypes.h>
#include <stdio.h>

struct options {
    int64_t filters, kernel, stride, dilation;
    int padding, activation;
    bool bias;
};

#define ROW(field, most, standard_, help_)                                                     \
    {                                                                                          \
        .name = #field, .kind = LK_OPTION_INT, .offset = offsetof(struct options, field),      \
        .count = 1, .min = 1, .max = most, .standard = standard_, .help = help_                \
    }

static const struct lk_option table[] = {
    ROW(filters, 1 << 20, NULL, "channels of the output"),
    ROW(kernel, 4096, NULL, "time steps that an output sees"),
    ROW(stride, 4096, "1", "time steps from one output to the next"),
    ROW(dilation, 65536, "1", "time steps from one that an output sees to the next"),
    {.name = "padding",
     .kind = LK_OPTION_CHOICE,
     .offset = offsetof(struct options, padding),
     .standard = "valid",
     .choices = lk_steps_paddings,
     .help = "valid: none; same: an output for every stride; causal: likewise, and no output "
             "sees later steps"},
    {.name = "bias",
     .kind = LK_OPTION_BOOL,
     .offset = offsetof(struct options, bias),
     .standard = "true",
     .help = "add a learned number to every channel"},
    LK_ACTIVATION_OPTION(struct options, activation),
    {0},
};

static enum lk_status place(const struct lk_op_shapes *shapes, const char *name,
                            struct lk_step_windows *w)
{
    const struct options *o = shapes->options;
    *w = (struct lk_step_windows){.channels = shapes->x[0].dim[1],
                                  .size = o->kernel,
                                  .stride = o->stride,
                                  .gap = o->dilation};
    return lk_steps_place(w, shapes->x[0].dim[0], (enum lk_steps_padding)o->padding, name);
}

static enum lk_status infer(struct lk_op_shapes *shapes)
{
    const struct options *o = shapes->options;
    struct lk_step_windows w;
    LK_TRY(lk_steps_check(shapes, "conv1d"));
    LK_TRY(place(shapes, "conv1d", &w));
    const struct lk_shape rows = {3, {w.count, w.size, w.channels}};
    shapes->y = (struct lk_shape){2, {w.count, o->filters}};
    shapes->param[0] = (struct lk_param_spec){.name = "weight",
                                              .shape = {3, {w.size, w.channels, o->filters}},
                                              .init = LK_INIT_GLOROT_UNIFORM,
                                              .fan_in = w.size * w.channels,
                                              .fan_out = w.size * o->filters};
    shapes->param[1] =
        (struct lk_param_spec){.name = "bias", .shape = {1, {o->filters}}, LK_INIT_ZEROS};
    if (lk_shape_count(&shapes->param[0].shape) < 0 || lk_shape_count(&shapes->y) < 0 ||
        lk_shape_count(&rows) < 0)
        return lk_fail(LK_E_SHAPE, "conv1d: %lld filters of kernel %lld are too many",
                       (long long)o->filters, (long long)o->kernel);
    shapes->params = o->bias ? 2 : 1;
    shapes->backward_reads_x = true;
    shapes->backward_reads_y = o->activation == LK_RELU;
    shapes->scales = true;
    shapes->flops = 2.0 * (double)lk_shape_count(&rows) * (double)o->filters;
    return LK_OK;
}

struct state {
    struct lk_step_windows windows;
    struct lk_layer layer;
    struct lk_kernel *copy, *add, *finish;
};

/* Windows count as time steps of the product. */
static struct lk_product_setup products_of(const struct lk_op_setup *setup, const char *problem)
{
    return lk_op_step_products(setup, setup->shapes.y.dim[0], problem);
}

static int64_t row_length(const struct lk_op_setup *setup)
{
    const struct options *o = setup->options;
    return o->kernel * setup->shapes.x[0].dim[1];
}

static struct lk_product_shape shape_of(const struct lk_op_setup *setup)
{
    const struct options *o = setup->options;
    return lk_matrix_shape(row_length(setup), o->filters, o->bias, false);
}

/* The setup of the products, which are tuned under the key of a dense layer. */
static struct lk_product_setup setup_of(const struct lk_op_setup *setup, char problem[],
                                        size_t bytes)
{
    const struct options *o = setup->options;
    snprintf(problem, bytes, "[%" PRId64 ", 1, 1] filters=%" PRId64 " kernel=1,1%s",
             row_length(setup), o->filters, o->bias ? "" : " bias=false");
    return products_of(setup, problem);
}

/* The copied windows lie at the beginning of the workspace. In backward they give dw, then
 * their gradient takes their place. */
static struct lk_layer_wants wants_of(const struct lk_op_setup *setup)
{
    struct lk_layer_wants wants = lk_op_wants(setup);
    const int64_t values =
        setup->tiling.tiles * setup->tiling.lanes * setup->shapes.y.dim[0] * row_length(setup);
    wants.kept = lk_op_kept(setup, values);
    wants.asks_gate = wants.dy_is_gated = false;
    return wants;
}

/* Whether something is done to y behind the product: a relu, and zeros where no window is
 * valid. Then dy needs the same. */
static bool finishes(const struct lk_op_setup *setup)
{
    const struct options *o = setup->options;
    return setup->shapes.inputs > 1 || o->activation == LK_RELU;
}

static enum lk_status make_kernel(const struct lk_op_setup *setup, const char *name, bool relu,
                                  struct lk_kernel **kernel)
{
    return lk_op_kernel(setup, "ops/sequence/conv1d", name, relu ? "-DRELU=1" : "-DRELU=0",
                        kernel);
}

static enum lk_status announce(const struct lk_op_setup *setup, struct state *s)
{
    const struct options *o = setup->options;
    LK_TRY(make_kernel(setup, "conv1d_copy", false, &s->copy));
    if (finishes(setup))
        LK_TRY(make_kernel(setup, "conv1d_finish", o->activation == LK_RELU, &s->finish));
    if (!setup->training || !setup->wants_dx[0])
        return LK_OK;
    return make_kernel(setup, "conv1d_add", false, &s->add);
}

static enum lk_status prepare(struct lk_op_setup *setup)
{
    void *memory;
    char problem[128];
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct state), &memory));
    struct state *s = setup->state = memory;
    LK_TRY(place(&setup->shapes, setup->node, &s->windows));
    const struct lk_product_setup of = setup_of(setup, problem, sizeof problem);
    const struct lk_product_shape shape = shape_of(setup);
    const struct lk_layer_wants wants = wants_of(setup);
    LK_TRY(lk_layer_prepare(&of, &shape, &wants, &s->layer));
    setup->workspace_bytes = s->layer.workspace_bytes;
    if (setup->training && finishes(setup))
        setup->saved_bytes =
            lk_tiled_bytes(&setup->tiling, &setup->shapes.y, lk_op_stored(setup));
    return announce(setup, s);
}

static struct lk_grid grid_of(const struct lk_op_setup *setup, int64_t steps,
                              struct lk_step_windows *w)
{
    w->each = setup->tiling.vector == 1 ? 1 : 8;
    return (struct lk_grid){{lk_divide_up(steps, w->each), setup->tiling.tiles, 1},
                            lk_op_items(setup)};
}

static enum lk_status enqueue_copy(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct state *s = setup->state;
    struct lk_step_windows w = s->windows;
    const struct lk_grid grid = grid_of(setup, w.count, &w);
    return LK_ENQUEUE(s->copy, grid, LK_BUF(run->x[0]), LK_BUF(lk_steps_length(setup, run)),
                      LK_BUF(run->workspace), LK_STRUCT(&w));
}

/* to = from, a value of the shape of y, where the window is valid and y passes the relu, else
 * 0.
 */
static enum lk_status enqueue_finish(const struct lk_op_setup *setup,
                                     const struct lk_op_run *run, const struct lk_buffer *from,
                                     struct lk_buffer *to)
{
    const struct options *o = setup->options;
    const struct state *s = setup->state;
    struct lk_step_windows w = s->windows;
    const struct lk_grid grid = grid_of(setup, w.count, &w);
    return LK_ENQUEUE(s->finish, grid, LK_BUF(from), LK_BUF(run->y),
                      LK_BUF(lk_steps_length(setup, run)), LK_BUF(to), LK_INT(o->filters),
                      LK_STRUCT(&w));
}

static enum lk_status forward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct lk_product_setup of = products_of(setup, "");
    const struct state *s = setup->state;
    struct lk_layer_run operands = lk_op_layer_run(setup, run);
    operands.x = run->workspace;
    operands.at = NULL;
    LK_TRY(enqueue_copy(setup, run));
    LK_TRY(lk_layer_forward(&of, &s->layer, &operands));
    return s->finish ? enqueue_finish(setup, run, run->y, run->y) : LK_OK;
}

static enum lk_status enqueue_dx(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct state *s = setup->state;
    struct lk_step_windows w = s->windows;
    const struct lk_grid grid = grid_of(setup, w.steps, &w);
    return LK_ENQUEUE(s->add, grid, LK_BUF(run->workspace), LK_BUF(lk_steps_length(setup, run)),
                      LK_BUF(run->dx[0]), LK_STRUCT(&w));
}

static enum lk_status backward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct lk_product_setup of = products_of(setup, "");
    const struct state *s = setup->state;
    struct lk_layer_run operands = lk_op_layer_run(setup, run);
    operands.x = run->workspace;
    operands.at = NULL;
    operands.dx = NULL;
    if (s->finish) {
        LK_TRY(enqueue_finish(setup, run, run->dy, run->saved));
        operands.dy = run->saved;
    }
    if (run->dw[0]) {
        LK_TRY(enqueue_copy(setup, run));
        LK_TRY(lk_layer_backward(&of, &s->layer, &operands));
        operands.dy_is_turned = true;
    }
    if (!run->dx[0])
        return LK_OK;
    operands.dx = run->workspace;
    operands.dw = operands.db = NULL;
    LK_TRY(lk_layer_backward(&of, &s->layer, &operands));
    return enqueue_dx(setup, run);
}

static bool choice(const struct lk_op_setup *setup, int index, struct lk_choice *choice)
{
    char problem[128];
    const struct lk_product_setup of = setup_of(setup, problem, sizeof problem);
    const struct lk_product_shape shape = shape_of(setup);
    const struct lk_layer_wants wants = wants_of(setup);
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

const struct lk_op lk_op_conv1d = {
    .name = "conv1d",
    .options = table,
    .options_bytes = sizeof(struct options),
    .min_inputs = 1,
    .max_inputs = 2,
    .takes_length = true,
    .infer = infer,
    .prepare = prepare,
    .forward = forward,
    .backward = backward,
    .choice = choice,
    .device_choice = device_choice,
    .absorb = absorb,
};
