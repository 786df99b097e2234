/* What a model wants of images and texts, and how their values are prepared. Floor 8. */
#ifndef LK_TRAIN_EVALUATION_IMAGES_H
#define LK_TRAIN_EVALUATION_IMAGES_H

#include "data/stages/pipeline.h"
#include "model/model.h"
#include <lockstep/data.h>

/* The first input that takes images; NULL: there is none. */
const struct lk_node *lk_model_images(const struct lk_model *model);

/* The first input of tokens, i32 [length]; NULL: there is none. */
const struct lk_node *lk_model_tokens(const struct lk_model *model);

/* Images of the channels that the model takes, and of its size or what the pipeline resizes
 * to. */
struct lk_data_options lk_data_wanted(const struct lk_model *model,
                                      const struct lk_pipeline *pipeline);

/* What a device does to a model's images, and whether the pipeline crops to their size.
 * fails: LK_E_ARGUMENT */
LK_MUST_CHECK enum lk_status lk_model_transform(const struct lk_model *model,
                                                const struct lk_pipeline *pipeline,
                                                struct lk_transform *transform);

struct lk_foreign_weights;

/* Says as a warning if the pipeline plainly prepares images otherwise than they were prepared
 * for the weights, which `whose` names. */
void lk_model_warn_of_images(const struct lk_model *model, const struct lk_pipeline *pipeline,
                             const char *whose, const struct lk_foreign_weights *weights);

/* Lets images be normalized, and numbers standardized, as they were for the weights, as if that
 * had been typed, and says so, where nothing says how: neither the pipelines (`other` may be
 * NULL) nor the model's input have a normalization of their own. */
void lk_model_take_images(const struct lk_model *model, const char *whose,
                          const struct lk_foreign_weights *weights,
                          struct lk_pipeline *pipeline, struct lk_pipeline *other);

#endif
