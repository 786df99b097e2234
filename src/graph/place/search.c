/* Estimates how long a division takes, and keeps the proposals. */
#include "graph/place/search.h"

#include "base/fail.h"
#include "graph/place/plan.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A step is taken to have so many micro-batches, where their number is not known. */
enum { MICRO_BATCHES = 4 };

enum lk_status lk_place_search_begin(struct lk_place_search *search)
{
    const size_t ops = (size_t)search->op_count + 1;
    void *memory = NULL;
    LK_TRY(lk_arena_allocate(&search->arena, ops * sizeof *search->finish, &memory));
    search->finish = memory;
    LK_TRY(lk_arena_allocate(&search->arena,
                             ops * (size_t)search->places * sizeof *search->arrival, &memory));
    search->arrival = memory;
    return LK_OK;
}

void lk_place_search_clear(struct lk_place_search *search)
{
    lk_arena_clear(&search->arena);
}

/* --- estimating -------------------------------------------------------------------------- */

/* A micro-batch on its way through the places, each of which computes its operations in the
 * order of the schedule. */
struct walk {
    double busy[LK_MOST_PLACES]; /* time of each place's own work, and what it sends and gets */
    double crossing[LK_MOST_PLACES];  /* the latter alone */
    double free[LK_MOST_PLACES];      /* when it has done what it has begun */
    uint32_t follows[LK_MOST_PLACES]; /* places that get something from it */
    int crossings;
};

bool lk_place_reads(const struct lk_place_op *op, int maker)
{
    for (int j = 0; j < op->inputs; j++)
        if (op->makers[j] == maker)
            return true;
    return false;
}

/* Whether the gradient of operation i crosses to the maker by itself, since behind it another
 * place's gradient is added to the sum: see lk_replica_divide(). */
static bool crosses_alone(const struct lk_place_search *search, const int *places, int maker,
                          int i)
{
    for (int k = i + 1; search->ops[maker].has_gradient && k < search->op_count; k++)
        if (places[k] != places[i] && lk_place_reads(&search->ops[k], maker))
            return true;
    return false;
}

/* Something crosses, which takes so long at either end. */
static void cross(struct walk *walk, int from, int to, double each)
{
    walk->busy[from] += each;
    walk->busy[to] += each;
    walk->crossing[from] += each;
    walk->crossing[to] += each;
    walk->crossings++;
}

/* When the value of `maker` is at the place of operation i, which reads it. It crosses once for
 * all that read it there, but for those whose gradients cross by themselves. */
static double arrive(struct lk_place_search *search, struct walk *walk, const int *places,
                     int maker, int i)
{
    const int place = places[i];
    const bool is_alone = crosses_alone(search, places, maker, i);
    const double each = search->ops[maker].crosses, at = search->finish[maker] + 2 * each;
    double *arrival = &search->arrival[maker * search->places + place];
    if (places[maker] == place)
        return search->finish[maker];
    if (is_alone || *arrival < 0) {
        cross(walk, places[maker], place, each);
        walk->follows[places[maker]] |= UINT32_C(1) << place;
    }
    if (!is_alone)
        *arrival = at;
    return at;
}

int lk_place_lender(const struct lk_place_op *ops, const int *places, int i)
{
    const int owner = places[ops[i].first_use];
    return ops[i].uses > 2 && owner != places[i] ? owner : -1;
}

/* When the weights of operation i are there, which another place may have. */
static double fetch_weights(const struct lk_place_search *search, struct walk *walk,
                            const int *places, int i)
{
    const struct lk_place_op *op = &search->ops[i];
    const int owner = places[op->first_use];
    if (owner == places[i])
        return 0;
    cross(walk, owner, places[i], op->weights);
    return lk_place_lender(search->ops, places, i) < 0 ? 0
                                                       : walk->free[owner] + 2 * op->weights;
}

static bool has_circle(const struct lk_place_search *search, const struct walk *walk)
{
    uint32_t reached[LK_MOST_PLACES];
    memcpy(reached, walk->follows, sizeof reached);
    for (int again = 0; again < search->places; again++)
        for (int p = 0; p < search->places; p++)
            for (int q = 0; q < search->places; q++)
                if (reached[p] >> q & 1)
                    reached[p] |= reached[q];
    for (int p = 0; p < search->places; p++)
        if (reached[p] >> p & 1)
            return true;
    return false;
}

bool lk_place_walk(struct lk_place_search *search, const int *places,
                   struct lk_place_walk *found)
{
    struct walk walk = {.crossings = 0};
    *found = (struct lk_place_walk){.last = 0};
    for (int i = 0; i < search->op_count * search->places; i++)
        search->arrival[i] = -1;
    for (int i = 0; i < search->op_count; i++) {
        const struct lk_place_op *op = &search->ops[i];
        const double time = op->work / search->speeds[places[i]];
        double ready = walk.free[places[i]];
        for (int j = 0; j < op->inputs; j++)
            if (op->makers[j] >= 0)
                ready = fmax(ready, arrive(search, &walk, places, op->makers[j], i));
        ready = fmax(ready, fetch_weights(search, &walk, places, i));
        search->finish[i] = walk.free[places[i]] = ready + time;
        walk.busy[places[i]] += time;
    }
    for (int p = 0; p < search->places; p++) {
        if (walk.free[p] == 0)
            return false;
        found->busy[p] = walk.busy[p];
        found->crossing[p] = walk.crossing[p];
        found->last = fmax(found->last, walk.free[p]);
    }
    return !has_circle(search, &walk) && walk.crossings <= LK_MOST_PLACE_CROSSINGS;
}

static int micro_batches_of(const struct lk_place_search *search)
{
    return search->micro_batches > 0 ? search->micro_batches : MICRO_BATCHES;
}

double lk_place_step(const struct lk_place_search *search, const struct lk_place_walk *walk)
{
    double slowest = 0;
    for (int p = 0; p < search->places; p++)
        slowest = fmax(slowest, walk->busy[p]);
    return fmax(walk->last, slowest) + (micro_batches_of(search) - 1) * slowest;
}

double lk_place_estimate(struct lk_place_search *search, const int *places)
{
    struct lk_place_walk walk;
    return lk_place_walk(search, places, &walk)
               ? lk_place_step(search, &walk) / micro_batches_of(search)
               : INFINITY;
}

/* --- proposals --------------------------------------------------------------------------- */

enum lk_status lk_place_propose(struct lk_place_search *search, const int *places)
{
    const size_t bytes = (size_t)search->op_count * sizeof *places;
    const double time = lk_place_estimate(search, places);
    void *memory = NULL;
    if (time == INFINITY || search->proposal_count == LK_MOST_PLACE_PROPOSALS)
        return LK_OK;
    for (int i = 0; i < search->proposal_count; i++)
        if (memcmp(search->proposals[i].places, places, bytes) == 0)
            return LK_OK;
    LK_TRY(lk_arena_allocate(&search->arena, bytes, &memory));
    memcpy(memory, places, bytes);
    search->proposals[search->proposal_count++] =
        (struct lk_place_proposal){.time = time, .places = memory};
    return LK_OK;
}

/* Of equal times the one that was proposed first stays first. */
void lk_place_sort(struct lk_place_search *search)
{
    for (int i = 1; i < search->proposal_count; i++) {
        const struct lk_place_proposal moved = search->proposals[i];
        int at = i;
        for (; at > 0 && search->proposals[at - 1].time > moved.time; at--)
            search->proposals[at] = search->proposals[at - 1];
        search->proposals[at] = moved;
    }
}
