/* Keeps the texts of a data set while their vocabulary is learned, then their tokens. */
#include "data/text/texts.h"

#include "base/fail.h"
#include "base/utf8.h"
#include "data/text/file.h"
#include "data/text/unicode.h"
#include <stdlib.h>
#include <string.h>

const char *const lk_text_sides[] = {"end", "start", NULL};

/* --- options ----------------------------------------------------------------------------- */

/* A file that the SPEC names beside a vocabulary that is given must be the same. */
static enum lk_status compare(const struct lk_vocabulary *given, const char *path)
{
    struct lk_vocabulary other = {
        .unit = given->unit, .standard = given->standard, .cuts_start = given->cuts_start};
    char what[256];
    enum lk_status status = lk_vocabulary_read(&other, path);
    if (status == LK_OK && !lk_vocabulary_same(given, &other, what))
        status = lk_fail(LK_E_ARGUMENT, "vocabulary '%s' is another one than the run's: %s",
                         path, what);
    lk_vocabulary_clear(&other);
    return status;
}

/* The option vocabulary=: a number, or a file. */
static enum lk_status take_vocabulary(struct lk_texts *texts, const char *given,
                                      const char *kept)
{
    struct lk_vocabulary *v = &texts->vocabulary;
    char *end;
    const bool is_number = *given && !given[strspn(given, "0123456789")];
    texts->most = LK_MOST_VOCABULARY;
    if (is_number)
        texts->most = strtoll(given, &end, 10);
    if (texts->most <= LK_TOKEN_FIRST || texts->most > LK_MOST_VOCABULARY)
        return lk_fail(LK_E_ARGUMENT, "vocabulary=%s: 3 to %d tokens", given,
                       LK_MOST_VOCABULARY);
    if (!kept || !*kept)
        return *given && !is_number ? lk_vocabulary_read(v, given) : LK_OK;
    LK_TRY(lk_vocabulary_parse(v, kept, strlen(kept), "the run"));
    if (is_number && lk_vocabulary_size(v) > texts->most)
        return lk_fail(LK_E_ARGUMENT,
                       "the run's vocabulary has %lld tokens, vocabulary=%s is asked for",
                       (long long)lk_vocabulary_size(v), given);
    return *given && !is_number ? compare(v, given) : LK_OK;
}

enum lk_status lk_texts_begin(struct lk_texts *texts, const struct lk_text_options *options,
                              const struct lk_data_options *wanted)
{
    struct lk_vocabulary *v = &texts->vocabulary;
    if (options->pad != 0)
        return lk_fail(LK_E_ARGUMENT,
                       "pad=start: padding stands behind a text, so that its length says where "
                       "the text ends; truncate=start keeps the end of a long one");
    v->unit = (enum lk_text_unit)options->unit;
    v->standard = (enum lk_text_standard)options->standardize;
    v->cuts_start = options->truncate != 0;
    texts->least = options->min_count;
    LK_TRY(take_vocabulary(texts, options->vocabulary, wanted ? wanted->vocabulary : NULL));
    if (v->unit == LK_UNIT_AUTO)
        v->unit = wanted && wanted->words ? LK_UNIT_WORD : LK_UNIT_BYTE;
    if (v->standard == LK_STANDARD_AUTO)
        v->standard = v->unit == LK_UNIT_WORD ? LK_STANDARD_LOWER_AND_STRIP : LK_STANDARD_NONE;
    if (v->unit == LK_UNIT_BYTE)
        v->is_there = true;
    if (v->unit == LK_UNIT_PAIRS && !v->is_there)
        return lk_fail(LK_E_ARGUMENT,
                       "unit=pairs needs vocabulary=FILE, which 'lockstep tokenize' learns");
    return LK_OK;
}

/* --- texts ------------------------------------------------------------------------------- */

static enum lk_status check(const char *text, size_t bytes, bool is_long)
{
    uint32_t code;
    size_t blanks = 0;
    if (!is_long && bytes > LK_TEXT_MOST_BYTES)
        return lk_fail(LK_E_DATA, "a text of %zu bytes; at most %d are taken", bytes,
                       LK_TEXT_MOST_BYTES);
    const char *zero = memchr(text, '\0', bytes);
    if (zero)
        return lk_fail(LK_E_DATA, "byte %zu of the text is zero", (size_t)(zero - text));
    for (int length; blanks < bytes; blanks += (size_t)length) {
        length = lk_utf8_read(text + blanks, bytes - blanks, &code);
        if (length == 0 || !lk_unicode_is_space(code))
            return LK_OK;
    }
    return lk_fail(LK_E_DATA, "an empty text");
}

static enum lk_status make_room(struct lk_texts *texts)
{
    struct lk_text_room *all = &texts->bytes;
    const size_t bytes = texts->standardized.used;
    if (texts->count == texts->room) {
        const int64_t room = texts->room ? 2 * texts->room : 1024;
        size_t *ends = realloc(texts->ends, (size_t)room * sizeof *ends);
        if (!ends)
            return lk_fail_memory("texts", (size_t)room * sizeof *ends);
        texts->ends = ends;
        texts->room = room;
    }
    if (all->room - all->used <= bytes) {
        const size_t room = 2 * all->room + bytes + 1;
        char *grown = realloc(all->bytes, room);
        if (!grown)
            return lk_fail_memory("texts", room);
        all->bytes = grown;
        all->room = room;
    }
    return LK_OK;
}

enum lk_status lk_texts_add(struct lk_texts *texts, const char *text, size_t bytes,
                            bool is_long)
{
    const struct lk_vocabulary *v = &texts->vocabulary;
    LK_TRY(check(text, bytes, is_long));
    LK_TRY(lk_text_standardize(v->unit, v->standard, text, bytes, &texts->standardized));
    LK_TRY(make_room(texts));
    memcpy(texts->bytes.bytes + texts->bytes.used, texts->standardized.bytes,
           texts->standardized.used);
    texts->bytes.used += texts->standardized.used;
    texts->ends[texts->count++] = texts->bytes.used;
    return LK_OK;
}

void lk_texts_shorten(struct lk_texts *texts, int64_t count)
{
    texts->count = count;
    texts->bytes.used = count > 0 ? texts->ends[count - 1] : 0;
}

static const char *text_of(const struct lk_texts *texts, int64_t index, const char **end)
{
    *end = texts->bytes.bytes + texts->ends[index];
    return texts->bytes.bytes + (index > 0 ? texts->ends[index - 1] : 0);
}

int64_t lk_texts_measure(const struct lk_texts *texts, int64_t index)
{
    const char *end, *piece;
    size_t length;
    int64_t count = 0;
    if (texts->token_ends) {
        (void)lk_texts_tokens(texts, index, &count);
        return count;
    }
    for (const char *at = text_of(texts, index, &end);
         lk_text_next(texts->vocabulary.unit, &at, end, &piece, &length);)
        count++;
    return count;
}

enum lk_status lk_texts_learn(struct lk_texts *texts, int64_t index, int64_t most)
{
    const char *end, *piece;
    size_t length;
    if (texts->vocabulary.is_there)
        return LK_OK;
    const char *at = text_of(texts, index, &end);
    for (int64_t i = 0;
         i < most && lk_text_next(texts->vocabulary.unit, &at, end, &piece, &length); i++)
        LK_TRY(lk_word_set_add(&texts->counts, piece, length, 1));
    return LK_OK;
}

enum lk_status lk_texts_encode(struct lk_texts *texts)
{
    struct lk_vocabulary *v = &texts->vocabulary;
    if (texts->token_ends)
        return LK_OK;
    if (!v->is_there) {
        lk_vocabulary_take_words(v, &texts->counts, texts->most, texts->least);
        if (v->words.count == 0)
            return lk_fail(LK_E_DATA, "no %s is there %lld times, so there is no vocabulary",
                           lk_text_units[v->unit], (long long)texts->least);
    }
    texts->token_ends = calloc((size_t)texts->count + 1, sizeof *texts->token_ends);
    if (!texts->token_ends)
        return lk_fail_memory("tokens", (size_t)texts->count * sizeof *texts->token_ends);
    for (int64_t i = 0; i < texts->count; i++) {
        const char *end, *text = text_of(texts, i, &end);
        LK_TRY(lk_vocabulary_encode(v, text, (size_t)(end - text), &texts->tokens));
        texts->token_ends[i] = texts->tokens.count;
    }
    free(texts->bytes.bytes);
    free(texts->ends);
    texts->bytes = (struct lk_text_room){0};
    texts->ends = NULL;
    texts->room = 0;
    return LK_OK;
}

const int32_t *lk_texts_tokens(const struct lk_texts *texts, int64_t index, int64_t *count)
{
    const int64_t first = index > 0 ? texts->token_ends[index - 1] : 0;
    *count = texts->token_ends[index] - first;
    return texts->tokens.items + first;
}

void lk_texts_forget(struct lk_texts *texts)
{
    lk_word_set_clear(&texts->counts);
    free(texts->standardized.bytes);
    free(texts->bytes.bytes);
    free(texts->ends);
    free(texts->tokens.items);
    free(texts->token_ends);
    *texts = (struct lk_texts){
        .vocabulary = texts->vocabulary, .most = texts->most, .least = texts->least};
}

void lk_texts_clear(struct lk_texts *texts)
{
    lk_texts_forget(texts);
    lk_vocabulary_clear(&texts->vocabulary);
}
