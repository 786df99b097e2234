/* Learning which pairs of bytes stand for what is frequent. Floor 4. Knows no file.
 * source: Sennrich, Haddow, Birch, arXiv:1508.07909 */
#ifndef LK_DATA_TEXT_LEARN_H
#define LK_DATA_TEXT_LEARN_H

#include "data/text/vocabulary.h"

/* Learns joins from pieces with their counts: again and again the two neighbours that stand
 * side by side most often become one token, of those as frequent the ones with the lower
 * numbers, the left one first. Ends with `size` tokens, or where none are there `least` times
 * (2 or more). The caller frees *joins, [*count]. `tokens`: of all pieces, with these joins.
 * fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_text_learn(const struct lk_word_set *pieces, int64_t size,
                                           int64_t least, int32_t (**joins)[2], int64_t *count,
                                           int64_t *tokens);

#endif
