/* Replaces words with a dollar sign by what they stand for. */
#include "model/text/words.h"

#include "base/fail.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { MOST_TEXT = 512 };

enum lk_status lk_growth_take(struct lk_growth *growth, const struct lk_yaml *place,
                              size_t bytes, void **memory)
{
    if (bytes > LK_MOST_GROWTH || growth->bytes > LK_MOST_GROWTH - bytes)
        return lk_yaml_fail(place, "with its blocks the text grows beyond %d MiB",
                            LK_MOST_GROWTH >> 20);
    growth->bytes += bytes;
    return lk_arena_allocate(&growth->arena, bytes, memory);
}

/* --- what words stand for -------------------------------------------------------------- */

/* The last one, a newer word, may be the name of a parameter all the same. */
static const char *const known_everywhere[] = {"classes", "channels", "name",
                                               "input",   "number",   "vocabulary"};

size_t lk_words_length(const char *text)
{
    size_t length = 0;
    if (!isalpha((unsigned char)text[0]))
        return 0;
    while (isalnum((unsigned char)text[length]))
        length++;
    return length;
}

bool lk_words_is_free(const char *word)
{
    for (int i = 0; i < LK_COUNT(known_everywhere) - 1; i++)
        if (strcmp(known_everywhere[i], word) == 0)
            return false;
    const size_t length = lk_words_length(word);
    return length > 0 && word[length] == '\0';
}

static enum lk_status refuse_unknown(const struct lk_words *words, const struct lk_yaml *place,
                                     const char *word)
{
    char known[256] = "";
    size_t used = 0;
    const struct lk_yaml *entry = words->parameters ? words->parameters->first : NULL;
    for (; entry && used < sizeof known; entry = entry->next)
        used += (size_t)snprintf(known + used, sizeof known - used, "$%s, ", entry->key);
    return lk_yaml_fail(
        place, "unknown word '$%.60s'; there are %s$classes, $vocabulary, $channels, $number%s",
        word, known, words->name ? ", $name, $input" : "");
}

/* A word that is known everywhere: its text, or its number where it has none. */
static enum lk_status find_known(const struct lk_words *words, const struct lk_yaml *place,
                                 int word, const char **text, int64_t *number)
{
    switch (word) {
    case 0:
        *number = words->classes;
        return *number ? LK_OK
                       : lk_yaml_fail(place, "$classes stands here, but 'classes:' is missing");
    case 1:
        *number = words->channels;
        return *number ? LK_OK
                       : lk_yaml_fail(place, "$channels stands here, but nothing that has "
                                             "channels is read");
    case 2:
        *text = words->name;
        return *text ? LK_OK : lk_yaml_fail(place, "$name stands in blocks alone");
    case 3:
        *text = words->input;
        return *text ? LK_OK : lk_yaml_fail(place, "$input stands in blocks alone");
    case 5:
        *number = words->vocabulary;
        return *number ? LK_OK
                       : lk_yaml_fail(place,
                                      "$vocabulary stands here, but 'vocabulary:' is missing");
    default:
        *number = words->number;
        return *number ? LK_OK
                       : lk_yaml_fail(place, "$number stands in an entry with 'repeat:' alone");
    }
}

enum lk_status lk_words_find(const struct lk_words *words, const struct lk_yaml *place,
                             const char *word, char room[24], struct lk_yaml *value)
{
    const struct lk_yaml *parameter =
        words->parameters ? lk_yaml_find(words->parameters, word) : NULL;
    const char *text = NULL;
    int64_t number = 0;
    int i = 0;
    if (parameter) {
        *value = *parameter;
        return LK_OK;
    }
    while (i < LK_COUNT(known_everywhere) && strcmp(known_everywhere[i], word) != 0)
        i++;
    if (i == LK_COUNT(known_everywhere))
        return refuse_unknown(words, place, word);
    LK_TRY(find_known(words, place, i, &text, &number));
    snprintf(room, 24, "%lld", (long long)number);
    *value = (struct lk_yaml){.kind = LK_YAML_SCALAR, .text = text ? text : room};
    return LK_OK;
}

/* --- texts ----------------------------------------------------------------------------- */

/* Copies the word behind the dollar sign at *at, and moves *at behind it. */
static enum lk_status take_word(const struct lk_yaml *place, const char **at, char word[64])
{
    const size_t length = lk_words_length(*at + 1);
    if (length == 0 || length >= 64)
        return lk_yaml_fail(place, "'%.60s': a word, or arithmetic in ( ), expected behind '$'",
                            place->text);
    snprintf(word, 64, "%.*s", (int)length, *at + 1);
    *at += 1 + length;
    if (strchr("*+", **at) && **at)
        return lk_yaml_fail(place, "'%.60s': arithmetic stands in ( ), as in $(%s%s)",
                            place->text, word, **at == '*' ? "*2" : "+2");
    return LK_OK;
}

/* Writes what stands for the dollar sign at *at and its word. */
static enum lk_status replace_one(const struct lk_words *words, const struct lk_yaml *place,
                                  const char **at, char *text, size_t bytes)
{
    char word[64], room[24], found[80];
    struct lk_yaml value;
    int64_t number;
    int used;
    if ((*at)[1] == '(') {
        *at += 1;
        LK_TRY(lk_words_calculate(words, place, at, &number));
        used = snprintf(text, bytes, "%lld", (long long)number);
    } else {
        LK_TRY(take_word(place, at, word));
        LK_TRY(lk_words_find(words, place, word, room, &value));
        if (value.kind != LK_YAML_SCALAR)
            return lk_yaml_fail(place, "'%.60s': '$%s' is %s, no word that could be put there",
                                place->text, word, lk_yaml_found(&value, found, sizeof found));
        used = snprintf(text, bytes, "%s", value.text);
    }
    if (used < 0 || (size_t)used >= bytes)
        return lk_yaml_fail(place, "'%.60s' becomes too long", place->text);
    return LK_OK;
}

enum lk_status lk_words_text(const struct lk_words *words, const struct lk_yaml *value,
                             char *text, size_t bytes)
{
    size_t used = 0;
    for (const char *at = value->text; *at;) {
        if (used + 1 >= bytes)
            return lk_yaml_fail(value, "a value has at most %zu characters and no quotes",
                                bytes - 1);
        if (*at != '$') {
            text[used++] = *at++;
            continue;
        }
        LK_TRY(replace_one(words, value, &at, text + used, bytes - used));
        used += strlen(text + used);
    }
    text[used] = '\0';
    return LK_OK;
}

/* --- values ---------------------------------------------------------------------------- */

/* Finds what a value that is one word and no more stands for. */
static enum lk_status find_whole(struct lk_growth *growth, const struct lk_words *words,
                                 const struct lk_yaml *value, struct lk_yaml *found,
                                 bool *is_word)
{
    char word[64], room[24];
    const char *at = value->text;
    void *memory = NULL;
    const size_t length = at && *at == '$' ? lk_words_length(at + 1) : 0;
    *is_word = length > 0 && at[1 + length] == '\0';
    if (!*is_word)
        return LK_OK;
    LK_TRY(take_word(value, &at, word));
    LK_TRY(lk_words_find(words, value, word, room, found));
    if (found->text != room)
        return LK_OK;
    LK_TRY(lk_growth_take(growth, value, sizeof room, &memory));
    found->text = memcpy(memory, room, sizeof room);
    return LK_OK;
}

static enum lk_status replace_text(struct lk_growth *growth, const struct lk_words *words,
                                   const struct lk_yaml *value, struct lk_yaml *made)
{
    char text[MOST_TEXT];
    void *memory = NULL;
    LK_TRY(lk_words_text(words, value, text, sizeof text));
    const size_t bytes = strlen(text) + 1;
    LK_TRY(lk_growth_take(growth, value, bytes, &memory));
    made->text = memcpy(memory, text, bytes);
    return LK_OK;
}

/* words NULL: only copies. The copy's line is that of `place`, or the value's own if `place` is
 * NULL. */
static enum lk_status make(struct lk_growth *growth, const struct lk_words *words,
                           const struct lk_yaml *value, const struct lk_yaml *place,
                           struct lk_yaml **made)
{
    const struct lk_yaml *at = place ? place : value;
    struct lk_yaml found;
    void *memory = NULL;
    bool is_word = false;
    if (words && value->kind == LK_YAML_SCALAR)
        LK_TRY(find_whole(growth, words, value, &found, &is_word));
    if (is_word) {
        LK_TRY(make(growth, NULL, &found, at, made));
        (*made)->key = value->key;
        return LK_OK;
    }
    LK_TRY(lk_growth_take(growth, at, sizeof **made, &memory));
    struct lk_yaml *copy = *made = memory;
    *copy = *value;
    copy->first = copy->next = NULL;
    copy->where = at->where;
    copy->line = at->line;
    if (words && value->text && strchr(value->text, '$'))
        return replace_text(growth, words, value, copy);
    const struct lk_yaml **tail = &copy->first;
    for (const struct lk_yaml *entry = value->first; entry; entry = entry->next) {
        struct lk_yaml *item = NULL;
        LK_TRY(make(growth, words, entry, place, &item));
        *tail = item;
        tail = &item->next;
    }
    return LK_OK;
}

enum lk_status lk_words_replace(struct lk_growth *growth, const struct lk_words *words,
                                const struct lk_yaml *value, const struct lk_yaml **made)
{
    struct lk_yaml *copy = NULL;
    LK_TRY(make(growth, words, value, NULL, &copy));
    *made = copy;
    return LK_OK;
}
