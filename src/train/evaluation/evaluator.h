/* Predictions of a model over a data set, and what they are worth. Floor 8. */
#ifndef LK_TRAIN_EVALUATION_EVALUATOR_H
#define LK_TRAIN_EVALUATION_EVALUATOR_H

#include "data/stages/pipeline.h"
#include "model/model.h"
#include "train/evaluation/binding.h"
#include <lockstep/train.h>
#include <stdatomic.h>

struct lk_evaluator;
struct lk_evaluated_features;

struct lk_evaluator_config {
    struct lk_device *device;
    struct lk_model *model;
    int64_t batch; /* most samples at a time */
    bool cuts;    /* fewer samples take less work: only the tiles that have some are computed */
    bool few_too; /* a second replica for up to LK_FEW_SAMPLES samples of arrays, where it is
                   * faster: weights are set once, before the first prediction */
    /* of images, nothing by chance; copied. NULL: as they are */
    const struct lk_transform *transform;
    const char *pipeline; /* of its samples, as batches take it, outlives it; NULL: none */
    struct lk_replica *weights_of; /* uses this one's and must go before it; NULL: its own */
    struct lk_choices *choices;    /* outlive it; NULL: as a replica has it */
    struct lk_evaluated_features *features; /* of the frozen part, which do not change while it
                                             * lives; NULL: the whole model is run each time */
};

/* Prepares, builds and allocates a replica for prediction; weights of its own are not yet set.
 * fails: as lk_replica_create(); LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_evaluator_create(const struct lk_evaluator_config *config,
                                                 struct lk_evaluator **evaluator);
void lk_evaluator_destroy(struct lk_evaluator *evaluator);

struct lk_replica *lk_evaluator_replica(struct lk_evaluator *evaluator);

/* Bytes on the device; *few: of these, of the second replica, 0 where there is none. */
size_t lk_evaluator_bytes(const struct lk_evaluator *evaluator, size_t *few);

/* Predictions [count][elements] of each output, in host order. inputs[i]: [count] samples of
 * the model's input i as struct lk_input has them; waits. */
LK_MUST_CHECK enum lk_status lk_evaluator_predict(struct lk_evaluator *evaluator, int64_t count,
                                                  const void *const *inputs,
                                                  float *const *outputs);

/* From now on calls beat(context) after each batch of a run. */
void lk_evaluator_watch(struct lk_evaluator *evaluator, void (*beat)(void *), void *context);

/* From now on a run ends with LK_E_INTERRUPTED before its next batch once *stop is true. */
void lk_evaluator_stop_at(struct lk_evaluator *evaluator, const atomic_bool *stop);

/* What several evaluators of one model have predicted of a data set, for one of them to judge.
 */
struct lk_predicted {
    int64_t count, batch; /* samples of the data; at a time */
    bool *is_there;       /* [batches] */
    float *outputs[LK_MOST_OUTPUTS];
    char *targets[LK_MOST_FIELDS];
    size_t output_bytes[LK_MOST_OUTPUTS], target_bytes[LK_MOST_FIELDS]; /* of a sample */
    struct lk_feed feed;                                                /* of all evaluators */
    int fields[LK_MOST_OUTPUTS];
};

/* Room for the predictions of `data`, empty. fails: LK_E_MEMORY: also where it takes more than
 * `most_bytes`; as lk_binding_make() */
LK_MUST_CHECK enum lk_status lk_predicted_init(struct lk_evaluator *evaluator,
                                               struct lk_data *data, size_t most_bytes,
                                               struct lk_predicted *predicted);
void lk_predicted_clear(struct lk_predicted *predicted);

/* Predicts batches first to end - 1, on a thread of each evaluator. All of them take as many
 * samples at a time. fails: as lk_evaluator_run(); what came before is there */
LK_MUST_CHECK enum lk_status lk_evaluator_predict_part(struct lk_evaluator *evaluator,
                                                       struct lk_data *data, int64_t first,
                                                       int64_t end,
                                                       struct lk_predicted *predicted);

/* Samples at a time. */
int64_t lk_evaluator_batch(const struct lk_evaluator *evaluator);

/* From now on runs take what is there from `predicted`; NULL: nothing. */
void lk_evaluator_take_predicted(struct lk_evaluator *evaluator,
                                 const struct lk_predicted *predicted);

/* Losses, metrics and confusion over all samples of `data`; the result's pointers live until
 * the next call. The data's classes get the model's numbers. fails: as lk_binding_make();
 * LK_E_MODEL where an output without `loss:` is no vector of class probabilities */
LK_MUST_CHECK enum lk_status lk_evaluator_run(struct lk_evaluator *evaluator,
                                              struct lk_data *data,
                                              struct lk_evaluation *result);

/* Calls visit() for each sample of `data` in its order, with predictions of all outputs, but
 * for broken ones; ends where it does not return LK_OK. Labels are not read. fails: LK_E_SHAPE
 */
LK_MUST_CHECK enum lk_status lk_evaluator_each(
    struct lk_evaluator *evaluator, struct lk_data *data, void *context,
    enum lk_status (*visit)(void *context, int64_t sample, const float *const *outputs));

#endif
