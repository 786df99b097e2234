/* Reads and writes vocabularies. */
#include "data/text/file.h"

#include "base/fail.h"
#include "base/option.h"
#include "base/utf8.h"
#include "io/file.h"
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t most_bytes = (size_t)8 << 20;

/* --- writing ----------------------------------------------------------------------------- */

/* NULL: there was no memory. */
static json_t *words_json(const struct lk_word_set *words)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < words->count; i++)
        if (json_array_append_new(
                list, json_stringn(words->items[i].bytes, words->items[i].length)) != 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static json_t *joins_json(const struct lk_vocabulary *vocabulary)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < vocabulary->join_count; i++)
        json_array_append_new(
            list, json_pack("[i, i]", vocabulary->joins[i][0], vocabulary->joins[i][1]));
    return list;
}

enum lk_status lk_vocabulary_print(const struct lk_vocabulary *vocabulary, char **text)
{
    const struct lk_vocabulary *v = vocabulary;
    const bool is_pairs = v->unit == LK_UNIT_PAIRS;
    json_t *all =
        json_pack("{s:s, s:s, s:s}", "unit", lk_text_units[v->unit], "standardize",
                  lk_text_standards[v->standard], "truncate", v->cuts_start ? "start" : "end");
    if (all && v->unit != LK_UNIT_BYTE)
        json_object_set_new(all, is_pairs ? "joins" : "words",
                            is_pairs ? joins_json(v) : words_json(&v->words));
    char *printed = all ? json_dumps(all, JSON_COMPACT) : NULL;
    json_decref(all);
    if (!printed)
        return lk_fail_memory("a vocabulary", 0);
    if (strlen(printed) > most_bytes) {
        const size_t bytes = strlen(printed);
        free(printed);
        return lk_fail(LK_E_DATA,
                       "a vocabulary of %lld tokens has %zu bytes, at most %zu can be kept; "
                       "vocabulary=N and min_count=N make it smaller",
                       (long long)lk_vocabulary_size(v), bytes, most_bytes);
    }
    *text = printed;
    return LK_OK;
}

/* --- reading ----------------------------------------------------------------------------- */

static enum lk_status refuse(const char *where, const char *why)
{
    return lk_fail(LK_E_DATA, "'%s' is no vocabulary: %s", where, why);
}

/* Takes the choice of that key, which must be the one that is there already, if any. */
static enum lk_status take_choice(const json_t *all, const char *key,
                                  const char *const *choices, const char *where, int *choice)
{
    const char *found = json_string_value(json_object_get(all, key));
    int i = 1;
    if (!found)
        return lk_fail(LK_E_DATA, "'%s' is no vocabulary: '%s' is missing", where, key);
    while (choices[i] && strcmp(choices[i], found) != 0)
        i++;
    if (!choices[i])
        return lk_fail(LK_E_DATA, "'%s': %s '%.40s' is not known", where, key, found);
    if (*choice && *choice != i)
        return lk_fail(LK_E_ARGUMENT, "%s: the vocabulary has %s %s, asked for is %s", where,
                       key, found, choices[*choice]);
    *choice = i;
    return LK_OK;
}

static enum lk_status add_word(struct lk_word_set *words, const char *bytes, size_t length,
                               const char *where)
{
    if (length == 0 || length > UINT32_MAX / 2 || lk_utf8_find_broken(bytes, length) < length ||
        memchr(bytes, '\0', length) || words->count >= LK_MOST_VOCABULARY)
        return lk_fail(LK_E_DATA, "'%s': word %lld is %s", where, (long long)words->count,
                       length == 0                          ? "empty"
                       : words->count >= LK_MOST_VOCABULARY ? "one too many"
                                                            : "no UTF-8, or has a zero byte");
    if (lk_word_set_find(words, bytes, length) >= 0)
        return lk_fail(LK_E_DATA, "'%s': the word '%.*s' is there twice", where,
                       length < 100 ? (int)length : 100, bytes);
    return lk_word_set_add(words, bytes, length, 0);
}

static enum lk_status read_words(struct lk_vocabulary *vocabulary, const json_t *list,
                                 const char *where)
{
    size_t i;
    json_t *entry;
    if (!json_is_array(list))
        return refuse(where, "\"words\": [...] is missing");
    json_array_foreach(list, i, entry)
    {
        if (!json_is_string(entry))
            return refuse(where, "a word that is no text");
        LK_TRY(add_word(&vocabulary->words, json_string_value(entry), json_string_length(entry),
                        where));
    }
    vocabulary->is_there = true;
    return LK_OK;
}

/* One number of a join; -1: none, which taking the joins refuses. */
static int32_t number_of(const json_t *pair, size_t side)
{
    const json_t *entry = json_array_get(pair, side);
    const json_int_t number = json_integer_value(entry);
    return json_is_integer(entry) && number >= 0 && number <= INT32_MAX ? (int32_t)number : -1;
}

static enum lk_status read_joins(struct lk_vocabulary *vocabulary, const json_t *list,
                                 const char *where)
{
    const size_t count = json_array_size(list);
    if (!json_is_array(list) || count > LK_MOST_VOCABULARY)
        return refuse(where, "\"joins\": [[LEFT, RIGHT], ...] is missing, or too long");
    int32_t(*joins)[2] = calloc(count + 1, sizeof *joins);
    if (!joins)
        return lk_fail_memory("a vocabulary", count * sizeof *joins);
    for (size_t i = 0; i < count; i++)
        for (size_t side = 0; side < 2; side++)
            joins[i][side] = number_of(json_array_get(list, i), side);
    const enum lk_status status = lk_vocabulary_take_joins(vocabulary, joins, (int64_t)count);
    return status == LK_OK ? LK_OK : lk_fail_within(status, "'%s'", where);
}

static enum lk_status read_all(struct lk_vocabulary *vocabulary, const json_t *all,
                               const char *where)
{
    const char *cut = json_string_value(json_object_get(all, "truncate"));
    int unit = (int)vocabulary->unit, standard = (int)vocabulary->standard;
    LK_TRY(take_choice(all, "unit", lk_text_units, where, &unit));
    LK_TRY(take_choice(all, "standardize", lk_text_standards, where, &standard));
    vocabulary->unit = (enum lk_text_unit)unit;
    vocabulary->standard = (enum lk_text_standard)standard;
    vocabulary->cuts_start |= cut && strcmp(cut, "start") == 0;
    vocabulary->is_there = unit == LK_UNIT_BYTE;
    return unit == LK_UNIT_BYTE ? LK_OK
           : unit == LK_UNIT_PAIRS
               ? read_joins(vocabulary, json_object_get(all, "joins"), where)
               : read_words(vocabulary, json_object_get(all, "words"), where);
}

enum lk_status lk_vocabulary_parse(struct lk_vocabulary *vocabulary, const char *text,
                                   size_t bytes, const char *where)
{
    json_error_t error;
    json_t *all = json_loadb(text, bytes, 0, &error);
    if (!json_is_object(all)) {
        json_decref(all);
        return lk_fail(LK_E_DATA, "'%s' is no vocabulary: %s, line %d", where,
                       all ? "no JSON object" : error.text, all ? 1 : error.line);
    }
    const enum lk_status status = read_all(vocabulary, all, where);
    json_decref(all);
    return status;
}

static enum lk_status read_lines(struct lk_vocabulary *vocabulary, const char *text,
                                 size_t bytes, const char *path)
{
    const char *end = text + bytes, *word;
    size_t length;
    if (vocabulary->unit == LK_UNIT_AUTO)
        vocabulary->unit = LK_UNIT_WORD;
    if (vocabulary->unit == LK_UNIT_PAIRS || vocabulary->unit == LK_UNIT_BYTE)
        return refuse(path, "lines are words, or characters");
    for (int line = 0; lk_text_next_line(&text, end, &word, &length); line++) {
        const bool stands_for_none = (line == 0 && length == 0) ||
                                     (line <= 1 && length == 5 && !memcmp(word, "[UNK]", 5));
        if (!stands_for_none)
            LK_TRY(add_word(&vocabulary->words, word, length, path));
    }
    if (vocabulary->words.count == 0)
        return refuse(path, "no word is in it");
    vocabulary->is_there = true;
    return LK_OK;
}

/* A brace may be the first of the lines, too. JSON has a name behind it, or ends at once. */
static bool begins_as_json(const char *text, size_t bytes)
{
    static const char space[] = " \t\r\n";
    size_t at = 1;
    if (bytes == 0 || text[0] != '{')
        return false;
    while (at < bytes && text[at] && strchr(space, text[at]))
        at++;
    if (at + 1 < bytes && text[at] == '"')
        return !strchr("\r\n", text[at + 1]);
    for (at += at < bytes && text[at] == '}'; at < bytes; at++)
        if (!text[at] || !strchr(space, text[at]))
            return false;
    return true;
}

enum lk_status lk_vocabulary_read(struct lk_vocabulary *vocabulary, const char *path)
{
    void *data = NULL;
    size_t bytes = 0;
    LK_TRY(lk_file_read(path, most_bytes, &data, &bytes));
    const enum lk_status status =
        (begins_as_json(data, bytes) ? lk_vocabulary_parse : read_lines)(vocabulary, data,
                                                                         bytes, path);
    free(data);
    return status;
}

/* --- comparing --------------------------------------------------------------------------- */

static bool same_words(const struct lk_word_set *a, const struct lk_word_set *b, char what[256])
{
    const int64_t count = a->count < b->count ? a->count : b->count;
    for (int64_t i = 0; i < count; i++)
        if (lk_word_compare(&a->items[i], &b->items[i]) != 0) {
            snprintf(what, 256, "token %lld is '%.80s' there and '%.80s' here",
                     (long long)i + LK_TOKEN_FIRST, a->items[i].bytes, b->items[i].bytes);
            return false;
        }
    return true;
}

bool lk_vocabulary_same(const struct lk_vocabulary *a, const struct lk_vocabulary *b,
                        char what[256])
{
    const int64_t sizes[] = {lk_vocabulary_size(a), lk_vocabulary_size(b)};
    if (a->unit != b->unit || a->standard != b->standard || a->cuts_start != b->cuts_start) {
        snprintf(what, 256,
                 "unit=%s,standardize=%s,truncate=%s there, unit=%s,standardize=%s,"
                 "truncate=%s here",
                 lk_text_units[a->unit], lk_text_standards[a->standard],
                 a->cuts_start ? "start" : "end", lk_text_units[b->unit],
                 lk_text_standards[b->standard], b->cuts_start ? "start" : "end");
        return false;
    }
    if (!same_words(&a->words, &b->words, what))
        return false;
    for (int64_t i = 0; i < a->join_count && i < b->join_count; i++)
        if (memcmp(a->joins[i], b->joins[i], sizeof a->joins[i]) != 0) {
            snprintf(what, 256, "join %lld differs", (long long)i);
            return false;
        }
    snprintf(what, 256, "%lld tokens there, %lld here", (long long)sizes[0],
             (long long)sizes[1]);
    return sizes[0] == sizes[1];
}
