/* Learning the vocabulary of a data set of texts while it is opened. Floor 4. Knows no
 * tokenizer.
 */
#ifndef LK_DATA_VOCABULARY_H
#define LK_DATA_VOCABULARY_H

#include "data/data.h"
#include "data/held_out.h"

/* Whether tokens of a vocabulary are asked for, and not just the bytes of lines. */
bool lk_data_wants_tokens(const char *text, const struct lk_data_options *wanted);

/* Holds samples out where `data` says so, and, of texts, learns their vocabulary from what is
 * left of the training part, unless there is one. */
LK_MUST_CHECK enum lk_status lk_data_learn(struct lk_data *data,
                                           const struct lk_data_request *request,
                                           struct lk_open_source *opened);

#endif
