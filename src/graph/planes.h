/* Whether images lie in plane tiles (tensor/tensor.h). Floor 5. */
#ifndef LK_GRAPH_PLANES_H
#define LK_GRAPH_PLANES_H

#include <stdbool.h>

/* Whether a replica's images lie in plane tiles: all of them, as its tiling says, or in
 * training those that most of the work is done on. */
struct lk_replica;
bool lk_replica_has_planes(const struct lk_replica *replica);

/* Whether the schedule of a replica in training can run in plane tiles and should; then turn,
 * before parameters are listed, marks what is computed so and puts operations between that
 * turn batch tiles into plane tiles and back. lk_replica_map_planes() comes behind all else. */
bool lk_replica_trains_planes(const struct lk_replica *replica);
void lk_replica_turn_planes(struct lk_replica *replica);

#endif
