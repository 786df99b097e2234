/* Keras's layers of sequences: embeddings, recurrent layers, convolutions and pooling over
 * time, attention; and layers that have another one inside. */
#include "model/keras/layers.h"

#include "base/fail.h"
#include <stdio.h>
#include <string.h>

static enum lk_status check_sequence(const struct lk_keras_draft *draft,
                                     const struct lk_keras_tensor *x)
{
    char text[96];
    if (x->node->shapes.y.rank == 2)
        return LK_OK;
    lk_shape_print_hwc(&x->node->shapes.y, text, sizeof text);
    return lk_keras_fail(draft, "it reads a sequence [t, c], found %s", text);
}

/* A number, or a list of one; `standard` where there is none. */
static enum lk_status read_one(const struct lk_keras_draft *draft, const char *key,
                               int64_t standard, int64_t *value)
{
    json_t *json = json_object_get(draft->layer->config, key);
    if (!json_is_array(json))
        return lk_keras_int(draft, key, standard, value);
    *value = json_integer_value(json_array_get(json, 0));
    return json_array_size(json) == 1 && json_is_integer(json_array_get(json, 0))
               ? LK_OK
               : lk_keras_fail(draft, "'%s' is expected to be one number", key);
}

static enum lk_status pair(struct lk_keras_draft *draft, const struct lk_keras_tensor *entry,
                           const char *param, const char *word, int number)
{
    return lk_keras_pair_array(
        draft, entry, &(struct lk_keras_array){.param = param, .word = word, .number = number});
}

/* --- layers within layers ---------------------------------------------------------------- */

/* Makes `config` the layer at work: a part of the one that is, whose arrays lie at `place`
 * behind its own path. */
static enum lk_status enter(struct lk_keras_draft *draft, const char *place, const char *class,
                            json_t *config)
{
    void *memory = NULL;
    LK_TRY(lk_arena_allocate(&draft->arena, sizeof *draft->layer, &memory));
    struct lk_keras_layer *part = memory;
    *part = *draft->layer;
    LK_TRY(lk_keras_text(draft, &part->path, "%s/%s", draft->layer->path, place));
    part->class = class;
    part->config = config;
    draft->layer = part;
    return LK_OK;
}

/* The layer that the one at work has under `key`. */
static enum lk_status enter_layer(struct lk_keras_draft *draft, const char *key,
                                  const char *place)
{
    json_t *layer = json_object_get(draft->layer->config, key);
    const char *class = json_string_value(json_object_get(layer, "class_name"));
    json_t *config = json_object_get(layer, "config");
    if (!class || !json_is_object(config))
        return lk_keras_fail(draft, "'%s' is expected to be a layer", key);
    return enter(draft, place, class, config);
}

static enum lk_status time_distributed(struct lk_keras_draft *draft, int count,
                                       const struct lk_keras_tensor *x,
                                       struct lk_keras_tensor *made)
{
    static const char *const known[] = {"Dense", "Activation", "ReLU",    "LeakyReLU",
                                        "ELU",   "Softmax",    "Dropout", "LayerNormalization"};
    struct lk_keras_layer *outer = draft->layer;
    bool is_known = false;
    LK_TRY(check_sequence(draft, x));
    LK_TRY(enter_layer(draft, "layer", "layer"));
    for (int i = 0; i < LK_COUNT(known); i++)
        is_known |= strcmp(draft->layer->class, known[i]) == 0;
    const enum lk_status status =
        is_known ? lk_keras_call(draft, count, x, made)
                 : lk_keras_fail(draft, "it is not supported for each time step");
    draft->layer = outer;
    return status;
}

/* --- masks ------------------------------------------------------------------------------- */

/* The steps of an input that count come as a length with each sample, where Keras finds them in
 * the numbers. */
static enum lk_status mask(struct lk_keras_draft *draft, const struct lk_keras_tensor *x,
                           bool is_masked, struct lk_keras_tensor *made)
{
    if (is_masked && x->input == 0)
        return lk_keras_fail(draft, "it masks time steps of something that is no input");
    if (x->input == 0)
        return LK_OK;
    enum lk_keras_mask *known = &draft->masks[x->input - 1];
    const enum lk_keras_mask wanted = is_masked ? LK_KERAS_MASKED : LK_KERAS_UNMASKED;
    if (*known != LK_KERAS_NO_MASK && *known != wanted)
        return lk_keras_fail(draft, "it reads an input with a mask that another layer reads "
                                    "without, or the other way round");
    *known = wanted;
    made->masked_by = is_masked ? x->input : 0;
    return LK_OK;
}

static enum lk_status masking(struct lk_keras_draft *draft, int count,
                              const struct lk_keras_tensor *x, struct lk_keras_tensor *made)
{
    (void)count;
    LK_TRY(check_sequence(draft, x));
    *made = *x;
    return mask(draft, x, true, made);
}

static enum lk_status embedding(struct lk_keras_draft *draft, int count,
                                const struct lk_keras_tensor *x, struct lk_keras_tensor *made)
{
    int64_t words, units;
    bool masks;
    const char *options;
    (void)count;
    LK_TRY(lk_keras_int(draft, "input_dim", 0, &words));
    LK_TRY(lk_keras_int(draft, "output_dim", 0, &units));
    LK_TRY(lk_keras_bool(draft, "mask_zero", false, &masks));
    LK_TRY(lk_keras_text(draft, &options, "vocabulary=%lld units=%lld", (long long)words,
                         (long long)units));
    LK_TRY(lk_keras_add(draft, &(struct lk_keras_entry){.op = "embedding", .options = options},
                        1, x, made));
    LK_TRY(mask(draft, x, masks, made));
    return pair(draft, made, "weight", "embeddings", 0);
}

/* --- recurrent layers -------------------------------------------------------------------- */

static const char *const cell_options[] = {"units",
                                           "activation",
                                           "recurrent_activation",
                                           "use_bias",
                                           "unit_forget_bias",
                                           "recurrent_initializer",
                                           "recurrent_regularizer",
                                           "recurrent_constraint",
                                           "dropout",
                                           "recurrent_dropout",
                                           "seed",
                                           "implementation",
                                           "return_sequences",
                                           "go_backwards",
                                           "reset_after",
                                           "unroll",
                                           "use_cudnn",
                                           "zero_output_for_mask",
                                           "input_dim",
                                           "input_length",
                                           NULL};

struct cell {
    const char *op, *options;
    bool sequences, backwards, bias, reset_after;
};

/* The functions of a cell that ours has: tanh or relu, and logistic gates. */
static enum lk_status read_functions(const struct lk_keras_draft *draft,
                                     const char **activation)
{
    const char *gates;
    LK_TRY(lk_keras_word(draft, "activation", "tanh", activation));
    LK_TRY(lk_keras_word(draft, "recurrent_activation", "sigmoid", &gates));
    if (strcmp(*activation, "tanh") != 0 && strcmp(*activation, "relu") != 0)
        return lk_keras_fail(draft, "'activation' is %.40s, expected tanh or relu",
                             *activation);
    return strcmp(gates, "sigmoid") == 0
               ? LK_OK
               : lk_keras_fail(draft, "'recurrent_activation' is %.40s, expected sigmoid",
                               gates);
}

/* What training drops, as options of ours. */
static enum lk_status read_drops(struct lk_keras_draft *draft, const char **options)
{
    double inputs, states;
    char of_inputs[48] = "", of_states[48] = "";
    LK_TRY(lk_keras_real(draft, "dropout", 0, &inputs));
    LK_TRY(lk_keras_real(draft, "recurrent_dropout", 0, &states));
    if (inputs != 0)
        snprintf(of_inputs, sizeof of_inputs, " dropout=%.9g", inputs);
    if (states != 0)
        snprintf(of_states, sizeof of_states, " recurrent_dropout=%.9g", states);
    return lk_keras_text(draft, options, "%s%s", of_inputs, of_states);
}

/* backwards: whatever the layer says. */
static enum lk_status read_cell(struct lk_keras_draft *draft, bool is_backward,
                                struct cell *cell)
{
    static const char *const cells[][2] = {
        {"LSTM", "lstm"}, {"GRU", "gru"}, {"SimpleRNN", "rnn"}};
    const char *activation, *drops;
    int64_t units;
    *cell = (struct cell){0};
    for (int i = 0; i < LK_COUNT(cells); i++)
        if (strcmp(draft->layer->class, cells[i][0]) == 0)
            cell->op = cells[i][1];
    if (!cell->op)
        return lk_keras_fail(draft,
                             "it has a layer of class '%.60s', expected LSTM, GRU or "
                             "SimpleRNN",
                             draft->layer->class);
    LK_TRY(read_functions(draft, &activation));
    LK_TRY(lk_keras_int(draft, "units", 0, &units));
    LK_TRY(lk_keras_bool(draft, "return_sequences", false, &cell->sequences));
    LK_TRY(lk_keras_bool(draft, "go_backwards", false, &cell->backwards));
    LK_TRY(lk_keras_bool(draft, "use_bias", true, &cell->bias));
    LK_TRY(lk_keras_bool(draft, "reset_after", false, &cell->reset_after));
    cell->backwards |= is_backward;
    LK_TRY(read_drops(draft, &drops));
    return lk_keras_text(draft, &cell->options, "units=%lld%s%s%s%s%s%s", (long long)units,
                         strcmp(activation, "relu") == 0 ? " activation=relu" : "",
                         cell->bias ? "" : " use_bias=false",
                         cell->sequences ? " return_sequences=true" : "",
                         cell->backwards ? " go_backwards=true" : "",
                         strcmp(cell->op, "gru") != 0 ? ""
                         : cell->reset_after          ? " reset_after=true"
                                                      : " reset_after=false",
                         drops);
}

/* Adds the cell of the layer at work, whose arrays lie in a part of it. */
static enum lk_status add_cell(struct lk_keras_draft *draft, const struct cell *cell,
                               const char *suffix, const struct lk_keras_tensor *x,
                               struct lk_keras_tensor *made)
{
    struct lk_keras_layer *outer = draft->layer;
    LK_TRY(enter(draft, "cell", outer->class, outer->config));
    const struct lk_keras_entry entry = {
        .op = cell->op, .options = cell->options, .suffix = suffix};
    enum lk_status status = lk_keras_add(draft, &entry, 1, x, made);
    if (status == LK_OK)
        status = pair(draft, made, "weight", "kernel", 0);
    if (status == LK_OK)
        status = pair(draft, made, "recurrent_weight", "recurrent_kernel", 1);
    if (status == LK_OK && cell->bias)
        status = pair(draft, made, "bias", "bias", 2);
    if (status == LK_OK && cell->bias && made->node->shapes.params > 3)
        status = pair(draft, made, "recurrent_bias", "bias", 2);
    draft->layer = outer;
    return status;
}

/* Keras gives the outputs of a backward walk in the order in which it made them. */
static enum lk_status recurrent(struct lk_keras_draft *draft, int count,
                                const struct lk_keras_tensor *x, struct lk_keras_tensor *made)
{
    struct cell cell;
    struct lk_keras_tensor walked;
    (void)count;
    LK_TRY(check_sequence(draft, x));
    LK_TRY(read_cell(draft, false, &cell));
    if (!cell.sequences || !cell.backwards)
        return add_cell(draft, &cell, NULL, x, made);
    if (x->masked_by)
        return lk_keras_fail(draft, "'go_backwards' with 'return_sequences' and a mask is not "
                                    "supported");
    LK_TRY(add_cell(draft, &cell, "_walk", x, &walked));
    return lk_keras_add(draft, &(struct lk_keras_entry){.op = "reverse_steps", .options = ""},
                        1, &walked, made);
}

/* Adds one direction of a Bidirectional. */
static enum lk_status add_way(struct lk_keras_draft *draft, bool is_backward,
                              const struct lk_keras_tensor *x, struct lk_keras_tensor *made,
                              bool *sequences)
{
    struct lk_keras_layer *outer = draft->layer;
    struct cell cell = {0};
    const bool is_own =
        is_backward && json_is_object(json_object_get(draft->layer->config, "backward_layer"));
    LK_TRY(enter_layer(draft, is_own ? "backward_layer" : "layer",
                       is_backward ? "backward_layer" : "forward_layer"));
    enum lk_status status = lk_keras_check_known(draft, cell_options);
    if (status == LK_OK)
        status = read_cell(draft, is_backward, &cell);
    if (status == LK_OK && cell.backwards != is_backward)
        status = lk_keras_fail(draft, "its first layer goes backwards");
    if (status == LK_OK)
        status = add_cell(draft, &cell, is_backward ? "_backward" : "_forward", x, made);
    draft->layer = outer;
    *sequences = cell.sequences;
    return status;
}

static enum lk_status bidirectional(struct lk_keras_draft *draft, int count,
                                    const struct lk_keras_tensor *x,
                                    struct lk_keras_tensor *made)
{
    static const struct {
        const char *mode, *op;
    } modes[] = {{"concat", "concat"}, {"sum", "add"}, {"mul", "multiply"}};
    struct lk_keras_tensor ways[2];
    bool sequences[2];
    const char *mode, *op = NULL;
    (void)count;
    LK_TRY(check_sequence(draft, x));
    LK_TRY(lk_keras_word(draft, "merge_mode", "none", &mode));
    for (int i = 0; i < LK_COUNT(modes); i++)
        if (strcmp(mode, modes[i].mode) == 0)
            op = modes[i].op;
    if (!op)
        return lk_keras_fail(draft, "'merge_mode' is %.40s, expected concat, sum or mul", mode);
    for (int i = 0; i < 2; i++)
        LK_TRY(add_way(draft, i == 1, x, &ways[i], &sequences[i]));
    if (sequences[0] != sequences[1])
        return lk_keras_fail(draft, "only one of its layers returns sequences");
    const struct lk_keras_entry entry = {.op = op,
                                         .options = strcmp(op, "concat") == 0 ? "axis=c" : ""};
    return lk_keras_add(draft, &entry, 2, ways, made);
}

/* --- convolutions and pooling over time -------------------------------------------------- */

static enum lk_status conv1d(struct lk_keras_draft *draft, int count,
                             const struct lk_keras_tensor *x, struct lk_keras_tensor *made)
{
    int64_t filters, kernel, stride, dilation, groups;
    bool bias;
    const char *padding, *options;
    struct lk_keras_tensor weighted;
    (void)count;
    LK_TRY(check_sequence(draft, x));
    LK_TRY(lk_keras_int(draft, "filters", 0, &filters));
    LK_TRY(read_one(draft, "kernel_size", 0, &kernel));
    LK_TRY(read_one(draft, "strides", 1, &stride));
    LK_TRY(read_one(draft, "dilation_rate", 1, &dilation));
    LK_TRY(lk_keras_int(draft, "groups", 1, &groups));
    LK_TRY(lk_keras_bool(draft, "use_bias", true, &bias));
    LK_TRY(lk_keras_word(draft, "padding", "valid", &padding));
    if (groups != 1)
        return lk_keras_fail(draft, "'groups' is %lld, expected 1", (long long)groups);
    if (strcmp(padding, "valid") != 0 && strcmp(padding, "same") != 0 &&
        strcmp(padding, "causal") != 0)
        return lk_keras_fail(draft, "'padding' is %.40s, expected valid, same or causal",
                             padding);
    LK_TRY(lk_keras_text(draft, &options,
                         "filters=%lld kernel=%lld stride=%lld dilation=%lld padding=%s%s",
                         (long long)filters, (long long)kernel, (long long)stride,
                         (long long)dilation, padding, bias ? "" : " bias=false"));
    const struct lk_keras_entry entry = {.op = "conv1d", .options = options};
    LK_TRY(lk_keras_add_activated(draft, &entry, x, &weighted, made));
    return lk_keras_pair_kernel(draft, &weighted, "kernel", 0, bias);
}

static enum lk_status pool1d(struct lk_keras_draft *draft, int count,
                             const struct lk_keras_tensor *x, struct lk_keras_tensor *made)
{
    const bool is_max = strncmp(draft->layer->class, "Max", 3) == 0;
    int64_t size, stride;
    const char *padding, *options;
    (void)count;
    LK_TRY(check_sequence(draft, x));
    LK_TRY(read_one(draft, "pool_size", 2, &size));
    LK_TRY(read_one(draft, "strides", size, &stride));
    LK_TRY(lk_keras_word(draft, "padding", "valid", &padding));
    if (strcmp(padding, "valid") != 0 && strcmp(padding, "same") != 0)
        return lk_keras_fail(draft, "'padding' is %.40s, expected valid or same", padding);
    LK_TRY(lk_keras_text(draft, &options, "size=%lld stride=%lld padding=%s", (long long)size,
                         (long long)stride, padding));
    const struct lk_keras_entry entry = {.op = is_max ? "max_pool1d" : "average_pool1d",
                                         .options = options};
    return lk_keras_add(draft, &entry, 1, x, made);
}

static enum lk_status global_pool1d(struct lk_keras_draft *draft, int count,
                                    const struct lk_keras_tensor *x,
                                    struct lk_keras_tensor *made)
{
    const bool is_max = strncmp(draft->layer->class, "GlobalMax", 9) == 0;
    (void)count;
    LK_TRY(check_sequence(draft, x));
    const struct lk_keras_entry entry = {
        .op = is_max ? "global_max_pool1d" : "global_average_pool1d", .options = ""};
    return lk_keras_add(draft, &entry, 1, x, made);
}

/* --- attention --------------------------------------------------------------------------- */

/* A dense layer of the attention at work, whose array has heads as an axis of its own. */
static enum lk_status add_projection(struct lk_keras_draft *draft, const char *word,
                                     int64_t units, const struct lk_keras_tensor *x,
                                     struct lk_keras_tensor *made)
{
    struct lk_keras_layer *outer = draft->layer;
    const bool is_last = strcmp(word, "attention_output") == 0;
    const char *place, *options, *suffix, *kernel, *add;
    bool bias;
    LK_TRY(lk_keras_bool(draft, "use_bias", true, &bias));
    LK_TRY(lk_keras_text(draft, &place, "%s_dense", is_last ? "output" : word));
    LK_TRY(lk_keras_text(draft, &suffix, "_%s", word));
    LK_TRY(lk_keras_text(draft, &kernel, "%s/kernel", word));
    LK_TRY(lk_keras_text(draft, &add, "%s/bias", word));
    LK_TRY(lk_keras_text(draft, &options, "units=%lld%s", (long long)units,
                         bias ? "" : " bias=false"));
    LK_TRY(enter(draft, place, outer->class, outer->config));
    const struct lk_keras_entry entry = {
        .op = "dense", .options = options, .suffix = is_last ? NULL : suffix};
    enum lk_status status = lk_keras_add(draft, &entry, 1, x, made);
    struct lk_keras_array array = {.param = "weight", .word = kernel, .number = 0};
    if (status == LK_OK)
        status = lk_keras_pair_array(draft, made, &array);
    array = (struct lk_keras_array){.param = "bias", .word = add, .number = 1};
    if (status == LK_OK && bias)
        status = lk_keras_pair_array(draft, made, &array);
    draft->layer = outer;
    return status;
}

/* Keras calls it with queries, values and, where they are others, keys. */
static enum lk_status attention(struct lk_keras_draft *draft, int count,
                                const struct lk_keras_tensor *x, struct lk_keras_tensor *made)
{
    struct lk_keras_tensor parts[3], heads;
    const struct lk_keras_tensor *key = &x[count - 1], *value = &x[count > 1];
    int64_t number, width, values, axis;
    double rate;
    char drops[32] = "";
    const char *options;
    for (int i = 0; i < count; i++)
        LK_TRY(check_sequence(draft, &x[i]));
    LK_TRY(read_one(draft, "attention_axes", 1, &axis));
    if (axis != 1)
        return lk_keras_fail(draft, "'attention_axes' is expected to be [1]");
    LK_TRY(lk_keras_int(draft, "num_heads", 0, &number));
    LK_TRY(lk_keras_int(draft, "key_dim", 0, &width));
    LK_TRY(lk_keras_int(draft, "value_dim", width, &values));
    if (number < 1 || width < 1 || values < 1 || number > 4096 || width > 4096 || values > 4096)
        return lk_keras_fail(draft, "heads and their widths are expected to be 1..4096");
    LK_TRY(add_projection(draft, "query", number * width, &x[0], &parts[0]));
    LK_TRY(add_projection(draft, "key", number * width, key, &parts[1]));
    LK_TRY(add_projection(draft, "value", number * values, value, &parts[2]));
    LK_TRY(lk_keras_real(draft, "dropout", 0, &rate));
    if (rate != 0)
        snprintf(drops, sizeof drops, " dropout=%.9g", rate);
    LK_TRY(lk_keras_text(draft, &options, "heads=%lld%s%s", (long long)number,
                         draft->is_causal ? " causal=true" : "", drops));
    const struct lk_keras_entry entry = {
        .op = "attention", .options = options, .suffix = "_heads"};
    LK_TRY(lk_keras_add(draft, &entry, 3, parts, &heads));
    return add_projection(draft, "attention_output", x[0].node->shapes.y.dim[1], &heads, made);
}

const struct lk_keras_class lk_keras_text_classes[] = {
    {"Embedding", embedding, 1,
     LK_KERAS_OPTIONS("input_dim", "output_dim", "mask_zero", "input_length",
                      "embeddings_initializer", "embeddings_regularizer",
                      "embeddings_constraint")},
    {"Masking", masking, 1, LK_KERAS_OPTIONS("mask_value")},
    {"LSTM", recurrent, 1, cell_options},
    {"GRU", recurrent, 1, cell_options},
    {"SimpleRNN", recurrent, 1, cell_options},
    {"Bidirectional", bidirectional, 1,
     LK_KERAS_OPTIONS("layer", "backward_layer", "merge_mode")},
    {"TimeDistributed", time_distributed, 1, LK_KERAS_OPTIONS("layer")},
    {"Conv1D", conv1d, 1,
     LK_KERAS_OPTIONS("filters", "kernel_size", "strides", "padding", "dilation_rate", "groups",
                      "activation", "use_bias")},
    {"MaxPooling1D", pool1d, 1, LK_KERAS_OPTIONS("pool_size", "strides", "padding")},
    {"AveragePooling1D", pool1d, 1, LK_KERAS_OPTIONS("pool_size", "strides", "padding")},
    {"GlobalAveragePooling1D", global_pool1d, 1, LK_KERAS_OPTIONS(NULL)},
    {"GlobalMaxPooling1D", global_pool1d, 1, LK_KERAS_OPTIONS(NULL)},
    {"MultiHeadAttention", attention, 3,
     LK_KERAS_OPTIONS("num_heads", "key_dim", "value_dim", "dropout", "use_bias", "seed",
                      "attention_axes")},
    {0},
};
