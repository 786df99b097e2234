/* Columns of a table that are texts: their tokens, and how many these are. Floor 4. Knows no
 * table. */
#ifndef LK_DATA_TEXT_COLUMNS_H
#define LK_DATA_TEXT_COLUMNS_H

#include "data/text/texts.h"

/* {0} has none. */
struct lk_text_columns {
    struct lk_texts texts; /* row by row, `count` of each */
    int count;
    int64_t length;                      /* tokens of a field */
    char names[LK_MOST_FIELDS / 2][140]; /* of the fields that hold lengths */
};

/* Prepares `count` columns. fails: LK_E_ARGUMENT too many; as lk_texts_begin() */
LK_MUST_CHECK enum lk_status lk_text_columns_begin(struct lk_text_columns *columns, int count,
                                                   const struct lk_text_options *options,
                                                   const struct lk_data_options *wanted);

/* Makes the two fields of column k: its tokens, and their number, which is field `length`. */
void lk_text_columns_describe(struct lk_text_columns *columns, int k, const char *name,
                              int length, struct lk_field *tokens, struct lk_field *number);

/* Learns from those rows unless there is a vocabulary; below 0: a row that is broken. Encodes
 * all. */
LK_MUST_CHECK enum lk_status lk_text_columns_learn(struct lk_text_columns *columns,
                                                   const int64_t *rows, const int64_t *indices,
                                                   int64_t count);

/* Writes tokens and their number of column k; NULL: not wanted. */
void lk_text_columns_read(const struct lk_text_columns *columns, int64_t row, int k,
                          int32_t *tokens, int32_t *number);

/* The same of any tokens: of a stretch of one long text. */
void lk_text_columns_fill(const struct lk_text_columns *columns, const int32_t *found,
                          int64_t count, int32_t *tokens, int32_t *number);

/* Adds to a size that many tokens, and those among them that are unknown. */
void lk_text_columns_count(const struct lk_text_columns *columns, const int32_t *tokens,
                           int64_t count, struct lk_text_size *size);

/* Tokens of all columns of a row. */
void lk_text_columns_measure(const struct lk_text_columns *columns, int64_t row,
                             struct lk_text_size *size);

#endif
