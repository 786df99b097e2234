/* Recurrent layers: lstm, gru, rnn. The input parts of all time steps are one product, then the
 * steps are walked; backward likewise. Names and standard values of options as in Keras.
 * source: Hochreiter, Schmidhuber, Long Short-Term Memory (1997); Cho et al., Learning Phrase
 * Representations using RNN Encoder-Decoder (2014) */
#include "base/fail.h"
#include "ops/products.h"
#include "ops/recurrent/recurrent.h"
#include <inttypes.h>
#include <stdio.h>

static const char *const activations[] = {"tanh", "relu", NULL};

#define AT(member) .offset = offsetof(struct lk_recurrent_options, member)

#define COMMON_OPTIONS                                                                         \
    {.name = "units",                                                                          \
     .kind = LK_OPTION_INT,                                                                    \
     AT(units),                                                                                \
     .count = 1,                                                                               \
     .min = 1,                                                                                 \
     .max = 1 << 16,                                                                           \
     .help = "numbers of the output and of each state"},                                       \
        {.name = "activation",                                                                 \
         .kind = LK_OPTION_CHOICE,                                                             \
         AT(activation),                                                                       \
         .standard = "tanh",                                                                   \
         .choices = activations,                                                               \
         .help = "function of the new state; gates are logistic functions"},                   \
        {.name = "use_bias",                                                                   \
         .kind = LK_OPTION_BOOL,                                                               \
         AT(use_bias),                                                                         \
         .standard = "true",                                                                   \
         .help = "add learned numbers"},                                                       \
        {.name = "return_sequences",                                                           \
         .kind = LK_OPTION_BOOL,                                                               \
         AT(return_sequences),                                                                 \
         .standard = "false",                                                                  \
         .help = "give the outputs of all time steps [t, units], not the last alone"},         \
        {.name = "return_state",                                                               \
         .kind = LK_OPTION_BOOL,                                                               \
         AT(return_state),                                                                     \
         .standard = "false",                                                                  \
         .help = "append the final states to the output, as further time steps"},              \
        {.name = "go_backwards",                                                               \
         .kind = LK_OPTION_BOOL,                                                               \
         AT(go_backwards),                                                                     \
         .standard = "false",                                                                  \
         .help = "walk from the last time step to the first"},                                 \
        {.name = "dropout",                                                                    \
         .kind = LK_OPTION_REAL,                                                               \
         AT(dropout),                                                                          \
         .max = 0.999,                                                                         \
         .standard = "0",                                                                      \
         .help = "part of the inputs that training drops, the same at all time steps"},        \
    {                                                                                          \
        .name = "recurrent_dropout", .kind = LK_OPTION_REAL, AT(recurrent_dropout),            \
        .max = 0.999, .standard = "0",                                                         \
        .help = "part of h that training drops where it is multiplied"                         \
    }

static const struct lk_option lstm_table[] = {
    COMMON_OPTIONS,
    {.name = "unit_forget_bias",
     .kind = LK_OPTION_BOOL,
     AT(unit_forget_bias),
     .standard = "true",
     .help = "begin with biases of 1 for the forget gate"},
    {0},
};

static const struct lk_option gru_table[] = {
    COMMON_OPTIONS,
    {.name = "reset_after",
     .kind = LK_OPTION_BOOL,
     AT(reset_after),
     .standard = "true",
     .help = "the reset gate multiplies what comes from the state, not the state itself"},
    {0},
};

static const struct lk_option rnn_table[] = {COMMON_OPTIONS, {0}};

/* --- shapes ------------------------------------------------------------------------------ */

static enum lk_status check_inputs(const struct lk_op_shapes *shapes, const char *name,
                                   enum lk_cell cell)
{
    const struct lk_recurrent_options *o = shapes->options;
    const struct lk_shape *x = &shapes->x[0], wanted = {2, {lk_cell_states(cell), o->units}};
    const int first = lk_recurrent_first_state(shapes);
    char text[96];
    lk_shape_print_hwc(x, text, sizeof text);
    if (shapes->x_dtype[0] != LK_F32)
        return lk_fail(LK_E_SHAPE, "%s takes numbers, not labels", name);
    if (x->rank != 2)
        return lk_fail(LK_E_SHAPE, "%s takes a sequence [t, c], not %s", name, text);
    if (shapes->inputs == 3 && lk_recurrent_length(shapes) < 0)
        return lk_fail(LK_E_SHAPE, "%s: the third input is a length: int32 []", name);
    if (first < 0)
        return LK_OK;
    lk_shape_print(&shapes->x[first], text, sizeof text);
    if (shapes->x_dtype[first] != LK_F32 || !lk_shape_equal(&shapes->x[first], &wanted))
        return lk_fail(LK_E_SHAPE,
                       "%s: initial states [%d, %" PRId64 "] expected as second input, found "
                       "%s%s",
                       name, lk_cell_states(cell), o->units,
                       shapes->x_dtype[first] == LK_F32 ? "" : "labels ", text);
    return LK_OK;
}

static void infer_params(struct lk_op_shapes *shapes, enum lk_cell cell)
{
    const struct lk_recurrent_options *o = shapes->options;
    const int64_t channels = shapes->x[0].dim[1], columns = lk_cell_gates(cell) * o->units;
    const bool forgets = cell == LK_LSTM && o->unit_forget_bias;
    shapes->param[LK_CELL_WEIGHT] = (struct lk_param_spec){.name = "weight",
                                                           .shape = {2, {channels, columns}},
                                                           .init = LK_INIT_GLOROT_UNIFORM,
                                                           .fan_in = channels,
                                                           .fan_out = columns};
    shapes->param[LK_CELL_RECURRENT] = (struct lk_param_spec){.name = "recurrent_weight",
                                                              .shape = {2, {o->units, columns}},
                                                              .init = LK_INIT_ORTHOGONAL};
    shapes->param[LK_CELL_BIAS] =
        (struct lk_param_spec){.name = "bias",
                               .shape = {1, {columns}},
                               .init = forgets ? LK_INIT_FORGET_GATE : LK_INIT_ZEROS};
    shapes->param[LK_CELL_RECURRENT_BIAS] = (struct lk_param_spec){
        .name = "recurrent_bias", .shape = {1, {columns}}, .init = LK_INIT_ZEROS};
    shapes->params = o->use_bias ? (cell == LK_GRU_AFTER ? 4 : 3) : 2;
}

static enum lk_status infer(struct lk_op_shapes *shapes, const char *name, enum lk_cell cell)
{
    const struct lk_recurrent_options *o = shapes->options;
    const struct lk_shape *x = &shapes->x[0];
    const int states = o->return_state ? lk_cell_states(cell) : 0;
    LK_TRY(check_inputs(shapes, name, cell));
    const int64_t steps = x->dim[0], columns = lk_cell_gates(cell) * o->units;
    const int64_t rows = (o->return_sequences ? steps : 1) + states;
    shapes->y = o->return_sequences || o->return_state ? (struct lk_shape){2, {rows, o->units}}
                                                       : (struct lk_shape){1, {o->units}};
    shapes->ends_steps = states > 0;
    if (shapes->window > 0 && (!o->return_sequences || o->return_state || o->go_backwards ||
                               lk_recurrent_first_state(shapes) > 0))
        return lk_fail(LK_E_UNSUPPORTED, "%s does not go from each time step to the next",
                       name);
    shapes->forgets_nothing = true;
    infer_params(shapes, cell);
    const struct lk_shape all = {2, {steps, columns}};
    if (lk_shape_count(&shapes->y) < 0 || lk_shape_count(&all) < 0 ||
        lk_shape_count(&shapes->param[LK_CELL_WEIGHT].shape) < 0 ||
        lk_shape_count(&shapes->param[LK_CELL_RECURRENT].shape) < 0)
        return lk_fail(LK_E_SHAPE, "%s: %" PRId64 " units are too many", name, o->units);
    shapes->backward_reads_x = true;
    shapes->flops = 2.0 * (double)steps * (double)columns * (double)(x->dim[1] + o->units);
    return LK_OK;
}

static enum lk_status infer_lstm(struct lk_op_shapes *shapes)
{
    return infer(shapes, "lstm", LK_LSTM);
}

static enum lk_cell gru_of(const void *options)
{
    return ((const struct lk_recurrent_options *)options)->reset_after ? LK_GRU_AFTER
                                                                       : LK_GRU_BEFORE;
}

static enum lk_status infer_gru(struct lk_op_shapes *shapes)
{
    return infer(shapes, "gru", gru_of(shapes->options));
}

static enum lk_status infer_rnn(struct lk_op_shapes *shapes)
{
    return infer(shapes, "rnn", LK_RNN);
}

/* --- the products ------------------------------------------------------------------------ */

/* The two layers, of x and of h, whose products run over all time steps. */
struct state {
    struct lk_layer input, recurrent;
    struct lk_walk walk;
};

enum { OF_INPUT, OF_STATE, LAYERS };

struct described {
    struct lk_product_setup setup;
    struct lk_product_shape shape;
    struct lk_layer_wants wants;
    char problem[96];
};

static int64_t columns_of(const struct lk_op_setup *setup)
{
    return setup->shapes.param[LK_CELL_WEIGHT].shape.dim[1];
}

/* Reals at the beginning of the workspace for the gates' sums or gradients of all steps. */
static int64_t kept_reals(const struct lk_op_setup *setup)
{
    return lk_op_kept(setup, setup->tiling.tiles * setup->shapes.x[0].dim[0] *
                                 columns_of(setup) * setup->tiling.lanes);
}

static struct lk_product_setup products_of(const struct lk_op_setup *setup, const char *problem)
{
    return lk_op_step_products(setup, setup->shapes.x[0].dim[0], problem);
}

/* Of the product with h only the weight gradient is made over all steps. Problems are those of
 * dense layers, whose tuning they share. */
static void describe(const struct lk_op_setup *setup, int layer, struct described *d)
{
    const struct lk_recurrent_options *o = setup->options;
    const bool of_input = layer == OF_INPUT;
    const bool bias = setup->shapes.params > (of_input ? LK_CELL_BIAS : LK_CELL_RECURRENT_BIAS);
    const int64_t channels = of_input ? setup->shapes.x[0].dim[1] : o->units;
    d->shape = lk_matrix_shape(channels, columns_of(setup), bias, false);
    snprintf(d->problem, sizeof d->problem,
             "[%" PRId64 ", 1, 1] filters=%" PRId64 " kernel=1,1%s", channels,
             columns_of(setup), bias ? "" : " bias=false");
    d->setup = products_of(setup, d->problem);
    d->wants = (struct lk_layer_wants){.training = setup->training,
                                       .dx = of_input && setup->wants_dx[0],
                                       .dw = setup->wants_dw,
                                       .asks_gate = of_input && setup->asks_gate[0],
                                       .without_y = !of_input,
                                       .kept = kept_reals(setup)};
}

static bool has_layer(const struct lk_op_setup *setup, int layer)
{
    return layer == OF_INPUT || (setup->training && setup->wants_dw);
}

/* Inputs after dropout are in `saved` before the walk has written there and after it has read.
 */
static size_t input_bytes(const struct lk_op_setup *setup)
{
    return lk_tiled_bytes(&setup->tiling, &setup->shapes.x[0], lk_op_stored(setup));
}

static enum lk_status prepare(struct lk_op_setup *setup, enum lk_cell cell)
{
    void *memory;
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct state), &memory));
    struct state *s = setup->state = memory;
    struct lk_layer *layers[] = {&s->input, &s->recurrent};
    LK_TRY(lk_walk_prepare(setup, cell, kept_reals(setup), &s->walk));
    setup->workspace_bytes = (size_t)s->walk.reals * lk_dtype_bytes(setup->real);
    for (int i = 0; i < LAYERS && has_layer(setup, i); i++) {
        struct described d;
        describe(setup, i, &d);
        LK_TRY(lk_layer_prepare(&d.setup, &d.shape, &d.wants, layers[i]));
        if (layers[i]->workspace_bytes > setup->workspace_bytes)
            setup->workspace_bytes = layers[i]->workspace_bytes;
    }
    setup->gates_dx[0] = s->input.gates_dx;
    setup->saved_bytes = setup->training ? s->walk.saved_bytes : 0;
    setup->past_bytes = setup->shapes.window > 0 ? s->walk.past_bytes : 0;
    if (lk_drops_inputs(setup) && setup->saved_bytes < input_bytes(setup))
        setup->saved_bytes = input_bytes(setup);
    return LK_OK;
}

static enum lk_status prepare_lstm(struct lk_op_setup *setup)
{
    return prepare(setup, LK_LSTM);
}

static enum lk_status prepare_gru(struct lk_op_setup *setup)
{
    return prepare(setup, gru_of(setup->options));
}

static enum lk_status prepare_rnn(struct lk_op_setup *setup)
{
    return prepare(setup, LK_RNN);
}

static enum lk_status forward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct state *s = setup->state;
    const struct lk_product_setup of = products_of(setup, "");
    const bool drops = lk_drops_inputs(setup);
    const struct lk_layer_run operands = {.x = drops ? run->saved : run->x[0],
                                          .w = run->w[LK_CELL_WEIGHT],
                                          .bias = run->w[LK_CELL_BIAS],
                                          .y = run->workspace,
                                          .lengths = lk_walk_lengths(setup, &s->walk, run),
                                          .workspace = run->workspace};
    if (drops)
        LK_TRY(lk_drop_inputs(setup, &s->walk, run, run->x[0], run->saved));
    LK_TRY(lk_layer_forward(&of, &s->input, &operands));
    return lk_walk_forward(setup, &s->walk, run);
}

/* The gradient of the product with h, from dz. */
static enum lk_status backward_of_state(const struct lk_op_setup *setup,
                                        const struct lk_op_run *run, bool dy_is_turned)
{
    const struct state *s = setup->state;
    const struct lk_product_setup of = products_of(setup, "");
    const struct lk_layer_run recurrent = {.x = run->saved,
                                           .dy = run->workspace,
                                           .dw = run->dw[LK_CELL_RECURRENT],
                                           .db = run->dw[LK_CELL_RECURRENT_BIAS],
                                           .lengths = lk_walk_lengths(setup, &s->walk, run),
                                           .workspace = run->workspace,
                                           .dw_stride = run->dw_stride,
                                           .dy_is_turned = dy_is_turned};
    if (!recurrent.dw)
        return LK_OK;
    LK_TRY(lk_walk_turn_to_recurrent(setup, &s->walk, run));
    LK_TRY(lk_layer_backward(&of, &s->recurrent, &recurrent));
    return lk_walk_candidate(setup, &s->walk, run);
}

static enum lk_status backward_of_input(const struct lk_op_setup *setup,
                                        const struct lk_op_run *run, const struct lk_buffer *x)
{
    const struct state *s = setup->state;
    const struct lk_product_setup of = products_of(setup, "");
    const struct lk_layer_run input = {.x = x,
                                       .w = run->w[LK_CELL_WEIGHT],
                                       .dy = run->workspace,
                                       .dx = run->dx[0],
                                       .dw = run->dw[LK_CELL_WEIGHT],
                                       .db = run->dw[LK_CELL_BIAS],
                                       .lengths = lk_walk_lengths(setup, &s->walk, run),
                                       .workspace = run->workspace,
                                       .dw_stride = run->dw_stride};
    return input.dx || input.dw ? lk_layer_backward(&of, &s->input, &input) : LK_OK;
}

/* The dropped inputs need the room of what was saved, so the product with h comes first. */
static enum lk_status backward_dropped(const struct lk_op_setup *setup,
                                       const struct lk_op_run *run)
{
    const struct state *s = setup->state;
    LK_TRY(lk_walk_keep(setup, &s->walk, run, false));
    LK_TRY(backward_of_state(setup, run, false));
    LK_TRY(lk_walk_keep(setup, &s->walk, run, true));
    if (run->dw[LK_CELL_WEIGHT] || run->dx[0])
        LK_TRY(lk_drop_inputs(setup, &s->walk, run, run->x[0], run->saved));
    LK_TRY(backward_of_input(setup, run, run->saved));
    return run->dx[0] ? lk_drop_inputs(setup, &s->walk, run, run->dx[0], run->dx[0]) : LK_OK;
}

static enum lk_status backward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct state *s = setup->state;
    const bool of_input = run->dx[0] || run->dw[LK_CELL_WEIGHT];
    LK_TRY(lk_walk_backward(setup, &s->walk, run));
    if (lk_drops_inputs(setup))
        return backward_dropped(setup, run);
    LK_TRY(backward_of_input(setup, run, run->x[0]));
    return backward_of_state(setup, run, of_input && !s->walk.reset);
}

/* --- choices ----------------------------------------------------------------------------- */

static bool choice(const struct lk_op_setup *setup, int index, struct lk_choice *choice)
{
    for (int i = 0; i < LAYERS && has_layer(setup, i); i++) {
        struct described d;
        int own = 0;
        describe(setup, i, &d);
        while (lk_layer_choice(&d.setup, &d.shape, &d.wants, own, choice)) {
            if (own++ == index)
                return true;
        }
        index -= own;
    }
    return false;
}

static bool device_choice(const struct lk_op_setup *setup, struct lk_choice *choice)
{
    struct described d;
    describe(setup, OF_INPUT, &d);
    return lk_layer_device_choice(&d.setup, &d.shape, choice);
}

#define CELL(name_, table_)                                                                    \
    const struct lk_op lk_op_##name_ = {.name = #name_,                                        \
                                        .options = table_,                                     \
                                        .options_bytes = sizeof(struct lk_recurrent_options),  \
                                        .min_inputs = 1,                                       \
                                        .max_inputs = 3,                                       \
                                        .takes_length = true,                                  \
                                        .time = LK_TIME_BEFORE,                                \
                                        .infer = infer_##name_,                                \
                                        .prepare = prepare_##name_,                            \
                                        .forward = forward,                                    \
                                        .backward = backward,                                  \
                                        .choice = choice,                                      \
                                        .device_choice = device_choice}
CELL(lstm, lstm_table);
CELL(gru, gru_table);
CELL(rnn, rnn_table);
