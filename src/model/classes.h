/* Names of the classes that a model's outputs predict: taken from the data that it is trained
 * on, kept in its checkpoints as JSON, {"OUTPUT": ["NAME", ...]}, and found again in other data
 * by name. Floor 6. */
#ifndef LK_MODEL_CLASSES_H
#define LK_MODEL_CLASSES_H

#include "model/model.h"

/* The classes that an output tells apart; 0: it predicts no class. */
int64_t lk_output_classes(const struct lk_model_output *output);

/* Names the first `count` classes of an output; copied. Bytes that are no UTF-8 become "\xNN".
 * fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_output_name_classes(struct lk_model *model,
                                                    struct lk_model_output *output,
                                                    const char *const *names, int64_t count);

/* Whether the names are more than "0", "1", ..., as of data whose classes are numbers. */
bool lk_output_has_words(const struct lk_model_output *output);

/* The output's class of each name. Numbers are kept (is_matched: false) where the output has no
 * names, where the given ones are but numbers, and where the output's are and do not match.
 * fails: LK_E_DATA for a name that is none of the output's */
LK_MUST_CHECK enum lk_status lk_output_find_classes(const struct lk_model_output *output,
                                                    const char *const *names, int64_t count,
                                                    int32_t *numbers, bool *is_matched);

/* All names as text, which the caller frees; "" where no output has any. fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_model_print_classes(const struct lk_model *model, char **text);

/* Names the classes as such a text says. fails: LK_E_DATA where it is malformed or of another
 * model; LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_model_read_classes(struct lk_model *model, const char *text);

#endif
