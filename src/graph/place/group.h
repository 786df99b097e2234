/* A graph on several devices, each of which computes the nodes of its place
 * (lk_node_set_place()). Floor 5. Knows no file, no optimizer and no thread.
 *
 * A group has a replica for each device. What one makes and another reads crosses over pinned
 * memory of the host, while both go on with what does not depend on it. Micro-batches follow
 * one another through the devices: of each device's replica there are several, with activations
 * of their own, but one array of weights and one of gradients. All bits are those of the same
 * graph on one device of that kind. */
#ifndef LK_GRAPH_PLACE_GROUP_H
#define LK_GRAPH_PLACE_GROUP_H

#include "graph/replica.h"

enum { LK_MOST_IN_FLIGHT = 16 };

struct lk_group;

/* Replicas for each of `count` devices, so many that each can be at `in_flight` micro-batches
 * at once. They are made by `config`, whose device, place, places and weights_of are filled in
 * here; weights_of is that of a member of another group of the same devices, for each place.
 * The devices are of one kind, so that their batch tiles are. fails: LK_E_ARGUMENT,
 * LK_E_UNSUPPORTED: what cannot be divided so, by name; as lk_replica_create() */
LK_MUST_CHECK enum lk_status lk_group_create(const struct lk_replica_config *config,
                                             struct lk_device *const *devices, int count,
                                             int in_flight, struct lk_group **group);

/* Builds all replicas; weights are not set. */
LK_MUST_CHECK enum lk_status lk_group_build(struct lk_group *group);
void lk_group_destroy(struct lk_group *group);

int lk_group_count(const struct lk_group *group);

/* How long the devices wait for one another if a batch goes through them as one: the time until
 * the last of `places` is ready with forward, in units of what the busiest of them computes, by
 * operations of the nodes, less 1. Branches side by side: about 0; n equal stages: n - 1. Nodes
 * have places. fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_group_wait(const struct lk_graph *graph, int places,
                                           double *wait);

/* As lk_replica_set_loss_scale(), of all replicas of a place. */
void lk_group_set_loss_scale(struct lk_group *group, int place, const struct lk_buffer *scale);

/* As lk_replica_watch(), of all replicas of all places. */
struct lk_watch;
void lk_group_watch(struct lk_group *group, struct lk_watch *watch);

/* The replica of a place that has the weights and the gradients. Of each parameter that of one
 * place has the values; in the others it is_elsewhere or is_borrowed. */
struct lk_replica *lk_group_replica(struct lk_group *group, int place);

/* The replica of a place that will be given micro-batch `index` of a run. */
struct lk_replica *lk_group_runner(struct lk_group *group, int place, int index);

/* Every replica of a group knows those of the other places, and replicas of no group are one of
 * one place. How many there are, the replica and the device of a place, and the place that has
 * a parameter. */
int lk_group_places(const struct lk_replica *any);
struct lk_replica *lk_group_member(const struct lk_replica *any, int place);
struct lk_device *lk_group_device(const struct lk_replica *any, int place);
int lk_group_place_of_param(const struct lk_replica *any, int param);

/* The slot that a replica has not loaded last: it may be filled while that one is in use. */
int lk_group_free_slot(const struct lk_replica *replica);

/* What a run does with a micro-batch of each place, in this order. Each is told the replica at
 * work: load fills its inputs; forwarded (NULL: nothing) is called when forward, finished when
 * the gradients of a bucket are enqueued, which the next micro-batch will overwrite. What does
 * not train goes forward only, and has no `finished`. */
struct lk_group_work {
    void *context;
    int64_t step;
    int micro_batches;
    int fetched; /* the first so many were fetched before */
    /* reads samples for all places, for loads of them that come later; NULL: load needs no such
     */
    enum lk_status (*fetch)(void *context, int index);
    /* likewise some of the run that comes next, when all of this one have been loaded: called
     * until it finds no more, or the run ends; NULL: nothing does */
    enum lk_status (*fetch_next)(void *context, bool *has_fetched);
    enum lk_status (*load)(void *context, struct lk_replica *replica, int place, int index);
    enum lk_status (*forwarded)(void *context, struct lk_replica *replica, int place,
                                int index);
    enum lk_status (*finished)(void *context, struct lk_replica *replica, int place, int index,
                               int bucket);
};

/* Takes all micro-batches of a step forward and backward through the group. A device begins
 * with the backward of a micro-batch as soon as it can, before it takes another one forward: so
 * it holds activations of few. Enqueues, and waits for what crosses. fails: LK_E_DEVICE, or as
 * the calls do */
LK_MUST_CHECK enum lk_status lk_group_run(struct lk_group *group,
                                          const struct lk_group_work *work);

/* Whether all that crossed in the last step has arrived as it was sent: *wrong_at is -1. If
 * not, logs what has changed, and gives the place that sent what the host found changed, or
 * else got it so. Waits for the devices to end the step. fails: LK_E_DEVICE */
LK_MUST_CHECK enum lk_status lk_group_check(struct lk_group *group, int *wrong_at);

/* Of the last step, once its results have come. */
struct lk_place_times lk_group_times(const struct lk_group *group, int place);

#endif
