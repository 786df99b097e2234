/* Measures on a device the algorithms among which a graph's operations may choose. Floor 5.
 * Knows no file. */
#ifndef LK_GRAPH_TUNE_H
#define LK_GRAPH_TUNE_H

#include "graph/nodes/node.h"
#include <lockstep/tune.h>

struct lk_tune_config {
    struct lk_device *device;
    const struct lk_node *output; /* training: the loss */
    bool training;
    bool stores_half;           /* as lk_op_setup */
    int64_t batch;              /* most samples at a time */
    int shards;                 /* of such a batch, where it is trained */
    struct lk_choices *choices; /* gets the results; choices that it has already stay */
    bool keeps_bits;            /* measures only blockings of the algorithm taken by rule */
    double seconds;             /* after which no measurement begins; what is left is chosen by
                                 * rule. 0: no limit */
    bool (*handler)(void *context, const struct lk_tune_report *report); /* false: enough. NULL:
                                                                          * nobody listens */
    void *context;
};

/* Measures all choices; waits. Results of a candidate are first compared with those of direct
 * sums. A candidate that cannot be built or run is skipped.
 * fails: LK_E_DEVICE the device is lost; LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_tune(const struct lk_tune_config *config);

#endif
