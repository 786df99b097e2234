/* lockstep summary: a model's layers, shapes, parameters, work and memory. */
#include "command.h"
#include "places.h"
#include "terminal/json.h"
#include "terminal/table.h"
#include "terminal/terminal.h"
#include "train/progress.h"
#include "train/train.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is asked for. */
struct plan {
    char device[512]; /* LIST; "": any */
    bool is_told;     /* which device */
    int64_t batch;
    int shards;    /* 0: as training chooses */
    bool is_mixed; /* activations are halves */
    enum lk_recompute_mode recompute;
    size_t memory_limit; /* bytes; 0: none */
    bool divides;        /* among `devices` devices of a group, 0: those of the list, */
    const char *place;   /* as --place says */
    int64_t devices;
};

/* Channels are first inside, last in model files: (h, w, c), as users write them. */
static const char *shape_text(const struct lk_shape *shape, char text[80])
{
    if (shape->rank == 3) {
        snprintf(text, 80, "(%" PRId64 ", %" PRId64 ", %" PRId64 ")", shape->dim[1],
                 shape->dim[2], shape->dim[0]);
        return text;
    }
    int used = snprintf(text, 80, "(");
    for (int i = 0; i < shape->rank; i++)
        used += snprintf(text + used, 80 - (size_t)used, "%s%" PRId64, i ? ", " : "",
                         shape->dim[i]);
    snprintf(text + used, 80 - (size_t)used, ")");
    return text;
}

/* "1,234,567". */
const char *count_text(int64_t count, char text[32])
{
    char digits[24];
    const int length = snprintf(digits, sizeof digits, "%" PRId64, count);
    int used = 0;
    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0)
            text[used++] = ',';
        text[used++] = digits[i];
    }
    text[used] = '\0';
    return text;
}

const char *bytes_text(double bytes, char text[32])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", NULL};
    int unit = 0;
    for (; bytes >= 1024 && units[unit + 1]; unit++)
        bytes /= 1024;
    snprintf(text, 32, unit ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
    return text;
}

/* All samples of a batch. */
static double activation_bytes(const struct lk_node_info *info, const struct plan *plan)
{
    double elements = plan->is_mixed ? 2 : sizeof(float);
    for (int i = 0; i < info->shape.rank; i++)
        elements *= (double)info->shape.dim[i];
    return elements * (double)plan->batch;
}

static int name_width(const struct lk_graph *graph)
{
    size_t width = 5;
    const struct lk_node *node;
    for (int i = 0; (node = lk_graph_node(graph, i)) != NULL; i++) {
        const size_t length = strlen(lk_node_info(node).name);
        width = length > width ? length : width;
    }
    return (int)width;
}

struct totals {
    int64_t parameters, trainable, frozen;
    double flops, bytes;
};

static struct totals add_layers(const struct lk_graph *graph, const struct plan *plan)
{
    struct totals t = {0};
    const struct lk_node *node;
    for (int i = 0; (node = lk_graph_node(graph, i)) != NULL; i++) {
        const struct lk_node_info info = lk_node_info(node);
        t.parameters += info.parameters;
        t.trainable += info.trained;
        t.frozen += info.is_trainable ? 0 : info.parameters;
        t.flops += info.flops;
        t.bytes += activation_bytes(&info, plan);
    }
    return t;
}

static void print_layers(const struct lk_graph *graph, const struct plan *plan)
{
    char shape[80], parameters[32], flops[32], bytes[32];
    const struct table_column columns[] = {
        {"layer", 0, name_width(graph), .is_left = true, .is_name = true},
        {"output shape", 2, 20, .is_left = true},
        {"parameters", 2, 12, .rank = 1},
        {"FLOPs", 2, 9, .rank = 4},
        {"activations", 2, 12, .rank = 3},
        {NULL, 0, 0, .is_left = true, .is_name = true, .rank = 2}, /* frozen, ... */
    };
    struct table table;
    const struct lk_node *node;
    table_start(&table, columns, 6);
    for (int i = 0; (node = lk_graph_node(graph, i)) != NULL; i++) {
        const struct lk_node_info info = lk_node_info(node);
        const double size = activation_bytes(&info, plan);
        table_cell(&table, "%s", info.name);
        table_cell(&table, "%s", shape_text(&info.shape, shape));
        table_cell(&table, "%s", count_text(info.parameters, parameters));
        table_cell(&table, "%s", rate_text(info.flops, flops));
        table_cell(&table, "%s", bytes_text(size, bytes));
        table_cell(
            &table, "%s%s%s%s%s", info.parameters && !info.is_trainable ? "  frozen" : "",
            info.weights_of ? "  weights of " : "", info.weights_of ? info.weights_of : "",
            info.length ? "  length " : "", info.length ? info.length : "");
    }
    table_end(&table);
}

static void print_totals(const struct totals *t, const struct plan *plan)
{
    char text[32];
    char trainable[32], frozen[64] = "", bytes[32];
    if (t->frozen > 0)
        snprintf(frozen, sizeof frozen, ", %s frozen", count_text(t->frozen, text));
    print_lines("\nparameters   %s (%s trainable%s), %s\n", count_text(t->parameters, text),
                count_text(t->trainable, trainable), frozen,
                bytes_text((double)t->parameters * sizeof(float), bytes));
    print_lines("FLOPs        %s forward, a sample\n", rate_text(t->flops, text));
    print_lines("activations  %s at batch size %" PRId64 "%s\n", bytes_text(t->bytes, text),
                plan->batch, plan->is_mixed ? ", kept as halves" : "");
}

static void print_memory(const struct lk_memory *m, const char *device)
{
    char text[32];
    print_lines("\ntraining on %s takes %s of device memory:\n", device,
                bytes_text((double)m->total, text));
    printf("  weights      %s\n", bytes_text((double)m->weights, text));
    printf("  gradients    %s\n", bytes_text((double)m->gradients, text));
    printf("  activations  %s\n", bytes_text((double)m->activations, text));
    printf("  inputs       %s\n", bytes_text((double)m->inputs, text));
    printf("  optimizer    %s\n", bytes_text((double)m->optimizer, text));
    if (m->pieces > 1)
        printf("a batch is computed in %d pieces, one after the other\n", m->pieces);
    if (m->again > 0)
        printf("backward computes %.0f %% of forward again\n", 100 * m->again);
}

static void print_inference(const struct lk_memory *m, const char *device)
{
    char text[32];
    print_lines("\ncomputing its outputs on %s takes %s of device memory:\n", device,
                bytes_text((double)m->total, text));
    printf("  weights      %s\n", bytes_text((double)m->weights, text));
    printf("  activations  %s\n", bytes_text((double)m->activations, text));
    printf("  inputs       %s\n", bytes_text((double)m->inputs, text));
}

/* What freezing saves. */
static void print_unfrozen(const struct lk_memory *m)
{
    char total[32], gradients[32], activations[32], optimizer[32];
    printf("with nothing frozen it would take %s: gradients %s, activations %s, optimizer %s\n",
           bytes_text((double)m->total, total), bytes_text((double)m->gradients, gradients),
           bytes_text((double)m->activations, activations),
           bytes_text((double)m->optimizer, optimizer));
}

/* The plan of a model's memory on a device; not there where there is none. */
struct planned {
    bool is_there, knows_unfrozen, knows_inference;
    struct lk_memory memory, unfrozen, inference; /* of training; of a model that none fits */
    char device[128];
};

/* As if nothing were frozen, where something is. What would not fit is not shown. */
static void plan_unfrozen(struct lk_model *model, struct lk_device *device,
                          const struct plan *plan, enum lk_memory_use use,
                          struct planned *planned)
{
    const struct lk_graph *graph = lk_model_graph(model);
    struct lk_node *node;
    bool is_any = false;
    for (int i = 0; (node = lk_graph_node(graph, i)) != NULL; i++) {
        is_any |= lk_node_info(node).parameters && !lk_node_info(node).is_trainable;
        lk_node_set_trainable(node, true);
    }
    planned->knows_unfrozen =
        is_any && lk_model_memory_recomputing(model, device, plan->batch, plan->shards, use,
                                              plan->recompute, &planned->unfrozen) == LK_OK;
    lk_error_clear();
}

/* Of a model that no loss fits, so that it computes and is not trained. */
static void plan_inference(struct lk_model *model, struct lk_device *device,
                           const struct plan *plan, struct planned *planned)
{
    say("no memory plan of training: %s", lk_error_text());
    lk_error_clear();
    planned->knows_inference =
        lk_model_memory(model, device, plan->batch, 1, LK_MEMORY_PREDICTING,
                        &planned->inference) == LK_OK;
    if (!planned->knows_inference)
        say("no memory plan: %s", lk_error_text());
    lk_error_clear();
    snprintf(planned->device, sizeof planned->device, "%s", lk_device_info(device)->name);
}

/* The table stands without it: a machine without a device, or a small one, gets that too, and a
 * model that no loss fits. */
static int plan_memory(struct lk_model *model, const struct plan *plan, struct planned *planned)
{
    const enum lk_memory_use use =
        plan->is_mixed ? LK_MEMORY_TRAINING_MIXED : LK_MEMORY_TRAINING;
    struct lk_device *device = NULL;
    enum lk_status status = lk_device_open(*plan->device ? plan->device : NULL, 0, &device);
    if (status == LK_OK && plan->memory_limit > 0)
        lk_device_limit_memory(device, plan->memory_limit);
    if (status == LK_OK)
        status = lk_model_memory_recomputing(model, device, plan->batch, plan->shards, use,
                                             plan->recompute, &planned->memory);
    if (status == LK_OK) {
        planned->is_there = true;
        snprintf(planned->device, sizeof planned->device, "%s", lk_device_info(device)->name);
        plan_unfrozen(model, device, plan, use, planned);
    }
    if (status == LK_E_MODEL) {
        plan_inference(model, device, plan, planned);
        status = LK_OK;
    }
    lk_device_close(device);
    if (status == LK_E_DEVICE_MEMORY || (status == LK_E_NO_DEVICE && !plan->is_told)) {
        say("no memory plan: %s", lk_error_text());
        lk_error_clear();
        return DONE;
    }
    return status == LK_OK ? DONE : failed(status);
}

static json_t *shape_json(const struct lk_shape *shape)
{
    static const int last[] = {1, 2, 0}; /* as shape_text() has it */
    json_t *items = json_array();
    for (int i = 0; i < shape->rank; i++)
        json_array_append_new(items, json_integer(shape->dim[shape->rank == 3 ? last[i] : i]));
    return items;
}

static json_t *layer_json(const struct lk_node *node, const struct plan *plan)
{
    const struct lk_node_info info = lk_node_info(node);
    return json_pack("{s:o, s:o, s:o, s:I, s:I, s:f, s:f, s:b, s:o, s:o}", "name",
                     json_text(info.name), "operation",
                     info.op ? json_text(info.op) : json_null(), "shape",
                     shape_json(&info.shape), "parameters", (json_int_t)info.parameters,
                     "trainable_parameters", (json_int_t)info.trained, "flops", info.flops,
                     "activation_bytes", activation_bytes(&info, plan), "frozen",
                     info.parameters && !info.is_trainable, "weights_of",
                     info.weights_of ? json_text(info.weights_of) : json_null(), "length",
                     info.length ? json_text(info.length) : json_null());
}

static json_t *memory_json(const struct planned *planned, const struct lk_memory *m,
                           bool is_known)
{
    if (!is_known)
        return json_null();
    return json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:i}", "device",
                     json_text(planned->device), "total", (json_int_t)m->total, "weights",
                     (json_int_t)m->weights, "gradients", (json_int_t)m->gradients,
                     "activations", (json_int_t)m->activations, "inputs", (json_int_t)m->inputs,
                     "optimizer", (json_int_t)m->optimizer, "again", m->again, "pieces",
                     m->pieces);
}

/* Layers are those of the text: planning adds a loss to the graph, so this comes before. */
static json_t *as_json(struct lk_model *model, const struct plan *plan)
{
    const struct lk_graph *graph = lk_model_graph(model);
    const struct totals t = add_layers(graph, plan);
    json_t *layers = json_array();
    const struct lk_node *node;
    for (int i = 0; (node = lk_graph_node(graph, i)) != NULL; i++)
        json_array_append_new(layers, layer_json(node, plan));
    return json_pack("{s:o, s:I, s:s, s:o, s:I, s:I, s:I, s:f, s:f}", "model",
                     json_text(lk_model_name(model)), "batch_size", (json_int_t)plan->batch,
                     "precision", plan->is_mixed ? "mixed" : "float", "layers", layers,
                     "parameters", (json_int_t)t.parameters, "trainable_parameters",
                     (json_int_t)t.trainable, "frozen_parameters", (json_int_t)t.frozen,
                     "flops", t.flops, "activation_bytes", t.bytes);
}

/* The model divided among the devices of a group, in place of its memory on one. */
static int show_places(const struct arguments *arguments, struct lk_model *model,
                       const struct plan *plan, int nodes, json_t *json)
{
    struct group group = {0};
    int result = group_open(arguments, plan->device, plan->place, plan->devices,
                            plan->memory_limit, &group);
    const struct lk_division_options options = {.place = plan->place,
                                                .devices = group.devices,
                                                .device_count = group.count,
                                                .batch = plan->batch,
                                                .use = plan->is_mixed ? LK_MEMORY_TRAINING_MIXED
                                                                      : LK_MEMORY_TRAINING,
                                                .recompute = plan->recompute};
    if (result == DONE && !json)
        result = places_print(model, &options, nodes);
    else if (result == DONE) {
        json_t *division = places_json(model, &options, nodes, &result);
        if (division)
            json_object_set_new(json, "division", division);
    }
    group_close(&group);
    if (!json || result != DONE) {
        json_decref(json);
        return result;
    }
    return json_print(json, JSON_INDENT(2));
}

static int count_nodes(const struct lk_graph *graph)
{
    int count = 0;
    while (lk_graph_node(graph, count))
        count++;
    return count;
}

static int summarize(const struct arguments *arguments, struct lk_model *model,
                     const struct plan *plan)
{
    const bool prints_json = option_given(arguments, "json");
    const int nodes = count_nodes(lk_model_graph(model)); /* planning adds a loss */
    struct planned planned = {0};
    json_t *json = prints_json ? as_json(model, plan) : NULL;
    if (!prints_json) {
        const struct totals totals = add_layers(lk_model_graph(model), plan);
        print_layers(lk_model_graph(model), plan);
        print_totals(&totals, plan);
        fflush(stdout); /* stands above what may be said on stderr next */
    }
    if (plan->divides)
        return show_places(arguments, model, plan, nodes, json);
    const int result = plan_memory(model, plan, &planned);
    if (json && result == DONE) {
        json_object_set_new(json, "memory",
                            memory_json(&planned, &planned.memory, planned.is_there));
        json_object_set_new(json, "memory_unfrozen",
                            memory_json(&planned, &planned.unfrozen,
                                        planned.is_there && planned.knows_unfrozen));
        json_object_set_new(json, "memory_inference",
                            memory_json(&planned, &planned.inference, planned.knows_inference));
        return json_print(json, JSON_INDENT(2));
    }
    json_decref(json);
    if (planned.is_there)
        print_memory(&planned.memory, planned.device);
    if (planned.knows_unfrozen)
        print_unfrozen(&planned.unfrozen);
    if (planned.knows_inference)
        print_inference(&planned.inference, planned.device);
    return result;
}

/* --- whose model ------------------------------------------------------------------------- */

/* Whether it is a run directory; its config.yaml goes to `path`. */
static bool find_config(const char *name, char path[1024])
{
    snprintf(path, 1024, "%.1000s/config.yaml", name);
    return lk_settings_is_run_file(path);
}

/* Of a run directory the settings that it was trained with, of a run file what it says. */
static enum lk_status read_settings(const char *name, struct lk_settings *settings)
{
    char path[1024];
    if (lk_settings_is_run_file(name))
        return lk_settings_read(settings, name);
    if (find_config(name, path))
        return lk_settings_read(settings, path);
    return lk_settings_set(settings, "model", name);
}

static bool is_checkpoint(const char *name)
{
    static const char ending[] = ".safetensors";
    const size_t length = strlen(name), end = sizeof ending - 1;
    return length > end && strcmp(name + length - end, ending) == 0;
}

/* A run has the model that it was trained with, whatever has become of the file; with --set it
 * is made anew. Data that is not there does not keep a zoo model from its own size. */
static enum lk_status open_model(const struct arguments *arguments,
                                 struct lk_settings *settings, struct lk_model **model)
{
    const char *name = arguments->words[0];
    char config[1024];
    const bool is_run = find_config(name, config);
    const bool is_changed = option_given(arguments, "set") ||
                            option_given(arguments, "freeze-until") ||
                            option_given(arguments, "train-last");
    if (is_checkpoint(name) || (is_run && !is_changed)) {
        const enum lk_status status = lk_run_open_model(name, model);
        if (status != LK_E_IO || is_checkpoint(name))
            return status;
        lk_error_clear(); /* no checkpoint yet */
    }
    if (lk_settings_fit(settings) != LK_OK) {
        say("the model is shown in its own size: %s", lk_error_text());
        lk_error_clear();
    }
    return lk_settings_open_model(settings, model);
}

/* What the settings say of saving memory. */
static enum lk_status read_memory(const struct lk_settings *settings, struct plan *plan)
{
    char limit[32], mode[32];
    enum lk_status status = lk_settings_get(settings, "memory_limit", limit, sizeof limit);
    if (status == LK_OK)
        status = lk_memory_limit_parse(limit, &plan->memory_limit);
    if (status == LK_OK)
        status = lk_settings_get(settings, "recompute", mode, sizeof mode);
    if (status == LK_OK)
        plan->recompute = strcmp(mode, "auto") == 0   ? LK_RECOMPUTE_AUTO
                          : strcmp(mode, "sqrt") == 0 ? LK_RECOMPUTE_SQRT
                                                      : LK_RECOMPUTE_OFF;
    return status;
}

/* What the settings say, and options say otherwise. */
static int make_plan(const struct arguments *arguments, const struct lk_settings *settings,
                     struct plan *plan)
{
    const char *precision = option_text(arguments, "precision");
    const char *device = option_text(arguments, "device");
    char batch[32], shards[32], text[32];
    enum lk_status status = lk_settings_get(settings, "batch_size", batch, sizeof batch);
    if (status == LK_OK)
        status = lk_settings_get(settings, "shards", shards, sizeof shards);
    if (status == LK_OK)
        status = lk_settings_get(settings, "precision", text, sizeof text);
    if (status == LK_OK)
        status = lk_settings_get(settings, "device", plan->device, sizeof plan->device);
    if (status == LK_OK)
        status = read_memory(settings, plan);
    if (status != LK_OK)
        return failed(status);
    if (precision && strcmp(precision, "mixed") != 0 && strcmp(precision, "float") != 0)
        return wrong_usage(arguments->command,
                           "option '--precision': '%s' is none of float, mixed", precision);
    if (device)
        snprintf(plan->device, sizeof plan->device, "%s", device);
    plan->is_told = *plan->device != '\0';
    plan->is_mixed = strcmp(precision ? precision : text, "mixed") == 0;
    plan->batch = strtoll(batch, NULL, 10);
    plan->shards = (int)strtol(shards, NULL, 10);
    plan->place = option_given(arguments, "place") ? option_text(arguments, "place") : "";
    plan->divides = (option_given(arguments, "place") || option_given(arguments, "devices")) &&
                    strcmp(plan->place, "off") != 0;
    int result = option_number(arguments, "devices", 1, 16, &plan->devices);
    if (result == DONE)
        result = option_number(arguments, "batch-size", 1, 1 << 24, &plan->batch);
    if (result == DONE && (plan->shards > plan->batch || (plan->shards & (plan->shards - 1))))
        return wrong_usage(
            arguments->command,
            "%d shards for a batch size of %lld: a power of two, at most the batch",
            plan->shards, (long long)plan->batch);
    return result;
}

static int set_option(const struct arguments *arguments, struct lk_settings *settings,
                      const char *option, const char *setting)
{
    const char *value = option_text(arguments, option);
    const enum lk_status status = value ? lk_settings_set(settings, setting, value) : LK_OK;
    return status == LK_OK ? DONE : failed(status);
}

static int show(const struct arguments *arguments, struct lk_settings *settings)
{
    struct plan plan = {0};
    struct lk_model *model = NULL;
    enum lk_status status = read_settings(arguments->words[0], settings);
    if (status != LK_OK)
        return failed(status);
    int result = train_set_pairs(arguments, settings);
    if (result == DONE)
        result = set_option(arguments, settings, "freeze-until", "freeze_until");
    if (result == DONE)
        result = set_option(arguments, settings, "train-last", "train_last");
    if (result == DONE)
        result = set_option(arguments, settings, "memory-limit", "memory_limit");
    if (result == DONE)
        result = set_option(arguments, settings, "recompute", "recompute");
    if (result == DONE)
        result = make_plan(arguments, settings, &plan);
    if (result != DONE)
        return result;
    status = open_model(arguments, settings, &model);
    if (status != LK_OK)
        return failed(status);
    result = summarize(arguments, model, &plan);
    lk_model_destroy(model);
    return result;
}

static int run(const struct arguments *arguments)
{
    struct lk_settings *settings = NULL;
    if (arguments->word_count != 1)
        return wrong_usage(arguments->command,
                           "needs one MODEL, RUN.yaml or RUN directory, found %d words",
                           arguments->word_count);
    const enum lk_status made = lk_settings_create(&settings);
    if (made != LK_OK)
        return failed(made);
    const int result = show(arguments, settings);
    lk_settings_destroy(settings);
    return result;
}

static void more(void)
{
    printf("MODEL is a model file or a name of the zoo:");
    for (int i = 0; lk_model_zoo(i); i++)
        printf(" %s", lk_model_zoo(i));
    printf("\nRUN is a run file, a run directory or a checkpoint\n");
}

static const struct option options[] = {
    {"batch-size", "N", "samples in a batch (the run's, or 512)"},
    {"device", "LIST",
     "device whose memory is planned; default: the first GPU, else the first"},
    {"precision", "float|mixed",
     "mixed keeps activations and their gradients as halves (float)"},
    {"freeze-until", "NAME", "train only what comes behind this entry of the model"},
    {"train-last", "N", "train only the last N entries with parameters"},
    {"place", "PLACES",
     "divide the model among the devices of a group: auto, or its devices or entries, a=0,b=1"},
    {"devices", "N", "devices of that group, each like the one of --device (those it lists)"},
    {"memory-limit", "BYTES", "plan as if the device had no more memory than that: 4G, 512M"},
    {"recompute", "auto|sqrt|off", "activations that backward computes again to save memory"},
    {"set", "KEY=VALUE", "a setting of 'lockstep train': input=[96,96,3] classes=6 data=SPEC"},
    {"json", NULL, "print JSON"},
    {0},
};

static const struct example examples[] = {
    {"lockstep summary resnet50 --batch-size 16", "a model of the zoo"},
    {"lockstep summary net.yaml --precision mixed", "a model file, with halves"},
    {"lockstep summary vgg16 --place auto --devices 2", "what each of two devices would hold"},
    {"lockstep summary mobilenet-v2 --train-last 1", "what training its head alone takes"},
    {0},
};

const struct command summary_command = {
    .name = "summary",
    .usage = "MODEL|RUN [options]",
    .help = "show a model's layers, shapes, parameters, work and memory",
    .options = options,
    .examples = examples,
    .more = more,
    .run = run,
};
