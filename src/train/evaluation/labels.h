/* What an output of a model asks of the labels that it is compared with: classes by their
 * names, and values that its loss is defined for. Floor 8. Private to src/train/evaluation. */
#ifndef LK_TRAIN_EVALUATION_LABELS_H
#define LK_TRAIN_EVALUATION_LABELS_H

#include "model/model.h"
#include <lockstep/data.h>

/* How the field's classes are named and ordered beside those of the output. DIFFER: one of them
 * is unknown there, or one side has no names. fails: LK_E_MEMORY */
enum lk_class_order { LK_CLASSES_DIFFER, LK_CLASSES_IN_ORDER, LK_CLASSES_IN_OTHER_ORDER };
LK_MUST_CHECK enum lk_status lk_labels_compare(const struct lk_field *field,
                                               const struct lk_model_output *output,
                                               enum lk_class_order *order);

/* Gives the field's classes, where they have names, the numbers that the output has for these
 * names; where the output has none, all stay as they are.
 * fails: LK_E_DATA for a class that the output does not know */
LK_MUST_CHECK enum lk_status lk_labels_match(struct lk_data *data,
                                             const struct lk_model_output *output, int field);

/* Refuses values that the output's loss does not take: now where the data is at hand, else as
 * they are read. fails: LK_E_DATA naming the value and the sample */
LK_MUST_CHECK enum lk_status lk_labels_limit(struct lk_data *data,
                                             const struct lk_model_output *output, int field);

#endif
