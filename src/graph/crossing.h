/* A schedule that is divided among the devices of a group. Floor 5. Private to the room graph.
 *
 * Every device has a replica of the whole graph that runs the operations of one place
 * (lk_node_set_place()) and has their parameters. Where a value is made at one place and read
 * at another it crosses: the values to the reader in forward, its gradient back in backward.
 * All replicas of a group find the same crossings, in one order, from the same schedule. They
 * are operations in the schedules of both sides: one that departs reads the value, one that
 * arrives makes it. So memory is planned for them as for any other operation, and a gradient
 * that comes back is added to those of other readers where that reader's would have been. This
 * is why a divided graph has the bits of a whole one.
 *
 * Weights that are used at several places belong to that of their first use, whose gradients
 * the optimizer gets. They cross to each use that is elsewhere in each forward, and its
 * gradients of every shard come back. */
#ifndef LK_GRAPH_CROSSING_H
#define LK_GRAPH_CROSSING_H

#include "graph/replica.h"

struct lk_crossing {
    int value;       /* of the whole schedule; -1: the weights of operation `after` */
    int from, to;    /* places */
    int after;       /* the operation of `from` behind which a value departs */
    int first, last; /* operations of `to`, the first and the last that reads it */
    bool has_gradient;
    bool is_in_order; /* of weights: gradients are added in the turn of operation `first` */
};

/* A crossing as one of its two replicas has it. */
struct lk_crossing_end {
    bool departs;
    int number; /* of the crossing */
    size_t bytes, gradient_bytes;
    struct lk_checked_copy *checked;
    struct lk_transfer_buffer *value, *gradient; /* NULL: no gradient */
    struct lk_buffer *weights; /* those that cross, as they lie in all weights; NULL: a value */
    bool is_sent;              /* what this end sends, and not taken yet */
    bool has_value, has_gradient; /* they have come to this end */
};

/* Finds the crossings of the replica's schedule, and leaves in it the operations of the
 * replica's place, with those that depart or arrive. Call it once parameters are listed.
 * fails: LK_E_ARGUMENT, naming the nodes: a place that the group has not, places that wait for
 * each other in a circle; LK_E_UNSUPPORTED */
LK_MUST_CHECK enum lk_status lk_replica_divide(struct lk_replica *replica);

/* Tells a replica of its group: of each place that which has weights. Before it is built, what
 * checks all that crosses at its place, with lk_crossing_slots() slots. Both outlive it. */
void lk_replica_join(struct lk_replica *replica, struct lk_replica *const *group);
struct lk_checked_copy;
void lk_crossings_check(struct lk_replica *replica, struct lk_checked_copy *checked);
int lk_crossing_slots(const struct lk_replica *replica);

/* Allocates what crosses, once memory is planned; frees it. */
LK_MUST_CHECK enum lk_status lk_crossings_build(struct lk_replica *replica);
void lk_crossings_clear(struct lk_replica *replica);

/* --- running ----------------------------------------------------------------------------- */

/* Forward in parts, as far as what has crossed allows: begin it, then go on until it is done.
 * Likewise backward, to the bucket (graph/bucket.h) at least; all of it after the last one.
 * Enqueue. */
void lk_replica_begin_forward(struct lk_replica *replica, int64_t step);
LK_MUST_CHECK enum lk_status lk_replica_go_forward(struct lk_replica *replica, bool *is_done);
LK_MUST_CHECK enum lk_status lk_replica_go_backward(struct lk_replica *replica, int bucket,
                                                    bool *is_done);

/* The number of the crossing that operation i of the schedule stands for; -1: none. */
int lk_crossing_of(const struct lk_replica *replica, int i);

/* Forgets what has crossed, before a new forward. */
void lk_crossings_begin(struct lk_replica *replica);

/* Whether operation i has to wait for something that has not crossed yet. */
bool lk_crossing_is_awaited(const struct lk_replica *replica, int i, bool in_backward);

/* How many crossings the group's schedule has, and one of them. */
int lk_crossing_count(const struct lk_replica *replica);
const struct lk_crossing *lk_crossing_get(const struct lk_replica *replica, int number);

/* The node that makes what crosses, or whose weights it is, by a replica at one of its ends. */
const char *lk_crossing_name(const struct lk_replica *replica, int number);

/* Sends the gradients dw, of every shard, that operation i has computed of weights of another
 * place. */
LK_MUST_CHECK enum lk_status lk_crossing_send_dw(const struct lk_replica *replica, int i,
                                                 const struct lk_buffer *dw);

/* A crossing whose values, or in backward the gradients of them, a replica has sent. */
struct lk_sent {
    int number;
    bool in_backward;
};

/* The next of what the replica has enqueued to be sent and nobody has been told of; false:
 * there is none. */
bool lk_crossing_take_sent(struct lk_replica *replica, struct lk_sent *sent);

/* The slot in which the receiver counts it where it arrives wrong, and what has that slot. */
int lk_sent_slot(struct lk_sent sent);
struct lk_sent lk_sent_of_slot(int slot);

/* What has been moved: the time of copying, without that of waiting; the slot of the last that
 * did not come as it was sent, counted from 1 (0: none). */
struct lk_crossing_tally {
    double seconds, bytes;
    int changed;
};

/* Whether lk_crossing_move() would not wait. */
bool lk_crossing_is_there(const struct lk_replica *from, const struct lk_replica *to,
                          struct lk_sent sent);

/* Waits for what `from` has sent and hands it to the other replica, which can then go on. Adds
 * to the tally. fails: LK_E_DEVICE */
LK_MUST_CHECK enum lk_status lk_crossing_move(struct lk_replica *from, struct lk_replica *to,
                                              struct lk_sent sent,
                                              struct lk_crossing_tally *tally);

#endif
