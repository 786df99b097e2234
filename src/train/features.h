/* Features: values that the frozen part of a model gives for each sample, computed once and
 * kept, so that steps run the rest of the model alone. Floor 8. */
#ifndef LK_TRAIN_FEATURES_H
#define LK_TRAIN_FEATURES_H

#include "team/stepper/feed.h"

struct lk_trainer;
struct lk_kept;

/* Of a trainer; {0}: nothing is kept. */
struct lk_features {
    bool is_on;
    int versions; /* of each sample: random variants, which epochs take in turns */
    bool draws;   /* samples are changed by chance */
    struct lk_kept *kept;
    struct lk_data *data;
};

/* Reads the settings. fails: LK_E_ARGUMENT where they contradict one another */
LK_MUST_CHECK enum lk_status lk_features_begin(struct lk_trainer *trainer);

/* Once batches are there: refuses samples that are changed by chance without versions.
 * fails: LK_E_ARGUMENT */
LK_MUST_CHECK enum lk_status lk_features_check(struct lk_trainer *trainer);

/* With the weights that training begins with, on all devices at once: computes features of all
 * samples, unless a file has them, and lets steps read them. All ranks call it.
 * fails: LK_E_INTERRUPTED; as lk_kept_open(); LK_E_DEVICE where none is left */
LK_MUST_CHECK enum lk_status lk_features_fill(struct lk_trainer *trainer);

/* After the team and its batches. */
void lk_features_clear(struct lk_features *features);

#endif
