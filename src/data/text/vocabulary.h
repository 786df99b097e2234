/* A vocabulary: which number stands for which piece of a text. Floor 4. Knows no file.
 *
 * 0 is padding and 1 the unknown piece, as in Keras's TextVectorization; words and characters
 * count from 2. Of bytes it is the byte itself, of which none is 0. Of pairs 2 + b is byte b,
 * and from 258 on each number stands for two others, joined. */
#ifndef LK_DATA_TEXT_VOCABULARY_H
#define LK_DATA_TEXT_VOCABULARY_H

#include "data/text/pieces.h"
#include "data/text/word_set.h"
#include <stdint.h>

enum { LK_TOKEN_PADDING, LK_TOKEN_UNKNOWN, LK_TOKEN_FIRST };
enum { LK_PAIRS_BYTES = LK_TOKEN_FIRST + 256, LK_MOST_VOCABULARY = 1 << 20 };

/* {0}: none. */
struct lk_vocabulary {
    enum lk_text_unit unit;         /* not AUTO once it is there */
    enum lk_text_standard standard; /* likewise */
    bool cuts_start;                /* of a text that is too long the end is kept */
    bool is_there;
    struct lk_word_set words; /* of chars and words: number i is token 2 + i */
    int32_t (*joins)[2];      /* [join_count] of pairs: token 258 + i is these two */
    int64_t join_count;
    int64_t *slots; /* [slot_count] joins + 1, by hash of the two; 0: free */
    int64_t slot_count;
};

/* Numbers of tokens, as many as there are. {0} is empty; free(items). */
struct lk_tokens {
    int32_t *items;
    int64_t count, room;
};

/* How many numbers there are, padding and unknown included. */
int64_t lk_vocabulary_size(const struct lk_vocabulary *vocabulary);

/* Makes one of the pieces that were counted in `words`, which it takes over: the most frequent
 * ones, `most` numbers in all. `unit` and `standard` are set. */
void lk_vocabulary_take_words(struct lk_vocabulary *vocabulary, struct lk_word_set *words,
                              int64_t most, int64_t least);

/* Makes one of joins, which it takes over (malloc). Each is of numbers below its own.
 * fails: LK_E_DATA a join that is not, or is there twice; LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_vocabulary_take_joins(struct lk_vocabulary *vocabulary,
                                                      int32_t (*joins)[2], int64_t count);

/* Appends the numbers of a text that was standardized. fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_vocabulary_encode(const struct lk_vocabulary *vocabulary,
                                                  const char *text, size_t bytes,
                                                  struct lk_tokens *tokens);

/* Appends the bytes that a token stands for; of words with a blank behind what is there
 * already; of padding none. fails: LK_E_DATA a number that is none of its own; LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_vocabulary_decode(const struct lk_vocabulary *vocabulary,
                                                  int32_t token, struct lk_text_room *text);

/* Writes `length` numbers: as many of count tokens as fit, then padding. Returns how many. */
int64_t lk_vocabulary_fill(const struct lk_vocabulary *vocabulary, const int32_t *tokens,
                           int64_t count, int64_t length, int32_t *to);

/* fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_tokens_add(struct lk_tokens *tokens, int32_t token);

void lk_vocabulary_clear(struct lk_vocabulary *vocabulary);

#endif
