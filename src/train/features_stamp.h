/* A checksum of all that decides features, by which a file of them is known again. Floor 8. */
#ifndef LK_TRAIN_FEATURES_STAMP_H
#define LK_TRAIN_FEATURES_STAMP_H

#include "data/kept.h"
#include "team/stepper/feed.h"

struct lk_trainer;
struct lk_worker;

struct lk_features_stamp {
    struct lk_trainer *trainer;
    struct lk_worker *worker;            /* on whose thread this is */
    const struct lk_feed *feed;          /* of the whole model */
    const struct lk_kept_config *config; /* but its sum */
};

/* Of the data and its pipeline, the frozen operations with their options, algorithms and
 * parameters, the program and the device; not of what is trained. Waits for the device. */
LK_MUST_CHECK enum lk_status lk_features_stamp(const struct lk_features_stamp *stamp,
                                               char text[LK_SHA256_TEXT]);

#endif
