/* Learns a vocabulary of byte pairs from files. */
#include "base/fail.h"
#include "data/text/file.h"
#include "data/text/learn.h"
#include "io/file.h"
#include <lockstep/text.h>
#include <stdlib.h>
#include <string.h>

static enum lk_status count_text(struct lk_word_set *pieces, const char *text, size_t bytes)
{
    const char *at = text, *piece;
    size_t length;
    while (lk_text_next(LK_UNIT_PAIRS, &at, text + bytes, &piece, &length))
        LK_TRY(lk_word_set_add(pieces, piece, length, 1));
    return LK_OK;
}

/* Each line is a text of its own, as it will be when it is read behind its label. */
static enum lk_status count_lines(struct lk_word_set *pieces, const char *text, size_t bytes)
{
    const char *at = text, *line;
    size_t length;
    while (lk_text_next_line(&at, text + bytes, &line, &length)) {
        const char *tab = memchr(line, '\t', length);
        const size_t label = tab ? (size_t)(tab - line) + 1 : 0;
        LK_TRY(count_text(pieces, line + label, length - label));
    }
    return LK_OK;
}

static enum lk_status count_file(struct lk_word_set *pieces, const char *path, bool is_lines,
                                 int64_t *bytes)
{
    static const size_t most = (size_t)1 << 30;
    void *data = NULL;
    size_t found = 0;
    LK_TRY(lk_file_read(path, most, &data, &found));
    const enum lk_status status = (is_lines ? count_lines : count_text)(pieces, data, found);
    free(data);
    *bytes += (int64_t)found;
    return status;
}

static enum lk_status write_vocabulary(struct lk_vocabulary *vocabulary, const char *output)
{
    char *text = NULL;
    LK_TRY(lk_vocabulary_print(vocabulary, &text));
    const enum lk_status status = lk_file_write(output, text, strlen(text));
    free(text);
    return status;
}

static enum lk_status learn(const struct lk_word_set *pieces,
                            const struct lk_tokenize_options *options, const char *output,
                            struct lk_tokenize_report *report)
{
    struct lk_vocabulary vocabulary = {.standard = LK_STANDARD_NONE};
    int32_t(*joins)[2] = NULL;
    int64_t count = 0;
    LK_TRY(lk_text_learn(pieces, options->vocabulary, options->min_count, &joins, &count,
                         &report->tokens));
    enum lk_status status = lk_vocabulary_take_joins(&vocabulary, joins, count);
    if (status == LK_OK)
        status = write_vocabulary(&vocabulary, output);
    report->vocabulary = lk_vocabulary_size(&vocabulary);
    report->pieces = pieces->count;
    lk_vocabulary_clear(&vocabulary);
    return status;
}

enum lk_status lk_tokenize(const char *const *files, int count,
                           const struct lk_tokenize_options *options, const char *output,
                           struct lk_tokenize_report *report)
{
    struct lk_word_set pieces = {0};
    struct lk_tokenize_report made = {0};
    enum lk_status status = LK_OK;
    if (options->vocabulary < LK_PAIRS_BYTES || options->vocabulary > LK_MOST_VOCABULARY)
        return lk_fail(LK_E_ARGUMENT, "a vocabulary of %lld tokens; %d to %d can be learned",
                       (long long)options->vocabulary, LK_PAIRS_BYTES, LK_MOST_VOCABULARY);
    if (!options->may_replace && lk_file_exists(output))
        return lk_fail(LK_E_ARGUMENT, "'%s' is there already", output);
    for (int i = 0; i < count && status == LK_OK; i++)
        status = count_file(&pieces, files[i], options->skips_labels, &made.bytes);
    if (status == LK_OK && pieces.count == 0)
        status = lk_fail(LK_E_ARGUMENT, "the files are empty: there is nothing to learn from");
    if (status == LK_OK)
        status = learn(&pieces, options, output, &made);
    lk_word_set_clear(&pieces);
    LK_TRY(status);
    *report = made;
    return LK_OK;
}
