/* Reads tables of what other programs call the layers of a model: patterns with numbers in
 * them, such as "block$n_wide: features.$(n+1).0". */
#include "model/naming/table.h"

#include "base/embedded.h"
#include "base/fail.h"
#include "model/text/words.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

extern const struct lk_embedded lk_zoo_layer_names[];

enum { MOST_NUMBERS = 4, MOST_LIKE = 4 };

/* The numbers and letters that a pattern found in a name, as a map of words. */
struct found {
    struct lk_yaml map, number[MOST_NUMBERS];
    char word[MOST_NUMBERS][16], text[MOST_NUMBERS][24];
};

/* Bytes of the number, or the small letter, that begins here; 0: neither does. */
static size_t wild_bytes(const char *text)
{
    size_t length = 0;
    if (islower((unsigned char)*text))
        return 1;
    while (isdigit((unsigned char)text[length]) && length < 10)
        length++;
    return length;
}

/* Notes that the word at `pattern` stands for the number or letter at `name`. */
static bool take_number(const char *pattern, const char *name, struct found *found)
{
    const int i = found->map.count;
    const size_t word = lk_words_length(pattern), length = wild_bytes(name);
    if (i == MOST_NUMBERS || word == 0 || word >= sizeof found->word[0] || length == 0)
        return false;
    snprintf(found->word[i], sizeof found->word[i], "%.*s", (int)word, pattern);
    snprintf(found->text[i], sizeof found->text[i], "%.*s", (int)length, name);
    found->number[i] =
        (struct lk_yaml){.kind = LK_YAML_SCALAR, .key = found->word[i], .text = found->text[i]};
    if (i > 0)
        found->number[i - 1].next = &found->number[i];
    found->map.first = &found->number[0];
    found->map.count = i + 1;
    return true;
}

/* Whether the pattern, in which "$word" stands for a number or a letter, is the name. */
static bool matches(const char *pattern, const char *name, struct found *found)
{
    *found = (struct found){.map.kind = LK_YAML_MAP};
    while (*pattern) {
        if (*pattern != '$') {
            if (*pattern++ != *name++)
                return false;
            continue;
        }
        if (!take_number(pattern + 1, name, found))
            return false;
        pattern += 1 + lk_words_length(pattern + 1);
        name += wild_bytes(name);
    }
    return *name == '\0';
}

/* What stands behind the first pattern of a map that is the node's name; "": none is. */
static enum lk_status look_up(const struct lk_yaml *map, const char *node, char text[128])
{
    struct found found;
    text[0] = '\0';
    for (const struct lk_yaml *row = map ? map->first : NULL; row; row = row->next) {
        if (row->kind != LK_YAML_SCALAR)
            return lk_yaml_fail(row, "a name expected");
        if (matches(row->key, node, &found)) {
            const struct lk_words words = {.parameters = &found.map};
            return lk_words_text(&words, row, text, 128);
        }
    }
    return LK_OK;
}

static enum lk_status take(struct lk_arena *arena, size_t count, size_t bytes, void *memory)
{
    void *made;
    LK_TRY(lk_arena_allocate(arena, count * bytes + 1, &made));
    memcpy(memory, &made, sizeof made);
    return LK_OK;
}

static enum lk_status read_bases(const struct lk_yaml *layers, const struct lk_namings *params,
                                 struct lk_arena *arena, struct lk_convention *c)
{
    char text[128];
    for (int p = 0; p < params->params; p++) {
        if (p > 0 && params->param[p].node == params->param[p - 1].node) {
            c->base[p] = c->base[p - 1];
            continue;
        }
        LK_TRY(look_up(layers, params->param[p].node->name, text));
        if (*text)
            LK_TRY(lk_arena_text(arena, text, &c->base[p]));
    }
    return LK_OK;
}

/* --- order -------------------------------------------------------------------------------- */

/* The first place in the order that has a parameter of the node of that name; -1: none. */
static int place_of(const struct lk_namings *params, const int *order, const char *node)
{
    for (int i = 0; i < params->params; i++)
        if (strcmp(params->param[order[i]].node->name, node) == 0)
            return i;
    return -1;
}

/* Moves the parameters of a node before those of another one, which now come first. */
static void move_before(const struct lk_namings *params, int *order, const char *node,
                        const char *other)
{
    int moved[LK_MOST_PARAMS], count = 0;
    const int to = place_of(params, order, other), from = place_of(params, order, node);
    if (to < 0 || from <= to)
        return;
    while (from + count < params->params && count < LK_MOST_PARAMS &&
           params->param[order[from + count]].node == params->param[order[from]].node) {
        moved[count] = order[from + count];
        count++;
    }
    memmove(order + to + count, order + to, (size_t)(from - to) * sizeof *order);
    memcpy(order + to, moved, (size_t)count * sizeof *order);
}

static enum lk_status read_order(const struct lk_yaml *before, const struct lk_namings *params,
                                 struct lk_convention *c)
{
    char other[128];
    for (int p = 0; p < params->params; p++)
        c->order[p] = p;
    for (int p = 0; p < params->params; p++) {
        const char *node = params->param[p].node->name;
        if (p > 0 && params->param[p].node == params->param[p - 1].node)
            continue;
        LK_TRY(look_up(before, node, other));
        if (*other)
            move_before(params, c->order, node, other);
    }
    return LK_OK;
}

/* --- the table ---------------------------------------------------------------------------- */

/* Keeps the text that stands under a key; NULL where there is none. */
static enum lk_status read_text(const struct lk_yaml *yaml, const char *key,
                                struct lk_arena *arena, const char **text)
{
    const struct lk_yaml *value = lk_yaml_find(yaml, key);
    *text = NULL;
    return value && value->text ? lk_arena_text(arena, value->text, text) : LK_OK;
}

static bool is_true(const char *word)
{
    return strcmp(word, "true") == 0 || strcmp(word, "yes") == 0;
}

/* The first of the parameters, true or false, that the model has otherwise; NULL: none. What
 * a text knows nothing of is false. */
static const struct lk_yaml *find_other(const struct lk_yaml *wanted, const struct lk_yaml *own)
{
    const struct lk_yaml *row = wanted ? wanted->first : NULL;
    for (; row; row = row->next) {
        const struct lk_yaml *has = own ? lk_yaml_find(own, row->key) : NULL;
        if (row->text && is_true(row->text) != (has && has->text && is_true(has->text)))
            return row;
    }
    return NULL;
}

/* Says how the program's network differs from the model: in what the table tells, unless the
 * model has the parameters with which it does not. */
static enum lk_status read_difference(const struct lk_yaml *yaml, const struct lk_yaml *own,
                                      struct lk_arena *arena, struct lk_convention *c)
{
    char text[512];
    const struct lk_yaml *wanted = lk_yaml_find(yaml, "parameters");
    const struct lk_yaml *other = find_other(wanted, own);
    const char *differs;
    LK_TRY(read_text(yaml, "differs", arena, &differs));
    if (!other) {
        c->differs = wanted ? NULL : differs;
        return LK_OK;
    }
    snprintf(text, sizeof text, "%.300s%s--set %.60s=%.60s makes the network of these weights",
             differs ? differs : "", differs ? "; " : "", other->key, other->text);
    return lk_arena_text(arena, text, &c->differs);
}

static enum lk_status read_unused(const struct lk_yaml *map, struct lk_arena *arena,
                                  struct lk_convention *c)
{
    struct lk_unused *rows = NULL;
    LK_TRY(take(arena, map ? (size_t)map->count : 0, sizeof *rows, &rows));
    for (const struct lk_yaml *row = map ? map->first : NULL; row; row = row->next) {
        if (!row->text || c->unused_count == LK_MOST_UNUSED)
            return lk_yaml_fail(row, "why it is not used is expected, %d times at most",
                                LK_MOST_UNUSED);
        LK_TRY(lk_arena_text(arena, row->key, &rows[c->unused_count].layer));
        LK_TRY(lk_arena_text(arena, row->text, &rows[c->unused_count].why));
        c->unused_count++;
    }
    c->unused = rows;
    return LK_OK;
}

static enum lk_status read_counting(const struct lk_yaml *yaml, struct lk_convention *c)
{
    static const char *const words[] = {"0", "1"};
    const struct lk_yaml *value = lk_yaml_find(yaml, "counts_from");
    c->counts_from = -1;
    for (int i = 0; value && value->text && i < LK_COUNT(words); i++)
        if (strcmp(value->text, words[i]) == 0)
            c->counts_from = i;
    return value && c->counts_from < 0 ? lk_yaml_fail(value, "0 or 1 expected") : LK_OK;
}

/* own: the model's parameters. */
static enum lk_status read_convention(const struct lk_yaml *yaml, const struct lk_yaml *own,
                                      const struct lk_namings *params, struct lk_arena *arena,
                                      struct lk_convention *c)
{
    static const char *const keys[] = {"style",  "images",     "differs", "layers",
                                       "before", "parameters", "lacks",   "counts_from",
                                       "unused", NULL};
    const struct lk_yaml *style = lk_yaml_find(yaml, "style");
    LK_TRY(lk_yaml_check_keys(yaml, keys));
    if (!style || !style->text ||
        (strcmp(style->text, "torch") != 0 && strcmp(style->text, "keras") != 0))
        return lk_yaml_fail(yaml, "'style: torch' or 'style: keras' expected");
    *c = (struct lk_convention){.is_keras = strcmp(style->text, "keras") == 0};
    const size_t count = (size_t)params->params;
    LK_TRY(lk_arena_text(arena, yaml->key, &c->title));
    LK_TRY(read_text(yaml, "images", arena, &c->images));
    LK_TRY(read_text(yaml, "lacks", arena, &c->lacks));
    LK_TRY(read_difference(yaml, own, arena, c));
    LK_TRY(read_unused(lk_yaml_find(yaml, "unused"), arena, c));
    LK_TRY(read_counting(yaml, c));
    LK_TRY(take(arena, count, sizeof *c->base, &c->base));
    LK_TRY(take(arena, count, sizeof *c->order, &c->order));
    LK_TRY(read_bases(lk_yaml_find(yaml, "layers"), params, arena, c));
    return read_order(lk_yaml_find(yaml, "before"), params, c);
}

/* Opens the table of a model, or of the one that it is like. */
static enum lk_status open_table(const char *model, struct lk_yaml_document **document)
{
    char name[128];
    snprintf(name, sizeof name, "%.100s.yaml", model);
    for (int i = 0; i < MOST_LIKE; i++) {
        const struct lk_embedded *file = lk_embedded_find(lk_zoo_layer_names, name);
        if (!file)
            return LK_OK;
        LK_TRY(lk_yaml_read(file->text, file->bytes, name, document));
        const struct lk_yaml *like = lk_yaml_find(lk_yaml_root(*document), "like");
        if (!like || !like->text)
            return LK_OK;
        snprintf(name, sizeof name, "%.100s.yaml", like->text);
        lk_yaml_destroy(*document);
        *document = NULL;
    }
    return lk_fail(LK_E_MODEL, "%s: too many tables that are like another one", name);
}

enum lk_status lk_conventions_read(const struct lk_model *model,
                                   const struct lk_namings *params, struct lk_arena *arena,
                                   struct lk_convention *conventions, int *count)
{
    struct lk_yaml_document *document = NULL, *text = NULL;
    enum lk_status status;
    LK_TRY(open_table(model->name, &document));
    if (!document)
        return LK_OK;
    LK_TRY_OUT(lk_yaml_read(model->text, strlen(model->text), model->name, &text));
    const struct lk_yaml *own = lk_yaml_find(lk_yaml_root(text), "parameters");
    const struct lk_yaml *row = lk_yaml_root(document)->first;
    for (; row && status == LK_OK; row = row->next)
        status = *count < LK_MOST_CONVENTIONS
                     ? read_convention(row, own, params, arena, &conventions[(*count)++])
                     : lk_yaml_fail(row, "at most %d conventions", LK_MOST_CONVENTIONS);
out:
    lk_yaml_destroy(text);
    lk_yaml_destroy(document);
    return status;
}
