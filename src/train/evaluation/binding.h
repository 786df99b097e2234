/* Which fields of a data set a model's inputs and targets are. Floor 8. */
#ifndef LK_TRAIN_EVALUATION_BINDING_H
#define LK_TRAIN_EVALUATION_BINDING_H

#include "model/model.h"
#include "team/stepper/feed.h"

/* Binds a model's inputs to fields by names: "image" to the field "image". One input that
 * nothing is named after takes the only field of its type.
 *   images   a field of bytes [h, w, c] of the model's size (or larger: batches crop)
 *   integers int32 of the same shape; tokens within the model's vocabulary and the
 *            tables from which they take rows
 *   numbers  float of as many elements, or int32 for a single one
 * fails: LK_E_SHAPE, naming both sides and what is there; LK_E_DATA a token beyond the
 * vocabulary or a table */
LK_MUST_CHECK enum lk_status lk_binding_make_inputs(const struct lk_model *model,
                                                    struct lk_data *data, struct lk_feed *feed);

/* Of inputs and targets: those of the output "mass" are the label "mass", those of the only
 * output the only label. Classes of the data get the numbers that the model has for their
 * names; from then on values that a loss does not take are refused. targets[o]: the field of
 * output o's targets, -1: it has no loss. fails: LK_E_SHAPE too where there are more classes
 * than the output has; LK_E_DATA for a class or a value that the model does not take */
LK_MUST_CHECK enum lk_status lk_binding_make(const struct lk_model *model, struct lk_data *data,
                                             struct lk_feed *feed,
                                             int targets[LK_MOST_OUTPUTS]);

/* Of names of classes that a model has from the run whose weights it begins with: forgets those
 * of an output where the data has others, or none; says so, and where the data lists them in
 * another order. fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status
lk_binding_keep_classes(struct lk_model *model, const struct lk_data *data, const char *whose);

/* Gives outputs whose classes have no names those of the data that they are trained on. */
LK_MUST_CHECK enum lk_status lk_binding_take_classes(struct lk_model *model,
                                                     const struct lk_data *data,
                                                     const int targets[LK_MOST_OUTPUTS]);

#endif
