/* What each device of a group would hold, compute and send, before any device is touched.
 * Floor 5. Knows no model text. */
#ifndef LK_GRAPH_PLACE_PLAN_H
#define LK_GRAPH_PLACE_PLAN_H

#include "graph/place/group.h"

/* Of one place. */
struct lk_place_plan {
    struct lk_replica_bytes bytes; /* of all its replicas */
    bool fits;                     /* into the device's memory */
    int64_t parameters; /* elements; those that come from another place not counted */
    double work;        /* estimated, of a batch forward and backward, as if it were
                         * floating-point operations */
};

/* What crosses from a place to another one in forward. */
struct lk_place_crossing {
    const struct lk_node *node; /* of the operation that makes it, or whose weights it is */
    bool is_weights;
    int from, to;
    size_t forward, backward; /* bytes of a sample; of weights, those of a step */
};

enum { LK_MOST_PLACE_CROSSINGS = 64 };

struct lk_group_plan {
    int count;
    struct lk_place_plan places[LK_MOST_PLACES];
    int crossing_count;
    struct lk_place_crossing crossings[LK_MOST_PLACE_CROSSINGS];
};

/* Plans a group as lk_group_create() would make it. What does not fit is no failure: see
 * `fits`. fails: LK_E_ARGUMENT, LK_E_UNSUPPORTED: what cannot be divided so, by name */
LK_MUST_CHECK enum lk_status lk_group_plan(const struct lk_replica_config *config,
                                           struct lk_device *const *devices, int count,
                                           int in_flight, struct lk_group_plan *plan);

/* The estimated work of operation i for a batch, forward and backward; 0 for an end of a
 * crossing. */
double lk_place_work(const struct lk_replica *replica, int i);

/* How many passes that are: forward, and each kind of gradient, which takes about as long. */
int lk_place_passes(const struct lk_replica *replica, int i);

#endif
