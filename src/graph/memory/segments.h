/* Proposals of which neighbouring operations to take as segments, whose inner values backward
 * computes again: graph/recompute.h. Floor 5. Knows no device and no graph. */
#ifndef LK_GRAPH_MEMORY_SEGMENTS_H
#define LK_GRAPH_MEMORY_SEGMENTS_H

#include "ops/op.h"

/* An operation, as far as it counts here. */
struct lk_segment_op {
    double work;           /* of running it forward, in any unit */
    double bytes, saved;   /* of the value that it makes; of what else it keeps for backward */
    bool reads_x, reads_y; /* its backward: inputs, its own value */
    int inputs, makers[LK_MOST_INPUTS]; /* the operations that make them; -1: none does */
    int last_reader; /* of the value; at least the number of operations: an output */
};

struct lk_segment_search;

/* Weighs all segments. `ops` must outlive the search. */
LK_MUST_CHECK enum lk_status lk_segment_search_create(const struct lk_segment_op *ops,
                                                      int count,
                                                      struct lk_segment_search **search);

/* Takes proposal `index`, from the least work that is done again to the most: segment[i]
 * becomes the first operation of operation i's segment. False past the last. */
bool lk_segment_search_take(struct lk_segment_search *search, int index, int *segment);

void lk_segment_search_destroy(struct lk_segment_search *search);

#endif
