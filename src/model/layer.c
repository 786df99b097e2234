/* One entry of `layers:` into nodes of the graph. */
#include "base/fail.h"
#include "model/model.h"
#include <stdio.h>
#include <string.h>

enum { VALUE_BYTES = 512, OPTIONS_BYTES = 4096 };

/* --- values ---------------------------------------------------------------------------- */

static enum lk_status scalar_text(const struct lk_reading *reading, const struct lk_yaml *value,
                                  char *text, size_t bytes)
{
    char found[80];
    if (value->kind != LK_YAML_SCALAR || value->is_null)
        return lk_yaml_fail(value, "a number or a word expected, found %s",
                            lk_yaml_found(value, found, sizeof found));
    if (value->text[0] == '$') {
        if (strcmp(value->text, "$classes") != 0)
            return lk_yaml_fail(value, "unknown word '%.60s'; there is only $classes",
                                value->text);
        if (reading->classes == 0)
            return lk_yaml_fail(value, "$classes stands here, but 'classes:' is missing");
        snprintf(text, bytes, "%lld", (long long)reading->classes);
        return LK_OK;
    }
    if (strlen(value->text) >= bytes || strpbrk(value->text, "\"\n"))
        return lk_yaml_fail(value, "a value has at most %zu characters and no quotes",
                            bytes - 1);
    snprintf(text, bytes, "%s", value->text);
    return LK_OK;
}

enum lk_status lk_layer_value(const struct lk_reading *reading, const struct lk_yaml *value,
                              char *text, size_t bytes)
{
    char list[VALUE_BYTES];
    size_t used = 1;
    if (value->kind != LK_YAML_LIST)
        return scalar_text(reading, value, text, bytes);
    list[0] = '[';
    for (const struct lk_yaml *item = value->first; item; item = item->next) {
        char one[64];
        LK_TRY(scalar_text(reading, item, one, sizeof one));
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s",
                                 item == value->first ? "" : ", ", one);
        if (used + 2 > sizeof list || used + 2 > bytes)
            return lk_yaml_fail(value, "a list of %d values is too long", value->count);
    }
    snprintf(text, bytes, "%.*s]", (int)used, list);
    return LK_OK;
}

/* --- names ----------------------------------------------------------------------------- */

static const char *node_name(const void *graph, int i)
{
    const struct lk_node *node = lk_graph_node(graph, i);
    return node ? lk_node_info(node).name : NULL;
}

enum lk_status lk_layer_find(const struct lk_reading *reading, const struct lk_yaml *name,
                             struct lk_node **node)
{
    const struct lk_graph *graph = reading->model->graph;
    char found[80];
    if (name->kind != LK_YAML_SCALAR || name->is_null)
        return lk_yaml_fail(name, "the name of a layer or input expected, found %s",
                            lk_yaml_found(name, found, sizeof found));
    struct lk_node *there = lk_graph_find(graph, name->text);
    if (!there) {
        const char *near = lk_nearest_name(name->text, node_name, graph);
        return lk_yaml_fail(name, "no layer or input before this one is named '%.60s'%s%s%s",
                            name->text, near ? "; did you mean '" : "", near ? near : "",
                            near ? "'?" : "");
    }
    for (int i = 0; i < reading->count; i++)
        if (reading->layers[i].first == there)
            there = reading->layers[i].last;
    *node = there;
    return LK_OK;
}

/* --- an entry -------------------------------------------------------------------------- */

/* An entry taken apart. */
struct parts {
    const struct lk_op *op;
    const struct lk_yaml *name, *from, *trainable;
    const struct lk_yaml *options;    /* a map; NULL: none */
    const struct lk_yaml *activation; /* of an operation behind; NULL: none */
    const struct lk_op *behind;
};

static const char *entry_word(const void *unused, int i)
{
    static const char *const words[] = {"name", "from", "trainable"};
    const int count = LK_COUNT(words);
    (void)unused;
    if (i < count)
        return words[i];
    return lk_ops[i - count] ? lk_ops[i - count]->name : NULL;
}

static const struct lk_op *find_op(const char *name)
{
    for (int i = 0; lk_ops[i]; i++)
        if (strcmp(lk_ops[i]->name, name) == 0)
            return lk_ops[i];
    return NULL;
}

static enum lk_status take_key(struct parts *parts, const struct lk_yaml *key)
{
    if (strcmp(key->key, "name") == 0)
        parts->name = key;
    else if (strcmp(key->key, "from") == 0)
        parts->from = key;
    else if (strcmp(key->key, "trainable") == 0)
        parts->trainable = key;
    else {
        const struct lk_op *op = find_op(key->key);
        char found[80];
        if (!op) {
            const char *near = lk_nearest_name(key->key, entry_word, NULL);
            return lk_yaml_fail(key, "'%.60s' is no operation and no key of a layer%s%s%s",
                                key->key, near ? "; did you mean '" : "", near ? near : "",
                                near ? "'?" : "");
        }
        if (parts->op)
            return lk_yaml_fail(key, "two operations in one layer: %s and %s", parts->op->name,
                                op->name);
        if (key->kind != LK_YAML_MAP && !key->is_null)
            return lk_yaml_fail(key, "%s takes {option: value, ...}, found %s", op->name,
                                lk_yaml_found(key, found, sizeof found));
        parts->op = op;
        parts->options = key->is_null ? NULL : key;
    }
    return LK_OK;
}

static enum lk_status take_apart(const struct lk_yaml *entry, struct parts *parts)
{
    char found[80];
    if (entry->kind == LK_YAML_SCALAR && !entry->is_null)
        return lk_yaml_at(entry, lk_op_find(entry->text, &parts->op));
    if (entry->kind != LK_YAML_MAP)
        return lk_yaml_fail(entry, "an operation or {operation: {options}} expected, found %s",
                            lk_yaml_found(entry, found, sizeof found));
    for (const struct lk_yaml *key = entry->first; key; key = key->next)
        LK_TRY(take_key(parts, key));
    return parts->op ? LK_OK : lk_yaml_fail(entry, "a layer without an operation");
}

/* Whether the operation itself takes this activation; options of other names are its affair. */
static bool takes(const struct lk_op *op, const struct lk_yaml *option)
{
    const struct lk_option *row = lk_option_find(op->options, option->key);
    if (strcmp(option->key, "activation") != 0 || option->kind != LK_YAML_SCALAR)
        return true;
    if (!row || row->kind != LK_OPTION_CHOICE)
        return row != NULL;
    for (int i = 0; row->choices[i]; i++)
        if (strcmp(row->choices[i], option->text) == 0)
            return true;
    return false;
}

/* Reads the options into `text` as lk_graph_add() takes it. Each is tried on `trial` first, so
 * that a wrong one is named with its own line. */
static enum lk_status read_options(const struct lk_reading *reading, struct parts *parts,
                                   void *trial, char text[OPTIONS_BYTES])
{
    size_t used = 0;
    const struct lk_yaml *option = parts->options ? parts->options->first : NULL;
    for (; option; option = option->next) {
        char value[VALUE_BYTES];
        if (!takes(parts->op, option)) {
            parts->activation = option;
            LK_TRY(lk_yaml_at(option, lk_op_find(option->text, &parts->behind)));
            continue;
        }
        LK_TRY(lk_layer_value(reading, option, value, sizeof value));
        const enum lk_status status =
            lk_option_set(parts->op->options, trial, option->key, value);
        if (status != LK_OK)
            return lk_yaml_at(option, lk_fail_within(status, "%s", parts->op->name));
        const char *quote = value[0] == '[' ? "" : "\"";
        used += (size_t)snprintf(text + used, OPTIONS_BYTES - used, "%s=%s%s%s ", option->key,
                                 quote, value, quote);
        if (used >= OPTIONS_BYTES)
            return lk_yaml_fail(option, "%s: too many options", parts->op->name);
    }
    return LK_OK;
}

/* The nodes an entry reads: those of `from`, or the layer before, or the only input. */
static enum lk_status find_inputs(const struct lk_reading *reading, const struct parts *parts,
                                  const struct lk_yaml *entry, struct lk_node **x, int *count)
{
    const struct lk_model *model = reading->model;
    *count = 1;
    if (parts->from && parts->from->kind == LK_YAML_LIST) {
        *count = parts->from->count;
        if (*count < 1 || *count > LK_MOST_INPUTS)
            return lk_yaml_fail(parts->from, "'from' names 1 to %d layers, not %d",
                                LK_MOST_INPUTS, *count);
        const struct lk_yaml *name = parts->from->first;
        for (int i = 0; name; name = name->next, i++)
            LK_TRY(lk_layer_find(reading, name, &x[i]));
        return LK_OK;
    }
    if (parts->from)
        return lk_layer_find(reading, parts->from, x);
    if (reading->count == 0 && model->input_count > 1)
        return lk_yaml_fail(entry, "the first layer of a model with %d inputs needs 'from'",
                            model->input_count);
    *x = reading->count ? reading->layers[reading->count - 1].last : model->inputs[0];
    return LK_OK;
}

static enum lk_status read_trainable(const struct lk_reading *reading,
                                     const struct lk_yaml *value, bool *is_trainable)
{
    static const struct lk_option table[] = {
        {.name = "trainable", .kind = LK_OPTION_BOOL, .standard = "true"}, {0}};
    char text[VALUE_BYTES];
    lk_options_default(table, is_trainable);
    if (!value)
        return LK_OK;
    LK_TRY(lk_layer_value(reading, value, text, sizeof text));
    return lk_yaml_at(value, lk_option_set(table, is_trainable, "trainable", text));
}

static enum lk_status name_layer(struct lk_node *node, const struct lk_yaml *name)
{
    char found[80];
    if (!name)
        return LK_OK;
    if (name->kind != LK_YAML_SCALAR || name->is_null)
        return lk_yaml_fail(name, "a name expected, found %s",
                            lk_yaml_found(name, found, sizeof found));
    return lk_yaml_at(name, lk_node_set_name(node, name->text));
}

enum lk_status lk_layer_read(struct lk_reading *reading, const struct lk_yaml *entry)
{
    struct lk_model *model = reading->model;
    struct lk_layer layer = {.entry = entry};
    struct parts parts = {0};
    struct lk_node *x[LK_MOST_INPUTS];
    char options[OPTIONS_BYTES] = "";
    void *trial = NULL;
    int count = 0;
    bool is_trainable = true;
    if (reading->count == LK_MOST_LAYERS)
        return lk_yaml_fail(entry, "more than %d layers", LK_MOST_LAYERS);
    LK_TRY(take_apart(entry, &parts));
    LK_TRY(lk_arena_take(&model->arena, parts.op->options_bytes + 1, &trial));
    LK_TRY(read_options(reading, &parts, trial, options));
    LK_TRY(find_inputs(reading, &parts, entry, x, &count));
    LK_TRY(read_trainable(reading, parts.trainable, &is_trainable));
    LK_TRY(lk_yaml_at(entry, lk_graph_add_many(model->graph, parts.op->name, count, x, options,
                                               &layer.first)));
    LK_TRY(name_layer(layer.first, parts.name));
    lk_node_set_trainable(layer.first, is_trainable);
    layer.last = layer.first;
    if (parts.behind) {
        LK_TRY(lk_yaml_at(parts.activation, lk_graph_add(model->graph, parts.behind->name,
                                                         layer.first, "", &layer.last)));
        lk_node_set_trainable(layer.last, is_trainable);
    }
    reading->layers[reading->count++] = layer;
    return LK_OK;
}
