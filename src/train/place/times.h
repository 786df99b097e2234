/* Divides a model by measured times of its operations. Floor 8. */
#ifndef LK_TRAIN_PLACE_TIMES_H
#define LK_TRAIN_PLACE_TIMES_H

#include "graph/place/choose.h"
#include "model/model.h"

struct lk_place_request {
    struct lk_model *model;
    const char *words; /* as lk_model_place() takes them */
    const struct lk_node *loss;
    struct lk_device *const *devices; /* of a group, `places` of them; the first is measured */
    int places, groups;
    struct lk_choices *choices;
    int usual_shards, most_shards; /* computed at a time: as small micro-batches as usual; as
                                    * large ones as may be */
    double seconds;                /* for measuring operations */
    bool measures_again; /* also those whose times the cache has, since the machine may have
                          * been busy then. The cache's times are taken where this is false, and
                          * where no time is left */
    /* what lk_group_create() will take for so many shards at a time */
    enum lk_status (*plan)(void *context, int shards, int *in_flight,
                           struct lk_replica_config *config);
    void *context;
};

/* How a group would compute its part of a batch. */
struct lk_place_found {
    int shards, micro_batches; /* at a time; of its part */
    struct lk_group_estimate estimate;
};

/* Measures operations, divides the model by what they take, and finds how many shards the
 * devices should compute at a time. found->estimate.step_ms 0: the seconds were too few and the
 * cache has no times, or there is no room; then the model has no places. Waits. fails:
 * LK_E_DEVICE, LK_E_MEMORY; as lk_model_place() */
LK_MUST_CHECK enum lk_status lk_place_by_times(const struct lk_place_request *request,
                                               struct lk_place_found *found);

#endif
