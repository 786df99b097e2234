/* Which fields of a data set a model's inputs and targets are. Floor 8. */
#ifndef LK_TRAIN_EVALUATION_BINDING_H
#define LK_TRAIN_EVALUATION_BINDING_H

#include "model/model.h"
#include "team/stepper/feed.h"

/* Binds a model to fields by names: the input "image" to the field "image", the targets of the
 * output "mass" to the label "mass". One input that nothing is named after takes the only field
 * of its type, one output the only label.
 *   images   a field of bytes [h, w, c] of the model's size (or larger: batches crop)
 *   integers int32 of the same shape; classes no more than the output has
 *   numbers  float of as many elements, or int32 for a single one
 * targets[o]: the field of output o's targets, -1: it has no loss. fails: LK_E_SHAPE, naming
 * both sides and what is there. make_inputs: of the inputs alone */
LK_MUST_CHECK enum lk_status lk_binding_make_inputs(const struct lk_model *model,
                                                    const struct lk_data *data,
                                                    struct lk_feed *feed);
LK_MUST_CHECK enum lk_status lk_binding_make(const struct lk_model *model,
                                             const struct lk_data *data, struct lk_feed *feed,
                                             int targets[LK_MOST_OUTPUTS]);

#endif
