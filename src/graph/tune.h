/* Measures on a device what a graph's operations may choose from. Floor 5. Knows no file. */
#ifndef LK_GRAPH_TUNE_H
#define LK_GRAPH_TUNE_H

#include "graph/node.h"
#include <lockstep/tune.h>

struct lk_tune_config {
    struct lk_device *device;
    const struct lk_node *output; /* training: the loss */
    bool training;
    bool stores_half;           /* as lk_op_setup */
    int64_t batch;              /* most samples at a time */
    int shards;                 /* of such a batch, where it is trained */
    struct lk_choices *choices; /* those it has or knows stay; others are added */
    bool keeps_bits;            /* only blockings of the algorithm that the rule takes */
    double seconds; /* after which nothing more is begun; choices left stay by rule. 0: none */
    bool (*handler)(void *context, const struct lk_tune_report *report); /* false: enough. NULL:
                                                                          * nobody listens */
    void *context;
};

/* Waits for the device again and again; what a candidate computes is compared with the direct
 * sums first. A candidate that cannot be built or run is passed over.
 * fails: LK_E_DEVICE where the device is lost, LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_tune(const struct lk_tune_config *config);

#endif
