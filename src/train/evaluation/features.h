/* Values of a model's frozen part over the samples of one data set, kept from one evaluation to
 * the next: an evaluator then runs the head alone. Floor 8. */
#ifndef LK_TRAIN_EVALUATION_FEATURES_H
#define LK_TRAIN_EVALUATION_FEATURES_H

#include "graph/replica.h"
#include <lockstep/field.h>

/* Outlives its evaluators, which evaluate that data set alone; {.count} to begin with. */
struct lk_evaluated_features {
    int64_t count, filled; /* samples, and how many of them are there, from the first one on */
    int features;
    int64_t elements[LK_MOST_OUTPUTS];
    float *values[LK_MOST_OUTPUTS];   /* [count][elements] of each */
    int64_t kept;                     /* samples whose targets are there, likewise */
    uint8_t *targets[LK_MOST_FIELDS]; /* [count] of each field that is one */
};

void lk_evaluated_features_clear(struct lk_evaluated_features *features);

struct lk_evaluator;

/* Makes replicas of both parts in the place of one of the whole model; `config` is that one's.
 * Where nothing is frozen, or there is too little memory on the host, the evaluator stays as it
 * is, without features. fails: as lk_replica_create() */
LK_MUST_CHECK enum lk_status lk_evaluator_divide(struct lk_evaluator *evaluator,
                                                 const struct lk_replica_config *config);

/* Puts the features of samples first..first+count-1 of the data, a batch's, into slot 0 of the
 * head, computed if they are not there. */
LK_MUST_CHECK enum lk_status lk_evaluator_load_features(struct lk_evaluator *evaluator,
                                                        int64_t batch, int64_t count);

/* Fields of a batch that are targets: kept, to be read no more; and taken from what was kept.
 * False: they have to be read, also where the head reads inputs beside its features. */
LK_MUST_CHECK enum lk_status lk_evaluator_keep_targets(struct lk_evaluator *evaluator,
                                                       int64_t first, int64_t count,
                                                       void *const fields[LK_MOST_FIELDS]);
bool lk_evaluator_recall_targets(const struct lk_evaluator *evaluator, int64_t first,
                                 int64_t count, void *const fields[LK_MOST_FIELDS]);

#endif
