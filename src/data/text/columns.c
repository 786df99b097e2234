/* Columns of texts, of which a table has a few in each row. */
#include "data/text/columns.h"

#include "base/fail.h"
#include <stdio.h>

enum lk_status lk_text_columns_begin(struct lk_text_columns *columns, int count,
                                     const struct lk_text_options *options,
                                     const struct lk_data_options *wanted)
{
    if (count > LK_MOST_FIELDS / 2)
        return lk_fail(LK_E_ARGUMENT, "%d columns of texts; at most %d are taken", count,
                       LK_MOST_FIELDS / 2);
    columns->count = count;
    columns->length = options->length > 0            ? options->length
                      : wanted && wanted->length > 0 ? wanted->length
                                                     : LK_TEXT_STANDARD_LENGTH;
    return lk_texts_begin(&columns->texts, options, wanted);
}

void lk_text_columns_describe(struct lk_text_columns *columns, int k, const char *name,
                              int length, struct lk_field *tokens, struct lk_field *number)
{
    snprintf(columns->names[k], sizeof columns->names[k], "%.128s.length", name);
    *tokens = (struct lk_field){.name = name,
                                .dtype = LK_I32,
                                .shape = {1, {columns->length}},
                                .length = length,
                                .classes = lk_vocabulary_size(&columns->texts.vocabulary)};
    *number = (struct lk_field){.name = columns->names[k], .dtype = LK_I32, .length = -1};
}

enum lk_status lk_text_columns_learn(struct lk_text_columns *columns, const int64_t *rows,
                                     const int64_t *indices, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        for (int k = 0; rows[indices[i]] >= 0 && k < columns->count; k++)
            LK_TRY(lk_texts_learn(&columns->texts, rows[indices[i]] * columns->count + k,
                                  INT64_MAX));
    return lk_texts_encode(&columns->texts);
}

void lk_text_columns_fill(const struct lk_text_columns *columns, const int32_t *found,
                          int64_t count, int32_t *tokens, int32_t *number)
{
    if (number)
        *number = (int32_t)(count < columns->length ? count : columns->length);
    if (tokens)
        (void)lk_vocabulary_fill(&columns->texts.vocabulary, found, count, columns->length,
                                 tokens);
}

void lk_text_columns_count(const struct lk_text_columns *columns, const int32_t *tokens,
                           int64_t count, struct lk_text_size *size)
{
    size->tokens += count;
    for (int64_t i = 0; i < count && columns->texts.vocabulary.unit != LK_UNIT_BYTE; i++)
        size->unknown += tokens[i] == LK_TOKEN_UNKNOWN;
}

void lk_text_columns_read(const struct lk_text_columns *columns, int64_t row, int k,
                          int32_t *tokens, int32_t *number)
{
    int64_t count = 0;
    const int32_t *found = lk_texts_tokens(&columns->texts, row * columns->count + k, &count);
    lk_text_columns_fill(columns, found, count, tokens, number);
}

void lk_text_columns_measure(const struct lk_text_columns *columns, int64_t row,
                             struct lk_text_size *size)
{
    *size = (struct lk_text_size){0};
    for (int k = 0; k < columns->count; k++) {
        int64_t count = 0;
        const int32_t *found =
            lk_texts_tokens(&columns->texts, row * columns->count + k, &count);
        lk_text_columns_count(columns, found, count, size);
    }
}
