/* Checks that a device computes a graph's operations correctly. Floor 5. Knows no operation. */
#ifndef LK_GRAPH_CHECK_H
#define LK_GRAPH_CHECK_H

#include "graph/nodes/node.h"
#include "products/kernel/choice.h"

struct lk_check_config {
    struct lk_device *device;
    const struct lk_node *loss;
    bool stores_half; /* as lk_op_setup */
    int64_t batch;    /* most samples at a time */
    int shards;       /* of such a batch */
    bool few_samples; /* as lk_replica_config, on devices that can */
    bool is_placed;   /* of a group: only operations of `place` */
    int place;
    struct lk_choices *choices; /* of the algorithms that are checked */
};

/* Runs operations forward and backward on random numbers: those whose output scales with their
 * weights and inputs (`scales` in ops/op.h) and that have at most 64 MB of weights. For these
 * Euler's theorem on homogeneous functions says that three sums are equal, which three passes
 * compute independently: y times dy over all elements; w times dw over all parameters; and x
 * times dx plus w times dw of all parameters but the first. Of operations that are the same to
 * the bit the last is run. Waits. fails: LK_E_DEVICE, naming the operation, where they differ;
 * as building and running do */
LK_MUST_CHECK enum lk_status lk_graph_check(const struct lk_check_config *config);

#endif
