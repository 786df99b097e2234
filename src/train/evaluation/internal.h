/* The inside of an evaluator, for the files that make it up. Floor 8. Private to
 * src/train/evaluation. */
#ifndef LK_TRAIN_EVALUATION_INTERNAL_H
#define LK_TRAIN_EVALUATION_INTERNAL_H

#include "graph/place/group.h"
#include "train/evaluation/evaluator.h"

/* One output of the model. */
struct lk_judged {
    struct lk_model_output *output;
    int64_t elements;       /* of a sample's prediction */
    float *predictions;     /* [batch][elements] */
    struct lk_metric *loss; /* NULL: not trained, so not judged */
    struct lk_metric *metrics[LK_MOST_METRICS];
    float *converted; /* [batch]: targets that are integers in the data */
    int field;        /* of its targets in the data at work; -1: none */
    struct lk_figure figures[LK_MOST_METRICS];
};

enum { LK_MOST_MISTAKES = 24 };

struct lk_evaluator {
    struct lk_model *model;
    struct lk_replica *replica, *frozen;    /* frozen: NULL, or see features.h: */
    struct lk_evaluated_features *features; /* then `replica` is of the head; NULL */
    struct lk_replica *few; /* for up to LK_FEW_SAMPLES, with the weights of `replica`; NULL */
    struct lk_group *group; /* owns `replica` and those of other places; NULL: one device */
    int64_t batch;
    const char *pipeline;
    struct lk_judged judged[LK_MOST_OUTPUTS];
    struct lk_output_evaluation found[LK_MOST_OUTPUTS];
    int of_classes;     /* the first output that predicts one class a sample; -1: none */
    int64_t *confusion; /* [classes][classes] of it */
    struct lk_mistake mistakes[LK_MOST_MISTAKES]; /* the worst, in their order */
    int mistake_count;
    struct lk_feed feed;
    void *targets[LK_MOST_FIELDS]; /* of the batch at work */
    struct lk_batches *batches;
    void (*beat)(void *); /* NULL: nobody watches */
    void *watcher;
    const atomic_bool *stop;              /* NULL: none */
    const struct lk_predicted *predicted; /* by others; NULL: nothing */
};

/* Calls `use` for each batch of the data, once it is predicted: samples first to
 * first + count - 1. The feed is bound before. fails: as reading, predicting and `use` do */
LK_MUST_CHECK enum lk_status
lk_evaluator_for_batches(struct lk_evaluator *evaluator, const struct lk_data *data,
                         void *context,
                         enum lk_status (*use)(struct lk_evaluator *evaluator, void *context,
                                               int64_t first, int64_t count));

/* Binds the data's fields to the model and makes room for the targets of a batch. */
LK_MUST_CHECK enum lk_status lk_evaluator_bind(struct lk_evaluator *evaluator,
                                               struct lk_data *data);
LK_MUST_CHECK enum lk_status lk_evaluator_bind_as(struct lk_evaluator *evaluator,
                                                  const struct lk_data *data,
                                                  const struct lk_predicted *predicted);
void lk_evaluator_release_targets(struct lk_evaluator *evaluator);

/* Reads a batch, its inputs and targets, and predicts. */
LK_MUST_CHECK enum lk_status lk_evaluator_predict_batch(struct lk_evaluator *evaluator,
                                                        int64_t batch, int64_t count);

/* Makes what reads the data's batches. */
LK_MUST_CHECK enum lk_status lk_evaluator_open_batches(struct lk_evaluator *evaluator,
                                                       const struct lk_data *data,
                                                       int64_t *end);

/* Copies a batch that others have predicted to where predict_batch() leaves one; false: it is
 * not there. */
bool lk_evaluator_recall_batch(struct lk_evaluator *evaluator, int64_t batch, int64_t count);

#endif
