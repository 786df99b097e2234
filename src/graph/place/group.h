/* A graph on several devices, each of which computes the nodes of its place
 * (lk_node_set_place()). Floor 5. Knows no file and no optimizer.
 *
 * A group has a replica for each device. What one makes and another reads crosses over pinned
 * memory of the host, while both go on with what does not depend on it. All bits are those of
 * the same graph on one device of that kind. */
#ifndef LK_GRAPH_PLACE_GROUP_H
#define LK_GRAPH_PLACE_GROUP_H

#include "graph/replica.h"

enum { LK_MOST_PLACES = 16 };

struct lk_group;

/* A replica for each of `count` devices, made by `config`, whose device, place and places are
 * filled in here. The devices are of one kind, so that their batch tiles are. fails:
 * LK_E_ARGUMENT, LK_E_UNSUPPORTED: what cannot be divided so, by name; as lk_replica_create()
 */
LK_MUST_CHECK enum lk_status lk_group_create(const struct lk_replica_config *config,
                                             struct lk_device *const *devices, int count,
                                             struct lk_group **group);
void lk_group_destroy(struct lk_group *group);

/* The replica of place `index`; NULL past the last. Of each parameter one replica has the
 * values, for the others it is_elsewhere. */
struct lk_replica *lk_group_replica(struct lk_group *group, int index);

/* Run all replicas, on inputs that were loaded into each, forward, and backward from the loss
 * into the gradients. Enqueue, and wait for what crosses. fails: LK_E_DEVICE */
LK_MUST_CHECK enum lk_status lk_group_forward(struct lk_group *group, int64_t step);
LK_MUST_CHECK enum lk_status lk_group_backward(struct lk_group *group);

#endif
