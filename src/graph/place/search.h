/* Divides operations among places: proposes divisions, and estimates how long each takes.
 * Floor 5. Knows no device and no graph. `README.md` beside it says how. */
#ifndef LK_GRAPH_PLACE_SEARCH_H
#define LK_GRAPH_PLACE_SEARCH_H

#include "base/arena.h"
#include "graph/place/group.h"

/* An operation, in the order of the schedule, as the search sees it. */
struct lk_place_op {
    double work;       /* time on a device of speed 1 */
    double forward;    /* of it */
    double crosses;    /* time that each end takes where its value crosses, with the gradient */
    bool has_gradient; /* the value has one */
    double held;       /* bytes of memory that it takes at its place, about */
    double weights;    /* time that each end takes where its weights cross, with gradients */
    double weights_forward; /* of it */
    int first_use, uses;    /* the first operation that uses its weights; how many do. Without
                             * weights: itself, 1 */
    int makers[LK_MOST_INPUTS]; /* operations whose values it reads */
    int inputs;
};

/* Whether it reads the value of operation `maker`. */
bool lk_place_reads(const struct lk_place_op *op, int maker);

/* The place that lends operation i its weights in the order of the schedule; -1: none. Of two
 * uses they are lent before all else, and gradients come last: see lk_replica_divide(). */
int lk_place_lender(const struct lk_place_op *ops, const int *places, int i);

struct lk_place_proposal {
    double time; /* of a micro-batch, estimated */
    int *places; /* of each operation */
};

enum { LK_MOST_PLACE_PROPOSALS = 256 };

struct lk_place_search {
    const struct lk_place_op *ops;
    int op_count, places;
    double speeds[LK_MOST_PLACES];
    double loads[LK_MOST_PLACES]; /* time of loading a micro-batch's inputs */
    double sums[LK_MOST_PLACES], update[LK_MOST_PLACES]; /* time of adding up the gradients of a
                                                          * micro-batch, of a step's update */
    int micro_batches; /* of a step, one behind the other; 0: not known */
    struct lk_arena arena;
    double *finish, *arrival; /* of each operation; and at each place */
    struct lk_place_proposal proposals[LK_MOST_PLACE_PROPOSALS];
    int proposal_count;
};

/* Makes room; ops, op_count, places and speeds are set. fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_place_search_begin(struct lk_place_search *search);
void lk_place_search_clear(struct lk_place_search *search);

/* How a micro-batch goes through a division: the time of each place, what crosses among it, and
 * when the last place is done. */
struct lk_place_walk {
    double busy[LK_MOST_PLACES], crossing[LK_MOST_PLACES], last;
};

/* false: the division cannot be, see below. */
bool lk_place_walk(struct lk_place_search *search, const int *places,
                   struct lk_place_walk *found);

/* The time of a step: what the slowest place takes for each micro-batch, and for the first one
 * what the others take before and after it. */
double lk_place_step(const struct lk_place_search *search, const struct lk_place_walk *walk);

/* A step with its update, as lk_group_run() gives work to devices: the busy time of each place,
 * that of what crosses among it. fails: LK_E_MEMORY; LK_E_UNSUPPORTED the division cannot be */
struct lk_place_simulated {
    double busy[LK_MOST_PLACES], crossing[LK_MOST_PLACES], step;
};
LK_MUST_CHECK enum lk_status lk_place_simulate(const struct lk_place_search *search,
                                               const int *places, int micro_batches,
                                               int in_flight, struct lk_place_simulated *found);

/* The time that a micro-batch takes where several are on their way; INFINITY: a division that
 * cannot be, since a place has nothing, places wait for each other in a circle, or too much
 * crosses. */
double lk_place_estimate(struct lk_place_search *search, const int *places);

/* Adds a division to the proposals, unless it cannot be or is there. fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_place_propose(struct lk_place_search *search,
                                              const int *places);

/* Propose: cuts of the schedule into neighbouring runs; branches that meet, apart. Then the
 * proposals are in the order of their times. fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_place_propose_cuts(struct lk_place_search *search);
LK_MUST_CHECK enum lk_status lk_place_propose_branches(struct lk_place_search *search);
void lk_place_sort(struct lk_place_search *search);

#endif
