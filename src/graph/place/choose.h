/* Chooses the places of a graph's nodes for a group of devices. Floor 5. Knows no model text.
 */
#ifndef LK_GRAPH_PLACE_CHOOSE_H
#define LK_GRAPH_PLACE_CHOOSE_H

#include "graph/place/group.h"

/* Sets the places of all nodes of the graph to the division with the lowest estimated time of
 * those that fit into the devices' memory with so many micro-batches in flight; `config` as
 * lk_group_create() will take it. Touches no device. fails: LK_E_DEVICE_MEMORY, what does not
 * fit in the division that needs the least; LK_E_UNSUPPORTED, no division; all nodes have no
 * place then */
LK_MUST_CHECK enum lk_status lk_group_choose(const struct lk_replica_config *config,
                                             struct lk_device *const *devices, int count,
                                             int in_flight);

#endif
