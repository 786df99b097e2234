/* Searches the segments with which a replica fits its device and backward runs the least work
 * again: dynamic programming over cuts of the schedule proposes segments, and the memory plan
 * decides. */
#include "base/fail.h"
#include "graph/replica_internal.h"
#include <stdlib.h>

/* Writing a byte takes about as long as so many floating-point operations. */
enum { FLOPS_PER_BYTE = 16 };

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

struct search {
    struct lk_replica *replica;
    bool *is_kept, *is_wanted;    /* of each operation: backward reads what it made; scratch */
    int cuts, cut[MOST_CUTS + 1]; /* operations before which the schedule may be cut, and its
                                   * end */
    struct cost *cost;            /* of a segment from one cut to another */
    double best[MOST_CUTS + 1];   /* the least cost up to a cut, */
    int from[MOST_CUTS + 1];      /* and the cut before */
    struct proposal proposals[LIMITS * PRICES];
    int proposal_count;
};

static double work_of(const struct lk_replica *replica, int i)
{
    const struct lk_scheduled_op *op = &replica->schedule.ops[i];
    return op->shapes.flops * (double)replica->config.batch +
           FLOPS_PER_BYTE * (double)lk_recompute_bytes(replica, op->y);
}

double lk_recompute_work(const struct lk_replica *replica)
{
    double again = 0, all = 0;
    for (int i = 0; i < replica->schedule.op_count; i++) {
        const double work = work_of(replica, i);
        all += work;
        again += replica->recompute.runs_again[i] ? work : 0;
    }
    return all > 0 ? again / all : 0;
}

/* Notes what backward reads of what forward made. */
static void find_kept(struct search *search)
{
    const struct lk_replica *replica = search->replica;
    const struct lk_schedule *s = &replica->schedule;
    for (int i = 0; i < s->op_count; i++) {
        search->is_kept[i] = lk_recompute_reads_y(replica, i);
        for (int j = 0; j < s->ops[i].shapes.inputs; j++) {
            const int producer = s->values[s->ops[i].x[j]].producer;
            if (producer >= 0 && lk_recompute_reads_x(replica, i))
                search->is_kept[producer] = true;
        }
    }
}

static double saved_bytes(const struct search *search, int i)
{
    const bool has_backward = search->replica->schedule.ops[i].has_backward;
    return has_backward ? (double)search->replica->prepared[i].setup.saved_bytes : 0;
}

/* Notes that operation i of a segment reads its inputs in backward; adds those that lie before
 * the segment and would not be kept but for `again`, its running again. */
static double want_inputs(struct search *search, int first, int i, bool again)
{
    const struct lk_replica *replica = search->replica;
    const struct lk_schedule *s = &replica->schedule;
    double kept = 0;
    for (int j = 0; j < s->ops[i].shapes.inputs; j++) {
        const int producer = s->values[s->ops[i].x[j]].producer;
        if (producer >= first)
            search->is_wanted[producer] = true;
        else if (producer >= 0 && again && !search->is_kept[producer])
            kept += (double)lk_recompute_bytes(replica, s->ops[i].x[j]);
    }
    return kept;
}

/* The cost of the segment of operations first to end - 1. */
static struct cost weigh(struct search *search, int first, int end)
{
    const struct lk_replica *replica = search->replica;
    struct cost cost = {0};
    for (int i = first; i < end; i++)
        search->is_wanted[i] = lk_recompute_reads_y(replica, i) || saved_bytes(search, i) > 0;
    for (int i = end - 1; i >= first; i--) {
        const int last = replica->recompute.last_reader[i];
        const bool is_dropped = last > i && last < end;
        const bool again = is_dropped && search->is_wanted[i];
        const double bytes = (double)lk_recompute_bytes(replica, replica->schedule.ops[i].y);
        if (!is_dropped)
            cost.kept += saved_bytes(search, i) + (search->is_kept[i] ? bytes : 0);
        cost.work += again ? work_of(replica, i) : 0;
        cost.made += again ? bytes + saved_bytes(search, i) : 0;
        if (again || lk_recompute_reads_x(replica, i))
            cost.kept += want_inputs(search, first, i, again);
    }
    return cost;
}

/* Between all operations, or if they are too many, between every second, third, ... */
static void choose_cuts(struct search *search)
{
    const int ops = search->replica->schedule.op_count;
    const int every = (ops + MOST_CUTS - 1) / MOST_CUTS;
    for (int i = 0; i < ops; i += every)
        search->cut[search->cuts++] = i;
    search->cut[search->cuts] = ops;
}

static const struct cost *cost_of(const struct search *search, int from, int to)
{
    return &search->cost[from * (MOST_CUTS + 1) + to];
}

/* Finds the segments that a proposal's rule leads to, and what they cost. */
static void follow(struct search *search, struct proposal *proposal)
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

static bool is_known(const struct search *search, const struct cost *cost)
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
static void propose(struct search *search)
{
    const struct lk_replica *replica = search->replica;
    double work = 0, bytes = 0;
    for (int i = 0; i < replica->schedule.op_count; i++) {
        work += work_of(replica, i);
        bytes += (double)lk_recompute_bytes(replica, replica->schedule.ops[i].y);
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

/* Plans with the segments of a proposal. */
static enum lk_status plan(struct search *search, int index)
{
    struct lk_replica *replica = search->replica;
    follow(search, &search->proposals[index]);
    for (int to = search->cuts; to > 0; to = search->from[to])
        for (int i = search->cut[search->from[to]]; i < search->cut[to]; i++)
            replica->recompute.segment[i] = search->cut[search->from[to]];
    lk_recompute_mark(replica);
    return lk_replica_plan_memory(replica);
}

/* Takes the first that fits, or else the one of least memory. */
static enum lk_status choose(struct search *search)
{
    const struct lk_replica *replica = search->replica;
    int least = 0;
    size_t least_bytes = SIZE_MAX;
    for (int i = 0; i < search->proposal_count; i++) {
        LK_TRY(plan(search, i));
        if (lk_replica_fits(replica))
            return LK_OK;
        if (replica->is_planned && replica->plan.total_bytes < least_bytes) {
            least_bytes = replica->plan.total_bytes;
            least = i;
        }
    }
    return plan(search, least);
}

enum lk_status lk_recompute_search(struct lk_replica *replica)
{
    const size_t ops = (size_t)replica->schedule.op_count;
    const size_t costs = (size_t)MOST_CUTS * (MOST_CUTS + 1);
    struct search *search = calloc(1, sizeof *search);
    enum lk_status status = LK_OK;
    if (!search)
        return lk_fail_memory("a memory plan", sizeof *search);
    search->replica = replica;
    search->is_kept = calloc(ops, sizeof *search->is_kept);
    search->is_wanted = calloc(ops, sizeof *search->is_wanted);
    search->cost = calloc(costs, sizeof *search->cost);
    if (!search->is_kept || !search->is_wanted || !search->cost) {
        status = lk_fail_memory("a memory plan", costs * sizeof *search->cost);
        goto out;
    }
    find_kept(search);
    choose_cuts(search);
    for (int from = 0; from < search->cuts; from++)
        for (int to = from + 1; to <= search->cuts; to++)
            search->cost[from * (MOST_CUTS + 1) + to] =
                weigh(search, search->cut[from], search->cut[to]);
    propose(search);
    status = choose(search);
out:
    free(search->is_kept);
    free(search->is_wanted);
    free(search->cost);
    free(search);
    return status;
}
