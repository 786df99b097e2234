/* Vocabularies as text: JSON, as files and checkpoints keep them, or a word a line. Floor 4. */
#ifndef LK_DATA_TEXT_FILE_H
#define LK_DATA_TEXT_FILE_H

#include "data/text/vocabulary.h"

/* {"unit": "word", "standardize": "...", "truncate": "end", "words": [...]}; of pairs "joins":
 * [[left, right], ...]. The caller frees it. fails: LK_E_DATA more than 8 MiB; LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_vocabulary_print(const struct lk_vocabulary *vocabulary,
                                                 char **text);

/* Reads such a text. A unit and a standard that `vocabulary` has already must be the text's,
 * while AUTO takes what is there. `where` names it in messages.
 * fails: LK_E_DATA malformed; LK_E_ARGUMENT another unit or standard; LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_vocabulary_parse(struct lk_vocabulary *vocabulary,
                                                 const char *text, size_t bytes,
                                                 const char *where);

/* As lk_vocabulary_parse() of a file, which may be lines of words too, the first being token 2;
 * an empty first line and "[UNK]" in the second, as Keras lists them, stand for 0 and 1.
 * fails: LK_E_IO too */
LK_MUST_CHECK enum lk_status lk_vocabulary_read(struct lk_vocabulary *vocabulary,
                                                const char *path);

/* Whether two of them are the same; else what differs first, in `what`. */
bool lk_vocabulary_same(const struct lk_vocabulary *a, const struct lk_vocabulary *b,
                        char what[256]);

#endif
