/* Words with a dollar sign in the entries of a model's layers, and what they stand for. Knows
 * no block and no operation. Floor 6.
 *
 * $filters is a parameter of the block that is being laid out, $( ) whole-number arithmetic
 * over such words: "$(4*filters)", "$(number > 1)". So words.c and arithmetic.c call each
 * other. */
#ifndef LK_MODEL_TEXT_WORDS_H
#define LK_MODEL_TEXT_WORDS_H

#include "base/arena.h"
#include "model/yaml/yaml.h"
#include <stdint.h>

/* The values of words where they stand. NULL and 0: there is none, and using it is refused. */
struct lk_words {
    const struct lk_yaml *parameters; /* a map */
    const char *name, *input;  /* of the entry that uses the block; what that one reads */
    int64_t classes, channels; /* of the model; of what the entry reads */
    int64_t vocabulary;        /* of the texts that the model reads */
    int64_t number;            /* of the repetition, from 1 */
};

/* Memory for copies of values that are made while a text is read. Their bytes are counted
 * before they are made, since blocks and repetitions let a short text ask for very many. {0} is
 * empty.
 */
struct lk_growth {
    struct lk_arena arena;
    size_t bytes;
};

enum { LK_MOST_GROWTH = 32 << 20 }; /* bytes */

/* Memory that lives as long as the growth. fails: LK_E_MODEL at `place` when there is too much,
 * LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_growth_take(struct lk_growth *growth,
                                            const struct lk_yaml *place, size_t bytes,
                                            void **memory);

/* A copy of a value in which all words are replaced; a value that is one word becomes what this
 * stands for, a list too. fails: LK_E_MODEL with the line */
LK_MUST_CHECK enum lk_status lk_words_replace(struct lk_growth *growth,
                                              const struct lk_words *words,
                                              const struct lk_yaml *value,
                                              const struct lk_yaml **made);

/* Writes the text of a scalar with all words replaced. fails: LK_E_MODEL with the line, also
 * where the text does not fit */
LK_MUST_CHECK enum lk_status lk_words_text(const struct lk_words *words,
                                           const struct lk_yaml *value, char *text,
                                           size_t bytes);

/* Letters and digits, a letter first, and no word that is known everywhere. */
bool lk_words_is_free(const char *word);

/* The value of a word (without its dollar sign) at `place`: `value` points into the words, or
 * to `room`. fails: LK_E_MODEL naming the words that there are */
LK_MUST_CHECK enum lk_status lk_words_find(const struct lk_words *words,
                                           const struct lk_yaml *place, const char *word,
                                           char room[24], struct lk_yaml *value);

/* Bytes of the letters and digits of a word at the start of `text`; 0: there is none. */
size_t lk_words_length(const char *text);

/* Calculates what stands between "(" and its ")", at which *text points, and moves *text behind
 * it. A comparison gives 1 or 0. fails: LK_E_MODEL: no number, beyond 32 bits, a remainder */
LK_MUST_CHECK enum lk_status lk_words_calculate(const struct lk_words *words,
                                                const struct lk_yaml *place, const char **text,
                                                int64_t *result);

#endif
