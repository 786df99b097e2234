/* Whether images lie in plane tiles (tensor/tensor.h). Floor 5. */
#ifndef LK_GRAPH_PLANES_H
#define LK_GRAPH_PLANES_H

#include <stdbool.h>

/* Whether a replica's images lie in plane tiles: all of them, as its tiling says, or in
 * training those that most of the work is done on. */
struct lk_replica;
bool lk_replica_has_planes(const struct lk_replica *replica);

#endif
