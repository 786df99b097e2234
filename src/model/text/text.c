/* Reads a model text into a graph: what stands at the top of the text. */
#include "base/fail.h"
#include "base/log.h"
#include "graph/nodes/node.h"
#include "model/text/reading.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* `classes:` or `vocabulary:`, a number. */
static enum lk_status read_number(struct lk_reading *reading, const struct lk_yaml *root,
                                  const char *key, int64_t *number)
{
    const struct lk_option row = {
        .name = key, .kind = LK_OPTION_INT, .count = 1, .min = 1, .max = 1 << 24};
    const struct lk_option table[] = {row, {0}};
    const struct lk_yaml *value = lk_yaml_find(root, key);
    char text[64];
    if (!value)
        return LK_OK;
    LK_TRY(lk_layer_value(reading, value, text, sizeof text));
    return lk_yaml_at(value, lk_option_set(table, number, key, text));
}

/* The name of a text that does not say: its file's, without folder and ending. */
static void name_after_file(const char *where, char name[64])
{
    const char *slash = strrchr(where, '/');
    const char *stem = slash ? slash + 1 : where;
    const char *dot = strrchr(stem, '.');
    snprintf(name, 64, "%.*s", dot && dot > stem ? (int)(dot - stem) : 63, stem);
}

static enum lk_status read_name(struct lk_reading *reading, const struct lk_yaml *root)
{
    const struct lk_yaml *value = lk_yaml_find(root, "name");
    char name[64];
    if (value)
        LK_TRY(lk_layer_value(reading, value, name, sizeof name));
    else
        name_after_file(root->where, name);
    return lk_arena_text(&reading->model->arena, name, &reading->model->name);
}

/* `parameters:` are words with values, which a text can be opened with other ones for. */
static enum lk_status check_parameters(const struct lk_yaml *parameters)
{
    char found[80];
    if (!parameters)
        return LK_OK;
    if (parameters->kind != LK_YAML_MAP)
        return lk_yaml_fail(parameters, "'parameters' is a map of words and their values");
    for (const struct lk_yaml *entry = parameters->first; entry; entry = entry->next) {
        if (!lk_words_is_free(entry->key))
            return lk_yaml_fail(entry,
                                "'%.60s' is no name for a parameter: letters and digits, and "
                                "no word that is known everywhere",
                                entry->key);
        if (entry->kind != LK_YAML_SCALAR || entry->is_null)
            return lk_yaml_fail(entry, "parameter '%.60s' has one value, found %s", entry->key,
                                lk_yaml_found(entry, found, sizeof found));
    }
    return LK_OK;
}

static enum lk_status read_layers(struct lk_reading *reading, const struct lk_yaml *root)
{
    const struct lk_yaml *layers = lk_yaml_find(root, "layers");
    if (!layers)
        return lk_yaml_fail(root, "'layers:' is missing");
    if (layers->kind != LK_YAML_LIST || layers->count == 0)
        return lk_yaml_fail(layers, "'layers' is a list of at least one operation");
    const struct lk_words words = {.classes = reading->classes,
                                   .vocabulary = reading->vocabulary,
                                   .parameters = reading->parameters};
    for (const struct lk_yaml *entry = layers->first; entry; entry = entry->next)
        LK_TRY(lk_entry_read(reading, entry, &words));
    if (reading->count == 0)
        return lk_yaml_fail(layers, "none of the layers is there");
    lk_blocks_warn_of_unused(reading);
    return LK_OK;
}

/* Says which layers and inputs no output needs: most often a forgotten `from`. */
static enum lk_status warn_of_unused(const struct lk_reading *reading,
                                     const struct lk_yaml *root)
{
    const struct lk_model *model = reading->model;
    const char *output = model->outputs[0].node->name;
    bool *needed = calloc((size_t)model->graph->count, sizeof *needed);
    if (!needed)
        return lk_fail_memory("a mark for each layer", (size_t)model->graph->count);
    lk_model_mark_needed(model, needed);
    for (int i = 0; i < model->input_count; i++)
        if (!needed[model->inputs[i]->index])
            lk_log(LK_LOG_WARNING, "%s:%d: the output '%s' does not depend on input '%s'",
                   root->where, root->line, output, model->inputs[i]->name);
    for (int i = 0; i < reading->count; i++)
        if (!needed[reading->layers[i].first->index])
            lk_log(LK_LOG_WARNING, "%s:%d: the output '%s' does not need layer '%s'",
                   root->where, reading->layers[i].entry->line, output,
                   reading->layers[i].first->name);
    free(needed);
    return LK_OK;
}

/* Keeps names that are no node's, so that values can be asked for by them: first those of
 * blocks, which come before layers of the same name, and the latest first. */
static enum lk_status keep_names(const struct lk_reading *reading)
{
    struct lk_model *model = reading->model;
    const struct lk_named *named;
    size_t most = (size_t)reading->count;
    void *memory = NULL;
    for (named = reading->named; named; named = named->before)
        most++;
    LK_TRY(lk_arena_allocate(&model->arena, (most + 1) * sizeof *model->names, &memory));
    struct lk_model_name *names = memory;
    model->names = names;
    for (int of_blocks = 1; of_blocks >= 0; of_blocks--) {
        for (int i = 0; !of_blocks && i < reading->count; i++)
            if (reading->layers[i].last != reading->layers[i].first)
                names[model->name_count++] = (struct lk_model_name){
                    .name = reading->layers[i].first->name,
                    .node = reading->layers[i].last,
                    .first = reading->layers[i].first->index,
                    .end = reading->layers[i].last->index + 1,
                };
        for (named = reading->named; named; named = named->before) {
            if ((named->block != NULL) != of_blocks)
                continue;
            struct lk_model_name *kept = &names[model->name_count++];
            kept->node = named->node;
            if (named->end_layer > named->layers) {
                kept->first = reading->layers[named->layers].first->index;
                kept->end = reading->layers[named->end_layer - 1].last->index + 1;
            }
            LK_TRY(lk_arena_text(&model->arena, named->name, &kept->name));
        }
    }
    return LK_OK;
}

static enum lk_status read_root(struct lk_reading *reading, const struct lk_yaml *root)
{
    static const char *const keys[] = {
        "name",   "input", "classes", "vocabulary",   "parameters", "blocks", "layers",
        "output", "loss",  "metrics", "freeze_until", "train_last", NULL};
    LK_TRY(lk_yaml_check_keys(root, keys));
    LK_TRY(read_number(reading, root, "classes", &reading->classes));
    LK_TRY(read_number(reading, root, "vocabulary", &reading->vocabulary));
    reading->model->classes = reading->classes;
    reading->model->vocabulary = reading->vocabulary;
    LK_TRY(read_name(reading, root));
    reading->parameters = lk_yaml_find(root, "parameters");
    LK_TRY(check_parameters(reading->parameters));
    LK_TRY(lk_inputs_read(reading, root));
    LK_TRY(lk_blocks_read(reading, lk_yaml_find(root, "blocks")));
    LK_TRY(read_layers(reading, root));
    LK_TRY(lk_freeze_read(reading, root));
    LK_TRY(lk_outputs_read(reading, root));
    LK_TRY(keep_names(reading));
    return warn_of_unused(reading, root);
}

/* Empty lines in front only keep the line numbers of a text that was cut out of a run file. */
static enum lk_status keep_text(struct lk_model *model, const char *text, size_t bytes)
{
    void *memory = NULL;
    while (bytes > 0 && (*text == '\n' || *text == '\r')) {
        text++;
        bytes--;
    }
    LK_TRY(lk_arena_allocate(&model->arena, bytes + 1, &memory));
    model->text = memcpy(memory, text, bytes);
    return LK_OK;
}

enum lk_status lk_model_read(const char *text, size_t bytes, const char *where,
                             struct lk_model **model)
{
    struct lk_yaml_document *document = NULL;
    struct lk_reading reading = {.model = calloc(1, sizeof *reading.model), .lr_scale = 1};
    enum lk_status status;
    if (!reading.model)
        return lk_fail_memory("a model", sizeof *reading.model);
    LK_TRY_OUT(lk_graph_create(&reading.model->graph));
    LK_TRY_OUT(lk_yaml_read(text, bytes, where, &document));
    LK_TRY_OUT(keep_text(reading.model, text, bytes));
    LK_TRY_OUT(read_root(&reading, lk_yaml_root(document)));
    lk_arena_clear(&reading.growth.arena);
    lk_yaml_destroy(document);
    reading.model->node_count = reading.model->graph->count;
    *model = reading.model;
    return LK_OK;
out:
    lk_arena_clear(&reading.growth.arena);
    lk_yaml_destroy(document);
    lk_model_destroy(reading.model);
    return status;
}
