/* The texts of a data set: standardized as they come in, turned into tokens once there is a
 * vocabulary. Floor 4. Knows no sample. */
#ifndef LK_DATA_TEXT_TEXTS_H
#define LK_DATA_TEXT_TEXTS_H

#include "base/option.h"
#include "data/text/vocabulary.h"
#include <lockstep/data.h>

/* What stands behind the commas of a SPEC. */
struct lk_text_options {
    int unit, standardize, truncate, pad;
    char vocabulary[512]; /* how many tokens it has, or a file; "": all words */
    int64_t min_count, length;
};

enum {
    LK_TEXT_STANDARD_LENGTH = 128,
    LK_TEXT_MOST_LENGTH = 1 << 20,
    LK_TEXT_MOST_BYTES = 1 << 20
};
extern const char *const lk_text_sides[];

/* Rows of an option table over `struct type`, which has these options as `text`. */
#define LK_TEXT_OPTION(type, field) .name = #field, .offset = offsetof(struct type, text.field)
#define LK_TEXT_CHOICE(type, field, names, standard_)                                          \
    LK_TEXT_OPTION(type, field), .kind = LK_OPTION_CHOICE, .choices = names,                   \
                                 .standard = (standard_)
#define LK_TEXT_ROWS(type)                                                                     \
    {LK_TEXT_CHOICE(type, unit, lk_text_units, "auto"), .help = "what a token stands for"},    \
        {LK_TEXT_CHOICE(type, standardize, lk_text_standards, "auto"),                         \
         .help = "what is done to a text first, as in Keras's TextVectorization"},             \
        {LK_TEXT_CHOICE(type, truncate, lk_text_sides, "end"),                                 \
         .help = "where texts that are too long are cut"},                                     \
        {LK_TEXT_CHOICE(type, pad, lk_text_sides, "end"),                                      \
         .help = "where texts that are too short get padding: the end"},                       \
        {LK_TEXT_OPTION(type, vocabulary), .kind = LK_OPTION_TEXT,                             \
         .count = sizeof((struct lk_text_options *)0)->vocabulary, .standard = "",             \
         .help = "its size, padding and unknown included, or a file"},                         \
        {LK_TEXT_OPTION(type, min_count),                                                      \
         .kind = LK_OPTION_INT,                                                                \
         .min = 1,                                                                             \
         .max = 1e15,                                                                          \
         .standard = "1",                                                                      \
         .help = "how often a word stands in the training part to be known"},                  \
    {                                                                                          \
        LK_TEXT_OPTION(type, length),                                                          \
            .kind = LK_OPTION_INT, .max = LK_TEXT_MOST_LENGTH, .standard = "0",                \
            .help = "tokens of a sample; 0: as the model takes, or 128"                        \
    }

/* {0} is empty. */
struct lk_texts {
    struct lk_vocabulary vocabulary;
    int64_t most, least; /* of the vocabulary that is learned */
    struct lk_word_set counts;
    struct lk_text_room standardized, bytes; /* of one text; of all until they are tokens */
    size_t *ends;                            /* [count] in `bytes` */
    struct lk_tokens tokens;
    int64_t *token_ends; /* [count] in `tokens` */
    int64_t count, room;
};

/* Takes the options: reads the vocabulary that is wanted (`wanted` may be NULL), or of the
 * option's file. fails: LK_E_ARGUMENT; as lk_vocabulary_read() */
LK_MUST_CHECK enum lk_status lk_texts_begin(struct lk_texts *texts,
                                            const struct lk_text_options *options,
                                            const struct lk_data_options *wanted);

/* Adds a text. fails: LK_E_DATA it is empty, too long (unless `is_long`), has a zero byte or is
 * no UTF-8: then nothing is added; LK_E_UNSUPPORTED; LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_texts_add(struct lk_texts *texts, const char *text,
                                          size_t bytes, bool is_long);

/* Forgets all texts behind the first `count`, while none is encoded. */
void lk_texts_shorten(struct lk_texts *texts, int64_t count);

/* How many tokens a text has; of unit pairs once they are encoded. */
int64_t lk_texts_measure(const struct lk_texts *texts, int64_t index);

/* Counts the first `most` pieces of a text for the vocabulary, unless there is one.
 * fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_texts_learn(struct lk_texts *texts, int64_t index,
                                            int64_t most);

/* Makes the vocabulary of what was counted, unless there is one, and encodes all texts.
 * fails: LK_E_DATA nothing was counted; LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_texts_encode(struct lk_texts *texts);

/* The tokens of a text, all of them. */
const int32_t *lk_texts_tokens(const struct lk_texts *texts, int64_t index, int64_t *count);

/* Forgets all texts, and keeps the vocabulary. */
void lk_texts_forget(struct lk_texts *texts);
void lk_texts_clear(struct lk_texts *texts);

#endif
