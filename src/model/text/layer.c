/* Turns an entry with an operation into nodes of the graph: its values, names and inputs. */
#include "base/fail.h"
#include "graph/nodes/node.h"
#include "model/text/entry.h"
#include <stdio.h>
#include <string.h>

enum { VALUE_BYTES = 512, OPTIONS_BYTES = 4096 };

/* --- values ---------------------------------------------------------------------------- */

static enum lk_status scalar_text(const struct lk_reading *reading, const struct lk_yaml *value,
                                  char *text, size_t bytes)
{
    const struct lk_words words = {.classes = reading->classes,
                                   .vocabulary = reading->vocabulary,
                                   .parameters = reading->parameters};
    char found[80];
    if (value->kind != LK_YAML_SCALAR || value->is_null)
        return lk_yaml_fail(value, "a number or a word expected, found %s",
                            lk_yaml_found(value, found, sizeof found));
    if (strpbrk(value->text, "\"\n"))
        return lk_yaml_fail(value, "a value has at most %zu characters and no quotes",
                            bytes - 1);
    return lk_words_text(&words, value, text, bytes);
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

const struct lk_named *lk_layer_find_named(const struct lk_reading *reading, const char *name,
                                           bool is_block)
{
    const struct lk_named *named = reading->named;
    while (named && ((named->block != NULL) != is_block || strcmp(named->name, name) != 0))
        named = named->before;
    return named;
}

/* All names that can be read from: of nodes, then of entries that are not nodes. */
static const char *known_name(const void *reading, int i)
{
    const struct lk_reading *r = reading;
    const struct lk_node *node = lk_graph_node(r->model->graph, i);
    const struct lk_named *named = r->named;
    if (node)
        return lk_node_info(node).name;
    for (i -= r->model->graph->count; named && i > 0; i--)
        named = named->before;
    return named ? named->name : NULL;
}

static enum lk_status check_is_name(const struct lk_yaml *name)
{
    char found[80];
    if (name->kind == LK_YAML_SCALAR && !name->is_null)
        return LK_OK;
    return lk_yaml_fail(name, "the name of a layer or input expected, found %s",
                        lk_yaml_found(name, found, sizeof found));
}

enum lk_status lk_layer_refuse_name(const struct lk_reading *reading,
                                    const struct lk_yaml *name)
{
    if (lk_layer_find_named(reading, name->text, false))
        return lk_yaml_fail(name, "'%.60s' is not there: its 'when' is false", name->text);
    const char *near = lk_nearest_name(name->text, known_name, reading);
    return lk_yaml_fail(name, "no layer or input before this one is named '%.60s'%s%s%s",
                        name->text, near ? "; did you mean '" : "", near ? near : "",
                        near ? "'?" : "");
}

/* An entry that uses a block comes first: its name stands for what the block gives, even if a
 * layer in the block has that name. */
enum lk_status lk_layer_find(const struct lk_reading *reading, const struct lk_yaml *name,
                             struct lk_node **node)
{
    LK_TRY(check_is_name(name));
    const struct lk_named *block = lk_layer_find_named(reading, name->text, true);
    const struct lk_named *absent = lk_layer_find_named(reading, name->text, false);
    struct lk_node *there = lk_graph_find(reading->model->graph, name->text);
    if (!block && !there && !absent)
        return lk_layer_refuse_name(reading, name);
    if (block || !there) {
        *node = block ? block->node : absent->node;
        return LK_OK;
    }
    for (int i = 0; i < reading->count; i++)
        if (reading->layers[i].first == there)
            there = reading->layers[i].last;
    *node = there;
    return LK_OK;
}

enum lk_status lk_layer_sources(const struct lk_reading *reading, const struct lk_yaml *from,
                                const struct lk_yaml *place, struct lk_sources *sources)
{
    const struct lk_model *model = reading->model;
    const int of_first = model->inputs[0]->length ? 2 : 1; /* with its length */
    sources->count = 1;
    if (from && from->kind == LK_YAML_LIST) {
        sources->count = from->count;
        if (from->count < 1 || from->count > LK_MOST_INPUTS)
            return lk_yaml_fail(from, "'from' names 1 to %d layers, not %d", LK_MOST_INPUTS,
                                from->count);
        const struct lk_yaml *name = from->first;
        for (int i = 0; name; name = name->next, i++)
            LK_TRY(lk_layer_find(reading, name, &sources->x[i]));
        return LK_OK;
    }
    if (from)
        return lk_layer_find(reading, from, &sources->x[0]);
    if (!reading->before && model->input_count > of_first)
        return lk_yaml_fail(place, "the first layer of a model with %d inputs needs 'from'",
                            model->input_count);
    sources->x[0] = reading->before ? reading->before : model->inputs[0];
    return LK_OK;
}

/* --- an entry -------------------------------------------------------------------------- */

/* The operation that an option `activation` adds behind the entry's own; NULL: none. */
struct behind {
    const struct lk_op *op;
    const struct lk_yaml *option;
};

/* Whether the operation itself takes this activation, one that it knows. Where it cannot do
 * without, as recurrent layers, the function is inside, and no other one may stand behind.
 * Options under other names are the operation's own affair. */
static bool takes(const struct lk_op *op, const struct lk_yaml *option)
{
    const struct lk_option *row = lk_option_find(op->options, option->key);
    if (strcmp(option->key, "activation") != 0 || option->kind != LK_YAML_SCALAR)
        return true;
    if (!row || row->kind != LK_OPTION_CHOICE)
        return row != NULL;
    bool is_known = false, is_inside = true;
    for (int i = 0; row->choices[i]; i++) {
        is_known |= strcmp(row->choices[i], option->text) == 0;
        is_inside &= strcmp(row->choices[i], "none") != 0;
    }
    return is_known || is_inside;
}

static bool is_key_of_entry(const char *word)
{
    for (int i = 0; i < LK_ENTRY_KEYS; i++)
        if (strcmp(word, lk_entry_words[i]) == 0)
            return true;
    return false;
}

/* Reads the options into `text` as lk_graph_add() takes it. Each is tried on `trial` first, so
 * that a wrong one is named with its own line. */
static enum lk_status read_options(const struct lk_reading *reading,
                                   const struct lk_entry *entry, void *trial,
                                   struct behind *behind, char text[OPTIONS_BYTES])
{
    size_t used = 0;
    const struct lk_yaml *option = entry->options ? entry->options->first : NULL;
    for (; option; option = option->next) {
        char value[VALUE_BYTES];
        if (!takes(entry->op, option)) {
            behind->option = option;
            LK_TRY(lk_yaml_at(option, lk_op_find(option->text, &behind->op)));
            continue;
        }
        LK_TRY(lk_layer_value(reading, option, value, sizeof value));
        const enum lk_status status =
            lk_option_set(entry->op->options, trial, option->key, value);
        if (status != LK_OK && is_key_of_entry(option->key)) {
            lk_error_clear();
            return lk_yaml_fail(option,
                                "'%s' is no option of %s but a key of its entry: write it "
                                "beside '%s:', not within it",
                                option->key, entry->op->name, entry->op->name);
        }
        if (status != LK_OK)
            return lk_yaml_at(option, lk_fail_within(status, "%s", entry->op->name));
        const char *quote = value[0] == '[' ? "" : "\"";
        used += (size_t)snprintf(text + used, OPTIONS_BYTES - used, "%s=%s%s%s ", option->key,
                                 quote, value, quote);
        if (used >= OPTIONS_BYTES)
            return lk_yaml_fail(option, "%s: too many options", entry->op->name);
    }
    return LK_OK;
}

enum lk_status lk_layer_flag(const struct lk_reading *reading, const char *word,
                             const struct lk_yaml *value, bool *flag)
{
    const struct lk_option table[] = {
        {.name = word, .kind = LK_OPTION_BOOL, .standard = "true"}, {0}};
    char text[VALUE_BYTES];
    lk_options_default(table, flag);
    if (!value)
        return LK_OK;
    LK_TRY(lk_layer_value(reading, value, text, sizeof text));
    return lk_yaml_at(value, lk_option_set(table, flag, word, text));
}

enum lk_status lk_layer_lr_scale(const struct lk_reading *reading, const struct lk_yaml *value,
                                 double *scale)
{
    static const struct lk_option table[] = {
        {.name = "lr_scale", .kind = LK_OPTION_REAL, .max = 1e6, .standard = "1"}, {0}};
    char text[VALUE_BYTES];
    double factor = 1;
    if (!value)
        return LK_OK;
    LK_TRY(lk_layer_value(reading, value, text, sizeof text));
    LK_TRY(lk_yaml_at(value, lk_option_set(table, &factor, "lr_scale", text)));
    *scale *= factor;
    return LK_OK;
}

/* Reads the penalties of the entry's weights. */
static enum lk_status read_penalties(const struct lk_reading *reading,
                                     const struct lk_entry *entry, struct lk_node *node)
{
    static const struct lk_option table[] = {
        {.name = "l1", .kind = LK_OPTION_REAL, .max = 1e6, .standard = "0"},
        {.name = "l2",
         .kind = LK_OPTION_REAL,
         .offset = sizeof(double),
         .max = 1e6,
         .standard = "0"},
        {0}};
    char text[VALUE_BYTES];
    bool has_weights = false;
    double penalties[2] = {0};
    const struct lk_yaml *place = NULL;
    for (int i = 0; i < 2; i++) {
        const struct lk_yaml *value = entry->at[LK_ENTRY_L1 + i];
        if (!value)
            continue;
        place = value;
        LK_TRY(lk_layer_value(reading, value, text, sizeof text));
        LK_TRY(lk_yaml_at(value, lk_option_set(table, penalties, table[i].name, text)));
    }
    for (int i = 0; i < node->shapes.params; i++)
        has_weights |= lk_param_is_weight(&node->shapes.param[i]);
    if (place && !has_weights)
        return lk_yaml_fail(place, "%s has no weights for l1 and l2, which spare vectors",
                            entry->op->name);
    return place ? lk_yaml_at(place, lk_node_set_penalties(node, penalties[0], penalties[1]))
                 : LK_OK;
}

static enum lk_status name_layer(const struct lk_reading *reading, struct lk_node *node,
                                 const struct lk_entry *entry)
{
    const struct lk_yaml *name = entry->at[LK_ENTRY_NAME];
    char found[80];
    if (name) {
        if (name->kind != LK_YAML_SCALAR || name->is_null)
            return lk_yaml_fail(name, "a name expected, found %s",
                                lk_yaml_found(name, found, sizeof found));
        LK_TRY(lk_yaml_at(name, lk_node_set_name(node, name->text)));
    }
    if (lk_layer_find_named(reading, node->name, true))
        return lk_yaml_fail(name ? name : entry->yaml, "two layers are named '%s'", node->name);
    return LK_OK;
}

static enum lk_status add_behind(struct lk_reading *reading, const struct behind *behind,
                                 struct lk_layer_entry *layer)
{
    layer->last = layer->first;
    if (!behind->op)
        return LK_OK;
    LK_TRY(lk_yaml_at(behind->option, lk_graph_add(reading->model->graph, behind->op->name,
                                                   layer->first, "", &layer->last)));
    lk_node_set_trainable(layer->last, layer->first->is_trainable);
    return LK_OK;
}

static enum lk_status name_device(const struct lk_reading *reading,
                                  const struct lk_entry *entry,
                                  const struct lk_layer_entry *layer)
{
    const struct lk_yaml *own = entry->at[LK_ENTRY_DEVICE],
                         *value = own ? own : reading->device;
    char text[VALUE_BYTES];
    if (!value)
        return LK_OK;
    LK_TRY(lk_layer_value(reading, value, text, sizeof text));
    LK_TRY(lk_yaml_at(value, lk_node_set_device(layer->first, text)));
    return lk_yaml_at(value, lk_node_set_device(layer->last, text));
}

enum lk_status lk_layer_read(struct lk_reading *reading, const struct lk_entry *entry,
                             const struct lk_sources *sources)
{
    struct lk_model *model = reading->model;
    struct lk_layer_entry layer = {.entry = entry->yaml};
    struct behind behind = {0};
    struct lk_node *owner = NULL;
    char options[OPTIONS_BYTES] = "";
    void *trial = NULL;
    bool is_trainable = true;
    double lr_scale = reading->lr_scale;
    if (reading->count == LK_MOST_LAYERS)
        return lk_yaml_fail(entry->yaml, "more than %d layers", LK_MOST_LAYERS);
    LK_TRY(lk_growth_take(&reading->growth, entry->yaml, entry->op->options_bytes + 1, &trial));
    LK_TRY(read_options(reading, entry, trial, &behind, options));
    LK_TRY(lk_layer_flag(reading, "trainable", entry->at[LK_ENTRY_TRAINABLE], &is_trainable));
    LK_TRY(lk_layer_lr_scale(reading, entry->at[LK_ENTRY_LR_SCALE], &lr_scale));
    LK_TRY(lk_weights_find(reading, entry, &owner));
    LK_TRY(
        lk_yaml_at(entry->yaml, lk_graph_add_many(model->graph, entry->op->name, sources->count,
                                                  sources->x, options, &layer.first)));
    LK_TRY(name_layer(reading, layer.first, entry));
    lk_node_set_trainable(layer.first, is_trainable && !reading->is_frozen);
    LK_TRY(lk_yaml_at(entry->at[LK_ENTRY_LR_SCALE] ? entry->at[LK_ENTRY_LR_SCALE] : entry->yaml,
                      lk_node_set_lr_scale(layer.first, lr_scale)));
    LK_TRY(read_penalties(reading, entry, layer.first));
    LK_TRY(lk_weights_share(entry, layer.first, owner));
    LK_TRY(add_behind(reading, &behind, &layer));
    LK_TRY(name_device(reading, entry, &layer));
    reading->layers[reading->count++] = layer;
    reading->before = layer.last;
    return LK_OK;
}
