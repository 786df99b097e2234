/* Which runs train in plane tiles (tensor/tensor.h), where the model can. Floor 5. */
#ifndef LK_GRAPH_PLANES_H
#define LK_GRAPH_PLANES_H

#include <stdbool.h>
#include <stdint.h>

enum { LK_FEW_TRAINED = 4 }; /* samples of a shard, at most */

/* Whether a run that begins takes them: by its batch and its shards alone, so that all devices
 * do the same. */
bool lk_few_are_trained(int64_t batch, int shards);

/* Whether a replica's images lie in plane tiles: all of them, as its tiling says, or in
 * training those that most of the work is done on. */
struct lk_replica;
bool lk_replica_has_planes(const struct lk_replica *replica);

#endif
