/* Whether images reach a model as its weights want them. Floor 8. */
#ifndef LK_TRAIN_EVALUATION_IMAGES_H
#define LK_TRAIN_EVALUATION_IMAGES_H

#include "data/stages/pipeline.h"
#include "model/foreign/weights.h"

/* Warns where images reach the model plainly otherwise than they did when its weights, those of
 * the file `whose`, were trained, as far as that is known. */
void lk_images_compare(const struct lk_model *model, const struct lk_foreign_weights *weights,
                       const char *whose, const struct lk_pipeline *pipeline);

#endif
