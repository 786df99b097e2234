/* A set of words, any bytes, each with its number and how often it was seen. Floor 4. */
#ifndef LK_DATA_TEXT_WORD_SET_H
#define LK_DATA_TEXT_WORD_SET_H

#include "base/arena.h"
#include <stdint.h>

struct lk_word {
    const char *bytes; /* [length], then '\0' */
    uint32_t length;
    int64_t count; /* how often it was seen */
};

/* {0} is empty. */
struct lk_word_set {
    struct lk_arena arena;
    struct lk_word *items; /* [count] by number */
    int64_t count, room;
    int64_t *slots; /* [slot_count] numbers + 1, by hash; 0: free */
    int64_t slot_count;
};

/* Adds `times` to the count of a word, which gets the next number where it is new.
 * fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_word_set_add(struct lk_word_set *set, const char *bytes,
                                             size_t length, int64_t times);

/* The number of a word; -1: it is not there. */
int64_t lk_word_set_find(const struct lk_word_set *set, const char *bytes, size_t length);

/* The order of bytes; a word comes before those that begin with it. */
int lk_word_compare(const struct lk_word *a, const struct lk_word *b);

/* Numbers anew the `most` words that are seen most often, at least `least` times each, and
 * forgets the others. Of words seen as often the later one in the order of bytes comes first,
 * as in Keras's TextVectorization. */
void lk_word_set_rank(struct lk_word_set *set, int64_t most, int64_t least);

void lk_word_set_clear(struct lk_word_set *set);

#endif
