/* Measures how long a device takes for each operation of a graph. Floor 5. Knows no file. */
#ifndef LK_GRAPH_TIMES_H
#define LK_GRAPH_TIMES_H

#include "graph/nodes/node.h"
#include "products/kernel/choice.h"

struct lk_times_config {
    struct lk_device *device;
    struct lk_device *const *beside; /* others that do the same meanwhile, as those of a group
                                      * will: they may share the memory's speed */
    int beside_count;
    const struct lk_node *loss;
    bool stores_half; /* as lk_op_setup */
    int64_t batch;    /* samples of a micro-batch */
    int shards;       /* of it */
    int packed_for; /* so many micro-batches for which weights are packed once; 1: each anew */
    bool few_samples; /* as lk_replica_config: plane tiles where all devices can */
    struct lk_choices *choices;
    struct lk_choices *known; /* gets the times, by a key that names the device; those that it
                               * has are not measured again */
    struct lk_choices *older; /* or NULL: taken where no time is left to measure */
    double seconds;           /* after which no measurement begins */
};

/* Milliseconds that operation i of the loss's schedule for training takes for a micro-batch,
 * forward and backward; 0: it could not be measured alone, as operations on whole numbers, or
 * turns images into other tiles. In plane tiles the schedule is that of a replica. */
struct lk_op_times {
    double *ms;
    int count;
};

/* The caller frees times->ms. Waits. fails: LK_E_DEVICE the device is lost, LK_E_MEMORY;
 * LK_E_UNSUPPORTED the time was too short */
LK_MUST_CHECK enum lk_status lk_times_measure(const struct lk_times_config *config,
                                              struct lk_op_times *times);

#endif
