/* Proposes segments by dynamic programming over the cuts between operations. */
#include "graph/memory/segments.h"

#include "base/fail.h"
#include <stdlib.h>

enum { MOST_CUTS = 384, LIMITS = 10, PRICES = 17 };

/* What a segment costs: work of operations that run again; bytes that are kept from forward to
 * backward; bytes that it makes again and needs at the same time. */
struct cost {
    double work, kept, made;
};

/* A rule for choosing segments: none makes more than `limit` bytes again, and a byte kept costs
 * `price` of work; and what they come to. */
struct proposal {
    double limit, price;
    struct cost cost;
};

struct lk_segment_search {
    const struct lk_segment_op *ops;
    int op_count;
    bool *is_kept, *is_wanted;    /* of each operation: backward reads what it made; scratch */
    int cuts, cut[MOST_CUTS + 1]; /* operations before which the schedule may be cut, and its
                                   * end */
    struct cost *cost;            /* of a segment from one cut to another */
    double best[MOST_CUTS + 1];   /* the least cost up to a cut, */
    int from[MOST_CUTS + 1];      /* and the cut before */
    struct proposal proposals[LIMITS * PRICES];
    int proposal_count;
};

/* Notes what backward reads of what forward made. */
static void find_kept(struct lk_segment_search *search)
{
    for (int i = 0; i < search->op_count; i++) {
        const struct lk_segment_op *op = &search->ops[i];
        search->is_kept[i] = op->reads_y;
        for (int j = 0; j < op->inputs && op->reads_x; j++)
            if (op->makers[j] >= 0)
                search->is_kept[op->makers[j]] = true;
    }
}

/* Notes that backward wants the inputs of operation i of a segment. Returns the bytes of those
 * that lie before the segment and would not be kept but for `again`, its running again. */
static double want_inputs(struct lk_segment_search *search, int first, int i, bool again)
{
    double kept = 0;
    for (int j = 0; j < search->ops[i].inputs; j++) {
        const int maker = search->ops[i].makers[j];
        if (maker >= first)
            search->is_wanted[maker] = true;
        else if (maker >= 0 && again && !search->is_kept[maker])
            kept += search->ops[maker].bytes;
    }
    return kept;
}

/* The cost of the segment of operations first to end - 1. */
static struct cost weigh(struct lk_segment_search *search, int first, int end)
{
    struct cost cost = {0};
    for (int i = first; i < end; i++)
        search->is_wanted[i] = search->ops[i].reads_y || search->ops[i].saved > 0;
    for (int i = end - 1; i >= first; i--) {
        const struct lk_segment_op *op = &search->ops[i];
        const bool is_dropped = op->last_reader > i && op->last_reader < end;
        const bool again = is_dropped && search->is_wanted[i];
        if (!is_dropped)
            cost.kept += op->saved + (search->is_kept[i] ? op->bytes : 0);
        cost.work += again ? op->work : 0;
        cost.made += again ? op->bytes + op->saved : 0;
        if (again || op->reads_x)
            cost.kept += want_inputs(search, first, i, again);
    }
    return cost;
}

/* Between all operations, or if they are too many, between every second, third, ... */
static void choose_cuts(struct lk_segment_search *search)
{
    const int ops = search->op_count;
    const int every = (ops + MOST_CUTS - 1) / MOST_CUTS;
    for (int i = 0; i < ops; i += every)
        search->cut[search->cuts++] = i;
    search->cut[search->cuts] = ops;
}

static const struct cost *cost_of(const struct lk_segment_search *search, int from, int to)
{
    return &search->cost[from * (MOST_CUTS + 1) + to];
}

/* Finds the segments that a proposal's rule leads to, and what they cost. */
static void follow(struct lk_segment_search *search, struct proposal *proposal)
{
    search->best[0] = 0;
    for (int to = 1; to <= search->cuts; to++) {
        search->from[to] = -1;
        for (int from = to - 1; from >= 0; from--) {
            const struct cost *cost = cost_of(search, from, to);
            const double sum = search->best[from] + cost->work + proposal->price * cost->kept;
            if (cost->made > proposal->limit && from < to - 1)
                break; /* longer ones make more */
            if (search->from[to] < 0 || sum < search->best[to]) {
                search->best[to] = sum;
                search->from[to] = from;
            }
        }
    }
    proposal->cost = (struct cost){0};
    for (int to = search->cuts; to > 0; to = search->from[to]) {
        const struct cost *cost = cost_of(search, search->from[to], to);
        proposal->cost.work += cost->work;
        proposal->cost.kept += cost->kept;
        proposal->cost.made =
            cost->made > proposal->cost.made ? cost->made : proposal->cost.made;
    }
}

static bool is_known(const struct lk_segment_search *search, const struct cost *cost)
{
    for (int i = 0; i < search->proposal_count; i++) {
        const struct cost *known = &search->proposals[i].cost;
        if (known->work == cost->work && known->kept == cost->kept && known->made == cost->made)
            return true;
    }
    return false;
}

static int by_work(const void *a, const void *b)
{
    const double x = ((const struct proposal *)a)->cost.work,
                 y = ((const struct proposal *)b)->cost.work;
    return x < y ? -1 : x > y;
}

/* Proposes segments from little to much that is made again at a time, and from dear to cheap
 * work. */
static void propose(struct lk_segment_search *search)
{
    double work = 0, bytes = 1;
    for (int i = 0; i < search->op_count; i++) {
        work += search->ops[i].work;
        bytes += search->ops[i].bytes;
    }
    double limit = bytes;
    for (int l = 0; l < LIMITS; l++, limit *= 0.6) {
        double price = work / bytes / 256;
        for (int p = 0; p < PRICES; p++, price *= 2) {
            struct proposal proposal = {.limit = limit, .price = price};
            follow(search, &proposal);
            if (!is_known(search, &proposal.cost))
                search->proposals[search->proposal_count++] = proposal;
        }
    }
    qsort(search->proposals, (size_t)search->proposal_count, sizeof search->proposals[0],
          by_work);
}

static enum lk_status allocate(struct lk_segment_search *search)
{
    const size_t ops = (size_t)search->op_count + 1;
    const size_t costs = (size_t)MOST_CUTS * (MOST_CUTS + 1);
    search->is_kept = calloc(ops, sizeof *search->is_kept);
    search->is_wanted = calloc(ops, sizeof *search->is_wanted);
    search->cost = calloc(costs, sizeof *search->cost);
    return search->is_kept && search->is_wanted && search->cost
               ? LK_OK
               : lk_fail_memory("a memory plan", costs * sizeof *search->cost);
}

enum lk_status lk_segment_search_create(const struct lk_segment_op *ops, int count,
                                        struct lk_segment_search **search)
{
    struct lk_segment_search *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("a memory plan", sizeof *made);
    made->ops = ops;
    made->op_count = count;
    const enum lk_status status = allocate(made);
    if (status != LK_OK) {
        lk_segment_search_destroy(made);
        return status;
    }
    find_kept(made);
    choose_cuts(made);
    for (int from = 0; from < made->cuts; from++)
        for (int to = from + 1; to <= made->cuts; to++)
            made->cost[from * (MOST_CUTS + 1) + to] =
                weigh(made, made->cut[from], made->cut[to]);
    propose(made);
    *search = made;
    return LK_OK;
}

bool lk_segment_search_take(struct lk_segment_search *search, int index, int *segment)
{
    if (index >= search->proposal_count)
        return false;
    follow(search, &search->proposals[index]);
    for (int to = search->cuts; to > 0; to = search->from[to])
        for (int i = search->cut[search->from[to]]; i < search->cut[to]; i++)
            segment[i] = search->cut[search->from[to]];
    return true;
}

void lk_segment_search_destroy(struct lk_segment_search *search)
{
    if (!search)
        return;
    free(search->is_kept);
    free(search->is_wanted);
    free(search->cost);
    free(search);
}
