/* Predictions of a model over a data set, and what they are worth. Floor 6. */
#ifndef LK_TRAIN_EVALUATOR_H
#define LK_TRAIN_EVALUATOR_H

#include "graph/replica.h"
#include <lockstep/data.h>
#include <lockstep/model.h>
#include <lockstep/train.h>

struct lk_evaluator;

/* Prepares, builds and allocates a replica for prediction in batches of up to `batch`. With
 * `weights_of` it uses that replica's weights and must go before it; else its own, not yet set.
 * `choices` outlive it; NULL: as a replica has it.
 * fails: LK_E_MODEL where the output is no vector, as lk_replica_create() */
LK_MUST_CHECK enum lk_status lk_evaluator_create(struct lk_device *device,
                                                 struct lk_model *model, int64_t batch,
                                                 struct lk_replica *weights_of,
                                                 struct lk_choices *choices,
                                                 struct lk_evaluator **evaluator);
void lk_evaluator_destroy(struct lk_evaluator *evaluator);

struct lk_replica *lk_evaluator_replica(struct lk_evaluator *evaluator);

/* Probabilities [count][classes] of uint8 images [count][h][w][c]; waits. */
LK_MUST_CHECK enum lk_status lk_evaluator_predict(struct lk_evaluator *evaluator, int64_t count,
                                                  const uint8_t *images, float *probabilities);

/* From now on calls beat(context) after each batch of a run. */
void lk_evaluator_watch(struct lk_evaluator *evaluator, void (*beat)(void *), void *context);

/* Loss (mean cross-entropy), accuracy and confusion over all samples of `data`; the result's
 * pointers live until the next call. fails: LK_E_SHAPE where the data does not fit the model */
LK_MUST_CHECK enum lk_status lk_evaluator_run(struct lk_evaluator *evaluator,
                                              const struct lk_data *data,
                                              struct lk_evaluation *result);

/* Images of the size and channels that the model takes. */
struct lk_data_options lk_data_wanted(const struct lk_model *model);

/* Whether data of that kind fits the model's input and classes. fails: LK_E_SHAPE, with both */
LK_MUST_CHECK enum lk_status lk_check_data(const struct lk_model *model,
                                           const struct lk_data *data);

#endif
