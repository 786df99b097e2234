/* Blocks: lists of layers with parameters, and the entries that use them. */
#include "base/fail.h"
#include "base/log.h"
#include "model/text/entry.h"
#include <stdio.h>
#include <string.h>

enum { MOST_DEPTH = 16 };

/* --- definitions ----------------------------------------------------------------------- */

static enum lk_status check_parameters(const struct lk_yaml *parameters)
{
    if (parameters->kind != LK_YAML_MAP)
        return lk_yaml_fail(parameters, "'parameters' is a map of names and their standards");
    for (const struct lk_yaml *p = parameters->first; p; p = p->next)
        if (!lk_words_is_free(p->key))
            return lk_yaml_fail(p,
                                "a parameter '%.60s': its name is letters and digits, a letter "
                                "first, and none of classes, channels, name, input, number",
                                p->key);
    return LK_OK;
}

static enum lk_status check_block(const struct lk_yaml *block)
{
    static const char *const keys[] = {"parameters", "layers", NULL};
    if (lk_entry_find_op(block->key))
        return lk_yaml_fail(block, "a block '%s': there is an operation of that name",
                            block->key);
    for (int i = 0; i < LK_ENTRY_KEYS; i++)
        if (strcmp(block->key, lk_entry_words[i]) == 0)
            return lk_yaml_fail(block, "a block '%s': that word is a key of layers",
                                block->key);
    LK_TRY(lk_yaml_check_keys(block, keys));
    const struct lk_yaml *parameters = lk_yaml_find(block, "parameters");
    const struct lk_yaml *layers = lk_yaml_find(block, "layers");
    if (!layers || layers->kind != LK_YAML_LIST || layers->count == 0)
        return lk_yaml_fail(layers ? layers : block,
                            "a block has 'layers:', a list of at least one");
    return parameters ? check_parameters(parameters) : LK_OK;
}

enum lk_status lk_blocks_read(struct lk_reading *reading, const struct lk_yaml *blocks)
{
    void *memory = NULL;
    if (!blocks)
        return LK_OK;
    if (blocks->kind != LK_YAML_MAP)
        return lk_yaml_fail(blocks, "'blocks' is a map of names and blocks");
    for (const struct lk_yaml *block = blocks->first; block; block = block->next)
        LK_TRY(check_block(block));
    LK_TRY(lk_growth_take(&reading->growth, blocks,
                          ((size_t)blocks->count + 1) * sizeof *reading->uses, &memory));
    reading->uses = memory;
    reading->blocks = blocks;
    return LK_OK;
}

/* How often the block was used so far, to be counted up. */
static int *uses_of(const struct lk_reading *reading, const struct lk_yaml *block)
{
    int index = 0;
    for (const struct lk_yaml *b = reading->blocks->first; b != block; b = b->next)
        index++;
    return &reading->uses[index];
}

void lk_blocks_warn_of_unused(const struct lk_reading *reading)
{
    const struct lk_yaml *block = reading->blocks ? reading->blocks->first : NULL;
    for (; block; block = block->next)
        if (*uses_of(reading, block) == 0)
            lk_log(LK_LOG_WARNING, "%s:%d: no layer uses the block '%s'", block->where,
                   block->line, block->key);
}

/* --- parameters ------------------------------------------------------------------------ */

static const char *parameter_name(const void *parameters, int i)
{
    const struct lk_yaml *p = parameters ? lk_yaml_item(parameters, i) : NULL;
    return p ? p->key : NULL;
}

static enum lk_status check_given(const struct lk_entry *entry,
                                  const struct lk_yaml *parameters)
{
    const struct lk_yaml *given = entry->options ? entry->options->first : NULL;
    for (; given; given = given->next) {
        if (given->is_null)
            return lk_yaml_fail(given, "%s: parameter '%.60s' stands here without a value",
                                entry->block->key, given->key);
        if (parameters && lk_yaml_find(parameters, given->key))
            continue;
        const char *near = lk_nearest_name(given->key, parameter_name, parameters);
        return lk_yaml_fail(given, "%s: unknown parameter '%.60s'%s%s%s", entry->block->key,
                            given->key, near ? "; did you mean '" : "", near ? near : "",
                            near ? "'?" : "");
    }
    return LK_OK;
}

/* The value of a parameter in this use: what is given, or the standard, in which those before
 * it and `words` are known. */
static enum lk_status find_value(struct lk_reading *reading, const struct lk_entry *entry,
                                 const struct lk_yaml *parameter, const struct lk_words *words,
                                 const struct lk_yaml **value)
{
    const struct lk_yaml *given =
        entry->options ? lk_yaml_find(entry->options, parameter->key) : NULL;
    if (given) {
        *value = given;
        return LK_OK;
    }
    if (parameter->is_null)
        return lk_yaml_fail(entry->yaml, "%s: parameter '%s' is missing", entry->block->key,
                            parameter->key);
    return lk_words_replace(&reading->growth, words, parameter, value);
}

/* Makes the parameters of words from what an entry gives its block. */
static enum lk_status bind(struct lk_reading *reading, const struct lk_entry *entry,
                           struct lk_words *words)
{
    const struct lk_yaml *parameters = lk_yaml_find(entry->block, "parameters");
    void *memory = NULL;
    LK_TRY(check_given(entry, parameters));
    LK_TRY(lk_growth_take(&reading->growth, entry->yaml, sizeof(struct lk_yaml), &memory));
    struct lk_yaml *map = memory;
    map->kind = LK_YAML_MAP;
    words->parameters = map;
    const struct lk_yaml **tail = &map->first;
    const struct lk_yaml *parameter = parameters ? parameters->first : NULL;
    for (; parameter; parameter = parameter->next) {
        const struct lk_yaml *value = NULL;
        LK_TRY(find_value(reading, entry, parameter, words, &value));
        LK_TRY(lk_growth_take(&reading->growth, entry->yaml, sizeof(struct lk_yaml), &memory));
        struct lk_yaml *bound = memory;
        *bound = *value;
        bound->next = NULL;
        *tail = bound;
        tail = &bound->next;
        map->count++;
    }
    return LK_OK;
}

/* --- uses ------------------------------------------------------------------------------ */

static enum lk_status note(struct lk_reading *reading, const struct lk_yaml *place,
                           const struct lk_named *named)
{
    void *memory = NULL;
    LK_TRY(lk_growth_take(&reading->growth, place, sizeof *named, &memory));
    struct lk_named *made = memory;
    *made = *named;
    made->before = reading->named;
    reading->named = made;
    return LK_OK;
}

enum lk_status lk_block_pass_by(struct lk_reading *reading, const struct lk_yaml *name,
                                struct lk_node *node)
{
    const struct lk_named named = {.name = name ? name->text : NULL, .node = node};
    reading->before = node;
    return named.name ? note(reading, name, &named) : LK_OK;
}

static bool is_taken(const struct lk_reading *reading, const char *name)
{
    return lk_graph_find(reading->model->graph, name) ||
           lk_layer_find_named(reading, name, true);
}

/* The name of a use: that of its entry, or one after the block. */
static enum lk_status find_name(struct lk_reading *reading, const struct lk_entry *entry,
                                const char **name)
{
    const struct lk_yaml *given = entry->at[LK_ENTRY_NAME];
    int *number = uses_of(reading, entry->block);
    char text[64];
    void *memory = NULL;
    if (given && (given->kind != LK_YAML_SCALAR || given->is_null))
        return lk_yaml_fail(given, "a name expected, found %s",
                            lk_yaml_found(given, text, sizeof text));
    if (given && is_taken(reading, given->text))
        return lk_yaml_fail(given, "two layers are named '%.60s'", given->text);
    ++*number;
    if (given) {
        *name = given->text;
        return LK_OK;
    }
    for (int i = *number; i == *number || is_taken(reading, text); i++)
        snprintf(text, sizeof text, "%.48s_%d", entry->block->key, i);
    LK_TRY(lk_growth_take(&reading->growth, entry->yaml, sizeof text, &memory));
    *name = memcpy(memory, text, sizeof text);
    return LK_OK;
}

/* Adds to an error within a block which entry uses the block. */
static enum lk_status tell_use(enum lk_status status, const struct lk_entry *entry)
{
    char text[2048];
    if (status != LK_E_MODEL)
        return status;
    snprintf(text, sizeof text, "%s", lk_error_text());
    lk_error_clear();
    return lk_fail(status, "%s (in block '%s' of line %d)", text, entry->block->key,
                   entry->yaml->line);
}

static enum lk_status read_layers(struct lk_reading *reading, const struct lk_entry *entry,
                                  const struct lk_words *words)
{
    const bool was_frozen = reading->is_frozen;
    const double lr_scale = reading->lr_scale;
    const struct lk_yaml *device = reading->device;
    bool is_trainable = true;
    for (int key = LK_ENTRY_L1; key <= LK_ENTRY_L2; key++)
        if (entry->at[key])
            return lk_yaml_fail(entry->at[key], "'%s' is a key of single layers, not of blocks",
                                lk_entry_words[key]);
    LK_TRY(lk_layer_flag(reading, "trainable", entry->at[LK_ENTRY_TRAINABLE], &is_trainable));
    reading->is_frozen |= !is_trainable;
    LK_TRY(lk_layer_lr_scale(reading, entry->at[LK_ENTRY_LR_SCALE], &reading->lr_scale));
    reading->device = entry->at[LK_ENTRY_DEVICE] ? entry->at[LK_ENTRY_DEVICE] : device;
    reading->depth++;
    const struct lk_yaml *layer = lk_yaml_find(entry->block, "layers")->first;
    for (; layer; layer = layer->next) {
        const enum lk_status status = lk_entry_read(reading, layer, words);
        if (status != LK_OK)
            return tell_use(status, entry);
    }
    reading->depth--;
    reading->is_frozen = was_frozen;
    reading->lr_scale = lr_scale;
    reading->device = device;
    return LK_OK;
}

enum lk_status lk_block_use(struct lk_reading *reading, const struct lk_entry *entry,
                            const struct lk_sources *sources, const struct lk_words *words)
{
    struct lk_words inside = {
        .outer = words->name ? words->outer : words->parameters,
        .classes = words->classes,
        .vocabulary = words->vocabulary,
        .channels = words->channels,
        .input = lk_node_info(sources->x[0]).name,
    };
    struct lk_named use = {.block = entry->block->key, .layers = reading->count};
    if (sources->count != 1)
        return lk_yaml_fail(entry->yaml, "%s: a block reads one layer, not %d",
                            entry->block->key, sources->count);
    if (reading->depth == MOST_DEPTH)
        return lk_yaml_fail(entry->yaml,
                            "blocks within blocks deeper than %d: is '%s' one of "
                            "its own layers?",
                            MOST_DEPTH, entry->block->key);
    LK_TRY(find_name(reading, entry, &use.name));
    inside.name = use.name;
    LK_TRY(bind(reading, entry, &inside));
    reading->before = sources->x[0];
    LK_TRY(read_layers(reading, entry, &inside));
    use.end_layer = reading->count;
    use.node = reading->before;
    LK_TRY(lk_weights_share_block(reading, entry, &use));
    return note(reading, entry->yaml, &use);
}
