/* Chooses the places of a graph's nodes for a group of devices. Floor 5. Knows no model text.
 */
#ifndef LK_GRAPH_PLACE_CHOOSE_H
#define LK_GRAPH_PLACE_CHOOSE_H

#include "graph/place/group.h"

/* What operations take, by their numbers in the schedule of the whole graph: milliseconds of a
 * micro-batch, forward and backward, as measured on the first device; 0: not measured. */
struct lk_measured_ops {
    const double *ms;
    int count;
    int micro_batches;     /* of a step */
    double load_ms_per_mb; /* of large input that is handed over and brought into tiles, as
                            * floats */
    double copy_ms_per_mb; /* of what a device sends or receives; 0: not measured */
};

/* Sets the places of all nodes of the graph to the division with the lowest estimated time of
 * those that fit into the devices' memory with so many micro-batches in flight; `config` as
 * lk_group_create() will take it. `measured` (NULL: nothing is) stands in place of estimates of
 * the operations' work. Of a head (config->part) the frozen part that comes before it is
 * divided too, by itself. Touches no device. fails: LK_E_DEVICE_MEMORY, what does not fit in
 * the division that needs the least; LK_E_UNSUPPORTED, no division; all nodes have no place
 * then */
LK_MUST_CHECK enum lk_status lk_group_choose(const struct lk_replica_config *config,
                                             struct lk_device *const *devices, int count,
                                             int in_flight,
                                             const struct lk_measured_ops *measured);

/* What a step would take, where each of the group's devices has the operations of its place and
 * the first one was measured: all of it; each device's own work, with what crosses, and that
 * alone. Other than that it waits. Milliseconds. `alone`: of one device that computes all. */
struct lk_group_estimate {
    double step_ms, alone_ms, busy_ms[LK_MOST_PLACES], crossing_ms[LK_MOST_PLACES];
};

/* Of the graph as it is placed. fails: LK_E_UNSUPPORTED nothing was measured, or it cannot be
 * so; as lk_replica_create() */
LK_MUST_CHECK enum lk_status lk_group_estimate(const struct lk_replica_config *config,
                                               struct lk_device *const *devices, int count,
                                               int in_flight,
                                               const struct lk_measured_ops *measured,
                                               struct lk_group_estimate *estimate);

#endif
