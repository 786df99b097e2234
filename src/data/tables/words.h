/* The words that labels are, each once, with its number. Floor 4. Knows no table. */
#ifndef LK_DATA_TABLES_WORDS_H
#define LK_DATA_TABLES_WORDS_H

#include "data/sources/names.h"

/* {0} is empty. */
struct lk_class_words {
    struct lk_names names; /* by number */
    int *slots;            /* [slot_count] numbers + 1, by hash; 0: free */
    int slot_count;
};

/* Adds a word with the next number unless it is there.
 * fails: LK_E_DATA more than LK_MOST_CLASSES; LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_class_words_add(struct lk_class_words *words, const char *word);

/* Numbers them anew in the order of their bytes. */
void lk_class_words_sort(struct lk_class_words *words);

/* Adds those of a file, a line each, in its order. fails: as lk_names_read() */
LK_MUST_CHECK enum lk_status lk_class_words_read(struct lk_class_words *words,
                                                 const char *path);

/* The number of a word; -1: it is none of them. */
int lk_class_words_find(const struct lk_class_words *words, const char *word);

void lk_class_words_clear(struct lk_class_words *words);

#endif
