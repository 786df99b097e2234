/* Which field of a data set each input of a graph is filled from, and filling it. Floor 7.
 * Knows no model: whoever knows both the model and the data binds them. */
#ifndef LK_TEAM_STEPPER_FEED_H
#define LK_TEAM_STEPPER_FEED_H

#include "graph/replica.h"
#include <lockstep/data.h>

/* An input of a graph and its source. Fields may be integers where the input takes numbers of
 * one element: they are converted. Several inputs may share a field. */
struct lk_feed_row {
    const struct lk_node *input;
    int field;
    bool converts; /* int32 to float, in place */
};

struct lk_feed {
    struct lk_feed_row rows[LK_MOST_INPUTS];
    int count;
};

/* A line for each input: the field that fills it, and what becomes of a number there. */
struct lk_text;
void lk_feed_describe(const struct lk_feed *feed, struct lk_text *text);

/* Samples first..first+count-1 of a batch. */
struct lk_batch_range {
    int64_t batch, first, count;
};

/* Where samples go: a slot of a replica. */
struct lk_feed_target {
    struct lk_replica *replica;
    int slot;
};

/* Reads samples of a batch into slots of one or several replicas, from their first place on,
 * together with the parameters of what devices do to their images. Each field is read once and
 * copied to all other inputs that take it. `to`: where fields go that no input takes; NULL:
 * they are not wanted; of the others it says where they are then. Any thread. fails: as
 * lk_batches_read_fields() */
LK_MUST_CHECK enum lk_status lk_feed_read_all(const struct lk_feed *feed,
                                              const struct lk_feed_target *targets, int count,
                                              struct lk_batches *batches,
                                              struct lk_batch_range range,
                                              void *to[LK_MOST_FIELDS]);

/* Likewise, into one slot. */
LK_MUST_CHECK enum lk_status
lk_feed_read(const struct lk_feed *feed, struct lk_replica *replica, int slot,
             struct lk_batches *batches, struct lk_batch_range range, void *to[LK_MOST_FIELDS]);

#endif
