/* Reads one entry of `layers:`: takes it apart, replaces its words, repeats it. */
#include "model/text/entry.h"

#include "base/fail.h"
#include <string.h>

/* The most entries of a text, with repetitions and those within blocks: reading each takes
 * time, even if it adds no layer. */
enum { MOST_ENTRIES = 10000 };

const char *const lk_entry_words[LK_ENTRY_KEYS] = {
    "name", "from", "trainable", "lr_scale", "l1", "l2", "weights", "device", "repeat", "when"};

/* --- taking apart ---------------------------------------------------------------------- */

const struct lk_op *lk_entry_find_op(const char *name)
{
    for (int i = 0; lk_ops[i]; i++)
        if (strcmp(lk_ops[i]->name, name) == 0)
            return lk_ops[i];
    return NULL;
}

/* All words that can stand in an entry: keys, operations, blocks. */
static const char *entry_word(const void *reading, int i)
{
    const struct lk_reading *r = reading;
    if (i < LK_ENTRY_KEYS)
        return lk_entry_words[i];
    i -= LK_ENTRY_KEYS;
    for (int op = 0; lk_ops[op]; op++)
        if (i-- == 0)
            return lk_ops[op]->name;
    const struct lk_yaml *block = r->blocks ? lk_yaml_item(r->blocks, i) : NULL;
    return block ? block->key : NULL;
}

static const struct lk_yaml *find_block(const struct lk_reading *reading, const char *name)
{
    return reading->blocks ? lk_yaml_find(reading->blocks, name) : NULL;
}

static const char *what_of(const struct lk_entry *entry)
{
    return entry->op ? entry->op->name : entry->block->key;
}

static enum lk_status take_key(const struct lk_reading *reading, const struct lk_yaml *key,
                               struct lk_entry *entry)
{
    char found[80];
    for (int i = 0; i < LK_ENTRY_KEYS; i++)
        if (strcmp(key->key, lk_entry_words[i]) == 0) {
            entry->at[i] = key;
            return LK_OK;
        }
    struct lk_entry now = {.op = lk_entry_find_op(key->key),
                           .block = find_block(reading, key->key)};
    if (!now.op && !now.block) {
        const char *near = lk_nearest_name(key->key, entry_word, reading);
        return lk_yaml_fail(key, "'%.60s' is no operation%s and no key of a layer%s%s%s",
                            key->key, reading->blocks ? ", no block" : "",
                            near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    }
    if (entry->op || entry->block)
        return lk_yaml_fail(key, "two operations in one layer: %s and %s", what_of(entry),
                            what_of(&now));
    if (key->kind != LK_YAML_MAP && !key->is_null)
        return lk_yaml_fail(key, "%s takes {%s: value, ...}, found %s", what_of(&now),
                            now.op ? "option" : "parameter",
                            lk_yaml_found(key, found, sizeof found));
    entry->op = now.op;
    entry->block = now.block;
    entry->options = key->is_null ? NULL : key;
    return LK_OK;
}

static enum lk_status take_word(const struct lk_reading *reading, const struct lk_yaml *yaml,
                                struct lk_entry *entry)
{
    entry->op = lk_entry_find_op(yaml->text);
    entry->block = find_block(reading, yaml->text);
    if (entry->op || entry->block)
        return LK_OK;
    const char *near = lk_nearest_name(yaml->text, entry_word, reading);
    return lk_yaml_fail(yaml, "unknown operation%s '%.60s'%s%s%s",
                        reading->blocks ? " or block" : "", yaml->text,
                        near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

enum lk_status lk_entry_take_apart(const struct lk_reading *reading, const struct lk_yaml *yaml,
                                   struct lk_entry *entry)
{
    char found[80];
    *entry = (struct lk_entry){.yaml = yaml};
    if (yaml->kind == LK_YAML_SCALAR && !yaml->is_null)
        return take_word(reading, yaml, entry);
    if (yaml->kind != LK_YAML_MAP)
        return lk_yaml_fail(yaml, "an operation or {operation: {options}} expected, found %s",
                            lk_yaml_found(yaml, found, sizeof found));
    for (const struct lk_yaml *key = yaml->first; key; key = key->next)
        LK_TRY(take_key(reading, key, entry));
    return entry->op || entry->block ? LK_OK
                                     : lk_yaml_fail(yaml, "a layer without an operation");
}

/* --- reading --------------------------------------------------------------------------- */

/* The channels of what an entry reads: of images [c, h, w], sequences [t, c] and vectors
 * [c]. */
static int64_t channels_of(const struct lk_node *node)
{
    const struct lk_shape shape = lk_node_info(node).shape;
    return shape.rank == 2 ? shape.dim[1] : shape.rank > 0 ? shape.dim[0] : 0;
}

/* Replaces the words of what stands under `key`. */
static enum lk_status replace_key(struct lk_reading *reading, const struct lk_words *words,
                                  enum lk_entry_key key, struct lk_entry *entry)
{
    return entry->at[key]
               ? lk_words_replace(&reading->growth, words, entry->at[key], &entry->at[key])
               : LK_OK;
}

/* The entry as it is in one repetition: its words replaced, what it reads found. */
static enum lk_status replace_words(struct lk_reading *reading, const struct lk_yaml *from,
                                    struct lk_words *words, struct lk_entry *entry,
                                    struct lk_sources *sources)
{
    entry->at[LK_ENTRY_FROM] = from;
    LK_TRY(replace_key(reading, words, LK_ENTRY_FROM, entry));
    LK_TRY(lk_layer_sources(reading, entry->at[LK_ENTRY_FROM], entry->yaml, sources));
    words->channels = channels_of(sources->x[0]);
    LK_TRY(replace_key(reading, words, LK_ENTRY_NAME, entry));
    LK_TRY(replace_key(reading, words, LK_ENTRY_WHEN, entry));
    LK_TRY(replace_key(reading, words, LK_ENTRY_TRAINABLE, entry));
    LK_TRY(replace_key(reading, words, LK_ENTRY_LR_SCALE, entry));
    LK_TRY(replace_key(reading, words, LK_ENTRY_L1, entry));
    LK_TRY(replace_key(reading, words, LK_ENTRY_L2, entry));
    LK_TRY(replace_key(reading, words, LK_ENTRY_DEVICE, entry));
    return replace_key(reading, words, LK_ENTRY_WEIGHTS, entry);
}

static enum lk_status read_once(struct lk_reading *reading, const struct lk_entry *as_written,
                                const struct lk_yaml *from, const struct lk_words *outside)
{
    struct lk_entry entry = *as_written;
    struct lk_words words = *outside;
    struct lk_sources sources;
    bool is_there = true;
    if (reading->entries++ == MOST_ENTRIES)
        return lk_yaml_fail(entry.yaml, "with its blocks the text has more than %d entries",
                            MOST_ENTRIES);
    LK_TRY(replace_words(reading, from, &words, &entry, &sources));
    LK_TRY(lk_layer_flag(reading, "when", entry.at[LK_ENTRY_WHEN], &is_there));
    if (!is_there)
        return lk_block_pass_by(reading, entry.at[LK_ENTRY_NAME], sources.x[0]);
    if (entry.options)
        LK_TRY(lk_words_replace(&reading->growth, &words, entry.options, &entry.options));
    if (!entry.op)
        return lk_block_use(reading, &entry, &sources, &words);
    return lk_directions_find(&entry) ? lk_directions_read(reading, &entry, &sources)
                                      : lk_layer_read(reading, &entry, &sources);
}

static enum lk_status read_repeat(struct lk_reading *reading, const struct lk_words *words,
                                  const struct lk_entry *entry, int64_t *times)
{
    static const struct lk_option table[] = {
        {.name = "repeat", .kind = LK_OPTION_INT, .count = 1, .min = 0, .max = LK_MOST_LAYERS},
        {0}};
    const struct lk_yaml *value = entry->at[LK_ENTRY_REPEAT];
    const struct lk_yaml *name = entry->at[LK_ENTRY_NAME];
    char text[64];
    LK_TRY(lk_words_replace(&reading->growth, words, value, &value));
    LK_TRY(lk_layer_value(reading, value, text, sizeof text));
    LK_TRY(lk_yaml_at(value, lk_option_set(table, times, "repeat", text)));
    if (*times > 1 && name && name->text && !strstr(name->text, "number"))
        return lk_yaml_fail(name,
                            "%lld layers of one name; with $number in it, as in "
                            "'%.40s$number', they differ",
                            (long long)*times, name->text);
    return LK_OK;
}

/* An entry that is repeated no times gives its readers what the first would have read. */
static enum lk_status read_none(struct lk_reading *reading, struct lk_entry *entry,
                                struct lk_words *words)
{
    struct lk_sources sources;
    words->number = 1;
    LK_TRY(replace_key(reading, words, LK_ENTRY_FROM, entry));
    LK_TRY(lk_layer_sources(reading, entry->at[LK_ENTRY_FROM], entry->yaml, &sources));
    return lk_block_pass_by(reading, NULL, sources.x[0]);
}

enum lk_status lk_entry_read(struct lk_reading *reading, const struct lk_yaml *yaml,
                             const struct lk_words *words)
{
    struct lk_entry entry;
    struct lk_words own = *words;
    int64_t times = 1;
    LK_TRY(lk_entry_take_apart(reading, yaml, &entry));
    if (!entry.at[LK_ENTRY_REPEAT])
        return read_once(reading, &entry, entry.at[LK_ENTRY_FROM], &own);
    LK_TRY(read_repeat(reading, &own, &entry, &times));
    if (times == 0)
        return read_none(reading, &entry, &own);
    for (own.number = 1; own.number <= times; own.number++)
        LK_TRY(
            read_once(reading, &entry, own.number == 1 ? entry.at[LK_ENTRY_FROM] : NULL, &own));
    return LK_OK;
}
