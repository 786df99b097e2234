/* Whether images lie in plane tiles (tensor/tensor.h). Floor 5. */
#ifndef LK_GRAPH_PLANES_H
#define LK_GRAPH_PLANES_H

#include <lockstep/status.h>
#include <stdbool.h>

/* Whether a replica's images lie in plane tiles: all of them, as its tiling says, or in
 * training those that most of the work is done on. */
struct lk_replica;
bool lk_replica_has_planes(const struct lk_replica *replica);

/* Whether the schedule of a replica in training can run in plane tiles and should; then turn,
 * before parameters are listed, does what lk_schedule_turn_planes() does.
 * lk_replica_map_planes() comes behind all else. */
bool lk_replica_trains_planes(const struct lk_replica *replica);
void lk_replica_turn_planes(struct lk_replica *replica);

/* The same of a schedule for training, of floats, where devices can: whether it should, and
 * whether operation i would lie in them. */
struct lk_schedule;
bool lk_schedule_trains_planes(const struct lk_schedule *schedule);
bool lk_schedule_has_planes(const struct lk_schedule *schedule, int i);

/* Marks what is computed in plane tiles, and puts operations between that turn batch tiles into
 * plane tiles and back. */
void lk_schedule_turn_planes(struct lk_schedule *schedule);

/* The shapes of an operation in plane tiles: for one that knows none, images are
 * [c, vectors, 1]. Behind all that looks at shapes. fails: as infer does */
struct lk_scheduled_op;
struct lk_tiling;
LK_MUST_CHECK enum lk_status lk_scheduled_op_map_planes(struct lk_scheduled_op *op,
                                                        const struct lk_tiling *planes);

/* Whether a group of devices, or one, can compute in plane tiles: all of them, since images
 * cross between them as they lie. */
struct lk_device;
bool lk_devices_take_planes(struct lk_device *const *devices, int count);

/* Whether a loss of few samples is trained in plane tiles on such devices. fails: LK_E_MEMORY
 */
struct lk_node;
LK_MUST_CHECK enum lk_status lk_planes_are_trained(const struct lk_node *loss, bool *are);

#endif
