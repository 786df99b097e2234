/* `freeze_until: NAME` and `train_last: N` at the top of a model text, and putting them there.
 */
#include "base/fail.h"
#include "base/option.h"
#include "model/text/entry.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- reading ----------------------------------------------------------------------------- */

/* Freezes what has parameters of its own among the first `count` nodes of the graph. */
static void freeze(const struct lk_model *model, int count)
{
    for (int i = 0; i < count; i++)
        if (model->graph->nodes[i]->shapes.params > 0)
            lk_node_set_trainable(model->graph->nodes[i], false);
}

/* A node that has the weights of another one is as frozen as these; something must be left. */
static enum lk_status follow_owners(const struct lk_model *model, const struct lk_yaml *key)
{
    int64_t trained = 0;
    for (int i = 0; i < model->graph->count; i++) {
        struct lk_node *node = model->graph->nodes[i];
        lk_node_set_trainable(node, lk_node_owner(node)->is_trainable);
        trained += lk_node_info(node).trained;
    }
    return trained > 0 ? LK_OK
                       : lk_yaml_fail(key,
                                      "%s: nothing is left to train: all parameters are "
                                      "frozen",
                                      key->key);
}

static enum lk_status read_until(struct lk_reading *reading, const struct lk_yaml *name)
{
    struct lk_node *node = NULL;
    const enum lk_status status = lk_layer_find(reading, name, &node);
    if (status != LK_OK)
        return lk_fail_within(status, "freeze_until");
    if (!node->op)
        return lk_yaml_fail(name,
                            "freeze_until: '%.60s' is an input, the name of an entry of "
                            "layers is expected",
                            name->text);
    freeze(reading->model, node->index + 1);
    return LK_OK;
}

static bool has_own_weights(const struct lk_layer_entry *layer)
{
    return layer->first->shapes.params > 0 && !layer->first->weights_of;
}

static enum lk_status read_last(struct lk_reading *reading, const struct lk_yaml *value)
{
    static const struct lk_option table[] = {
        {.name = "train_last", .kind = LK_OPTION_INT, .count = 1, .min = 1, .max = 1 << 24},
        {0}};
    int64_t last = 0, count = 0;
    char text[64];
    LK_TRY(lk_layer_value(reading, value, text, sizeof text));
    LK_TRY(lk_yaml_at(value, lk_option_set(table, &last, "train_last", text)));
    for (int i = 0; i < reading->count; i++)
        count += has_own_weights(&reading->layers[i]);
    if (last > count)
        return lk_yaml_fail(value,
                            "train_last: %lld entries with parameters are asked for, the model "
                            "has %lld",
                            (long long)last, (long long)count);
    for (int i = 0; i < reading->count; i++)
        if (has_own_weights(&reading->layers[i]) && count-- > last)
            lk_node_set_trainable(reading->layers[i].first, false);
    return LK_OK;
}

enum lk_status lk_freeze_read(struct lk_reading *reading, const struct lk_yaml *root)
{
    const struct lk_yaml *until = lk_yaml_find(root, "freeze_until");
    const struct lk_yaml *last = lk_yaml_find(root, "train_last");
    if (!until && !last)
        return LK_OK;
    if (until && last)
        return lk_yaml_fail(last, "freeze_until and train_last exclude one another");
    LK_TRY(until ? read_until(reading, until) : read_last(reading, last));
    return follow_owners(reading->model, until ? until : last);
}

/* --- putting it there -------------------------------------------------------------------- */

/* "freeze_until: "NAME"" or "train_last: N". fails: LK_E_MODEL for a name that none can have */
static enum lk_status print_key(const char *until, int64_t last, char *text, size_t bytes)
{
    if (last > 0) {
        snprintf(text, bytes, "train_last: %lld", (long long)last);
        return LK_OK;
    }
    for (const char *p = until; *p; p++)
        if ((unsigned char)*p < ' ' || strchr("\"\\\x7f", *p))
            return lk_fail(LK_E_MODEL, "freeze_until: '%s' is no name of an entry", until);
    return (size_t)snprintf(text, bytes, "freeze_until: \"%s\"", until) < bytes
               ? LK_OK
               : lk_fail(LK_E_MODEL, "freeze_until: a name of %zu characters", strlen(until));
}

/* The text with the key in front of the root's first one, or in place of what it says so far.
 */
static enum lk_status put_key(const char *text, const struct lk_yaml *root, const char *key,
                              char **made)
{
    size_t start, bytes = 0, indent = 0;
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(key, ":"), key);
    const struct lk_yaml *there = lk_yaml_find(root, name);
    lk_yaml_span(text, there ? there : root, &start, &bytes);
    const bool is_flow = !there && text[start] == '{';
    while (indent < start && text[start - indent - 1] == ' ')
        indent++;
    start += is_flow;
    const size_t end = there ? start + bytes : start;
    const size_t room = strlen(text) + strlen(key) + indent + 4;
    *made = malloc(room);
    if (!*made)
        return lk_fail_memory("a model text", room);
    if (there)
        snprintf(*made, room, "%.*s%s%s", (int)start, text, key + strlen(name) + 2, text + end);
    else if (is_flow)
        snprintf(*made, room, "%.*s%s, %s", (int)start, text, key, text + end);
    else
        snprintf(*made, room, "%.*s%s\n%*s%s", (int)start, text, key, (int)indent, "",
                 text + end);
    return LK_OK;
}

static enum lk_status edit(const struct lk_model *model, const char *until, int64_t last,
                           char **made)
{
    char key[512];
    struct lk_yaml_document *document = NULL;
    LK_TRY(print_key(until, last, key, sizeof key));
    LK_TRY(lk_yaml_read(model->text, strlen(model->text), model->name, &document));
    const enum lk_status status = put_key(model->text, lk_yaml_root(document), key, made);
    lk_yaml_destroy(document);
    return status;
}

enum lk_status lk_model_freeze(struct lk_model **model, const char *until, int64_t last)
{
    struct lk_model *frozen = NULL;
    char *text = NULL;
    const bool has_name = until && *until;
    if (has_name && last > 0)
        return lk_fail(LK_E_ARGUMENT, "freeze_until and train_last exclude one another");
    if (!has_name && last <= 0)
        return LK_OK;
    LK_TRY(edit(*model, until, last, &text));
    enum lk_status status = lk_model_read(text, strlen(text), (*model)->name, &frozen);
    free(text);
    if (status == LK_OK) /* a text that does not say its name is named by its file */
        status = lk_arena_text(&frozen->arena, (*model)->name, &frozen->name);
    if (status != LK_OK) {
        lk_model_destroy(frozen);
        return status;
    }
    lk_model_destroy(*model);
    *model = frozen;
    return LK_OK;
}
