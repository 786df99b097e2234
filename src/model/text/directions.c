/* `bidirectional: concat` or `sum` among the options of a recurrent layer: it becomes two
 * layers, of which the second walks backwards, and what joins their outputs. */
#include "base/fail.h"
#include "model/text/entry.h"
#include <stdio.h>
#include <string.h>

enum { FORWARD, BACKWARD, DIRECTIONS };

static const char *const suffixes[DIRECTIONS] = {"_forward", "_backward"};

/* --- what the entry asks for ------------------------------------------------------------- */

const struct lk_yaml *lk_directions_find(const struct lk_entry *entry)
{
    const bool has_direction = lk_option_find(entry->op->options, "go_backwards") != NULL;
    return has_direction && entry->options ? lk_yaml_find(entry->options, "bidirectional")
                                           : NULL;
}

/* Finds the operation that joins both outputs; NULL: only one direction is asked for. */
static enum lk_status read_joining(const struct lk_reading *reading,
                                   const struct lk_yaml *value, const char **joining)
{
    static const char *const words[] = {"concat", "sum", "true", "false", NULL};
    static const char *const operations[] = {"concat", "add", "concat", NULL};
    static const struct lk_option table[] = {
        {.name = "bidirectional", .kind = LK_OPTION_CHOICE, .choices = words}, {0}};
    char text[64];
    int choice = 0;
    LK_TRY(lk_layer_value(reading, value, text, sizeof text));
    LK_TRY(lk_yaml_at(value, lk_option_set(table, &choice, "bidirectional", text)));
    *joining = operations[choice];
    return LK_OK;
}

/* Initial states are one for each direction. Final states, which are appended as time steps,
 * stand beside one another behind a concat; their sum would be of no use. */
static enum lk_status check(const struct lk_reading *reading, const struct lk_entry *entry,
                            const struct lk_sources *sources, const char *joining)
{
    const struct lk_yaml *backwards = lk_yaml_find(entry->options, "go_backwards");
    const struct lk_yaml *state = lk_yaml_find(entry->options, "return_state");
    bool returns_state = false;
    if (backwards)
        return lk_yaml_fail(backwards,
                            "'go_backwards' beside 'bidirectional', which goes both ways");
    if (state)
        LK_TRY(lk_layer_flag(reading, "return_state", state, &returns_state));
    if (returns_state && strcmp(joining, "add") == 0)
        return lk_yaml_fail(state, "'return_state' beside 'bidirectional: sum', which would "
                                   "add the states of both directions");
    if (sources->count != 1 && sources->count != 1 + DIRECTIONS)
        return lk_yaml_fail(entry->yaml,
                            "a bidirectional %s reads a sequence, or a sequence and the "
                            "initial states of each direction, not %d layers",
                            entry->op->name, sources->count);
    return LK_OK;
}

/* --- what it becomes --------------------------------------------------------------------- */

/* Adds a scalar behind *tail, which is moved to what follows it. */
static enum lk_status append(struct lk_reading *reading, const struct lk_yaml *value,
                             const struct lk_yaml ***tail)
{
    void *memory = NULL;
    LK_TRY(lk_growth_take(&reading->growth, value, sizeof(struct lk_yaml), &memory));
    struct lk_yaml *made = memory;
    *made = *value;
    made->next = NULL;
    **tail = made;
    *tail = &made->next;
    return LK_OK;
}

/* Copies the options without `bidirectional`; those of the second direction go backwards. */
static enum lk_status copy_options(struct lk_reading *reading, const struct lk_entry *entry,
                                   int direction, const struct lk_yaml **made)
{
    const struct lk_yaml *both = lk_directions_find(entry);
    struct lk_yaml backwards = *both;
    void *memory = NULL;
    LK_TRY(lk_growth_take(&reading->growth, entry->options, sizeof *both, &memory));
    struct lk_yaml *map = memory;
    *map = *entry->options;
    map->first = NULL;
    map->count = 0;
    const struct lk_yaml **tail = &map->first;
    backwards.key = "go_backwards";
    backwards.text = "true";
    for (const struct lk_yaml *o = entry->options->first; o; o = o->next) {
        if (o == both && direction == FORWARD)
            continue;
        LK_TRY(append(reading, o == both ? &backwards : o, &tail));
        map->count++;
    }
    *made = map;
    return LK_OK;
}

/* The name with the direction's suffix, in place of `name`. */
static enum lk_status add_suffix(struct lk_reading *reading, int direction,
                                 const struct lk_yaml **name)
{
    const size_t bytes = strlen((*name)->text) + strlen(suffixes[direction]) + 1;
    const struct lk_yaml *made = NULL, **tail = &made;
    void *memory = NULL;
    LK_TRY(lk_growth_take(&reading->growth, *name, bytes, &memory));
    snprintf(memory, bytes, "%s%s", (*name)->text, suffixes[direction]);
    struct lk_yaml suffixed = **name;
    suffixed.text = memory;
    LK_TRY(append(reading, &suffixed, &tail));
    *name = made;
    return LK_OK;
}

static bool is_taken(const struct lk_reading *reading, const char *name)
{
    return lk_graph_find(reading->model->graph, name) ||
           lk_layer_find_named(reading, name, true);
}

/* The entry's own name, or the first of bidirectional_1, ... that is free. */
static enum lk_status find_name(struct lk_reading *reading, const struct lk_entry *entry,
                                struct lk_yaml *name)
{
    const struct lk_yaml *given = entry->at[LK_ENTRY_NAME];
    char text[80];
    void *memory = NULL;
    if (given && (given->kind != LK_YAML_SCALAR || given->is_null))
        return lk_yaml_fail(given, "a name expected, found %s",
                            lk_yaml_found(given, text, sizeof text));
    *name = given ? *given : *entry->yaml;
    if (given)
        return is_taken(reading, given->text)
                   ? lk_yaml_fail(given, "two layers are named '%.60s'", given->text)
                   : LK_OK;
    int number = 1;
    do
        snprintf(text, sizeof text, "bidirectional_%d", number++);
    while (is_taken(reading, text));
    LK_TRY(lk_growth_take(&reading->growth, entry->yaml, sizeof text, &memory));
    name->kind = LK_YAML_SCALAR;
    name->is_null = false;
    name->text = memcpy(memory, text, sizeof text);
    return LK_OK;
}

/* Adds one direction. What stands beside the options is true of both: weights of another entry
 * are those of its same direction. */
static enum lk_status read_direction(struct lk_reading *reading, const struct lk_entry *entry,
                                     const struct lk_sources *sources,
                                     const struct lk_yaml *name, int direction)
{
    struct lk_entry one = *entry;
    struct lk_sources own = {.x = {sources->x[0]}, .count = 1};
    const struct lk_yaml *weights = entry->at[LK_ENTRY_WEIGHTS];
    if (sources->count > 1)
        own.x[own.count++] = sources->x[1 + direction];
    one.at[LK_ENTRY_NAME] = name;
    LK_TRY(add_suffix(reading, direction, &one.at[LK_ENTRY_NAME]));
    if (weights && weights->text)
        LK_TRY(add_suffix(reading, direction, &one.at[LK_ENTRY_WEIGHTS]));
    LK_TRY(copy_options(reading, entry, direction, &one.options));
    return lk_layer_read(reading, &one, &own);
}

enum lk_status lk_directions_read(struct lk_reading *reading, const struct lk_entry *entry,
                                  const struct lk_sources *sources)
{
    const char *joining = NULL;
    struct lk_yaml name;
    struct lk_sources both = {.count = DIRECTIONS};
    LK_TRY(read_joining(reading, lk_directions_find(entry), &joining));
    if (!joining) {
        struct lk_entry one = *entry;
        LK_TRY(copy_options(reading, entry, FORWARD, &one.options));
        return lk_layer_read(reading, &one, sources);
    }
    LK_TRY(check(reading, entry, sources, joining));
    LK_TRY(find_name(reading, entry, &name));
    for (int i = 0; i < DIRECTIONS; i++) {
        LK_TRY(read_direction(reading, entry, sources, &name, i));
        both.x[i] = reading->before;
    }
    const struct lk_entry join = {.yaml = entry->yaml,
                                  .op = lk_entry_find_op(joining),
                                  .at[LK_ENTRY_NAME] = &name,
                                  .at[LK_ENTRY_DEVICE] = entry->at[LK_ENTRY_DEVICE]};
    return lk_layer_read(reading, &join, &both);
}
