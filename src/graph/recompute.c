/* What backward has to run forward again, given the segments of the schedule, and when;
 * segments of even size. */
#include "graph/recompute.h"

#include "base/fail.h"
#include "graph/memory/segments.h"
#include "graph/replica_internal.h"
#include <math.h>
#include <stdlib.h>

static enum lk_status take(struct lk_replica *replica, int count, size_t bytes, void **memory)
{
    return lk_arena_allocate(&replica->arena, (size_t)(count + 1) * bytes, memory);
}

static int last_reader(const struct lk_replica *replica, int value)
{
    const struct lk_schedule *s = &replica->schedule;
    if (lk_schedule_is_output(s, value))
        return s->op_count;
    for (int i = s->op_count - 1; i >= 0; i--)
        for (int j = 0; j < s->ops[i].shapes.inputs; j++)
            if (s->ops[i].x[j] == value)
                return i;
    return -1;
}

enum lk_status lk_recompute_init(struct lk_replica *replica)
{
    struct lk_recompute *r = &replica->recompute;
    const int ops = replica->schedule.op_count, values = replica->schedule.value_count;
    void *memory = NULL;
    LK_TRY(take(replica, ops, sizeof *r->segment, &memory));
    r->segment = memory;
    LK_TRY(take(replica, ops, sizeof *r->runs_again, &memory));
    r->runs_again = memory;
    LK_TRY(take(replica, ops, sizeof *r->again_time, &memory));
    r->again_time = memory;
    LK_TRY(take(replica, ops, sizeof *r->backward_time, &memory));
    r->backward_time = memory;
    LK_TRY(take(replica, ops, sizeof *r->last_reader, &memory));
    r->last_reader = memory;
    LK_TRY(take(replica, values, sizeof *r->is_dropped, &memory));
    r->is_dropped = memory;
    for (int i = 0; i < ops; i++) {
        r->segment[i] = i;
        r->last_reader[i] = last_reader(replica, replica->schedule.ops[i].y);
    }
    lk_recompute_mark(replica);
    return LK_OK;
}

bool lk_recompute_reads_y(const struct lk_replica *replica, int i)
{
    const struct lk_scheduled_op *op = &replica->schedule.ops[i];
    return op->has_backward && op->shapes.backward_reads_y &&
           !replica->schedule.values[op->y].is_gated;
}

bool lk_recompute_reads_x(const struct lk_replica *replica, int i)
{
    const struct lk_scheduled_op *op = &replica->schedule.ops[i];
    return op->has_backward && op->shapes.backward_reads_x;
}

size_t lk_recompute_bytes(const struct lk_replica *replica, int value)
{
    const struct lk_value *of = &replica->schedule.values[value];
    return lk_tiled_bytes(lk_replica_tiling_of(replica, of->in_planes), &of->shape,
                          lk_replica_value_stored(replica, value));
}

/* Values that are read behind their segment are kept. */
static void mark_dropped(struct lk_replica *replica)
{
    const struct lk_schedule *s = &replica->schedule;
    struct lk_recompute *r = &replica->recompute;
    for (int v = 0; v < s->value_count; v++)
        r->is_dropped[v] = false;
    for (int i = 0; i < s->op_count; i++) {
        const int last = r->last_reader[i];
        r->is_dropped[s->ops[i].y] = s->ops[i].crossing == 0 && last > i &&
                                     last < s->op_count && r->segment[last] == r->segment[i];
    }
}

/* An operation runs again if backward reads what it made and was dropped, or if another one
 * that runs again does. */
static void mark_again(struct lk_replica *replica)
{
    const struct lk_schedule *s = &replica->schedule;
    struct lk_recompute *r = &replica->recompute;
    for (int i = 0; i < s->op_count; i++)
        r->runs_again[i] = r->is_dropped[s->ops[i].y] &&
                           (lk_recompute_reads_y(replica, i) ||
                            (s->ops[i].has_backward && replica->prepared[i].setup.saved_bytes));
    for (int i = s->op_count - 1; i >= 0; i--)
        for (int j = 0; j < s->ops[i].shapes.inputs; j++) {
            const int x = s->ops[i].x[j], producer = s->values[x].producer;
            if (producer >= 0 && r->is_dropped[x])
                r->runs_again[producer] |= r->runs_again[i] || lk_recompute_reads_x(replica, i);
        }
}

void lk_recompute_mark(struct lk_replica *replica)
{
    const int ops = replica->schedule.op_count;
    struct lk_recompute *r = &replica->recompute;
    int time = ops;
    mark_dropped(replica);
    mark_again(replica);
    for (int i = ops - 1; i >= 0; i--) {
        const bool ends_segment = i + 1 == ops || r->segment[i + 1] != r->segment[i];
        for (int k = r->segment[i]; ends_segment && k <= i; k++)
            if (r->runs_again[k])
                r->again_time[k] = time++;
        r->backward_time[i] = time++;
    }
    r->end = time;
}

/* --- even segments ------------------------------------------------------------------------ */

/* Bytes that operations before `cut` make and others behind it read. */
static double crossing(const struct lk_replica *replica, int cut)
{
    double bytes = 0;
    for (int i = 0; i < cut; i++)
        if (replica->recompute.last_reader[i] >= cut)
            bytes += (double)lk_recompute_bytes(replica, replica->schedule.ops[i].y);
    return bytes;
}

void lk_recompute_cut_evenly(struct lk_replica *replica)
{
    const int ops = replica->schedule.op_count, count = (int)lround(sqrt(ops));
    int first = 0;
    for (int k = 1; k <= count; k++) {
        const int wanted = (int)((int64_t)ops * k / count), reach = ops / count / 2;
        int cut = wanted;
        double least = k < count ? crossing(replica, cut) : 0;
        for (int near = wanted - reach; k < count && near <= wanted + reach; near++) {
            const double bytes = near > first && near < ops ? crossing(replica, near) : least;
            if (bytes < least) {
                least = bytes;
                cut = near;
            }
        }
        for (int i = first; i < cut; i++)
            replica->recompute.segment[i] = k < count ? first : i;
        first = cut > first ? cut : first;
    }
    lk_recompute_mark(replica);
}

/* --- the least work ----------------------------------------------------------------------- */

double lk_recompute_op_work(const struct lk_replica *replica, int i)
{
    const struct lk_scheduled_op *op = &replica->schedule.ops[i];
    return op->shapes.flops * (double)replica->config.batch +
           LK_FLOPS_PER_BYTE * (double)lk_recompute_bytes(replica, op->y);
}

double lk_recompute_work(const struct lk_replica *replica)
{
    double again = 0, all = 0;
    for (int i = 0; i < replica->schedule.op_count; i++) {
        const double work = lk_recompute_op_work(replica, i);
        all += work;
        again += replica->recompute.runs_again[i] ? work : 0;
    }
    return all > 0 ? again / all : 0;
}

static struct lk_segment_op describe(const struct lk_replica *replica, int i)
{
    const struct lk_schedule *s = &replica->schedule;
    const struct lk_scheduled_op *op = &s->ops[i];
    struct lk_segment_op described = {
        .work = lk_recompute_op_work(replica, i),
        .bytes = (double)lk_recompute_bytes(replica, op->y),
        .saved = op->has_backward ? (double)replica->prepared[i].setup.saved_bytes : 0,
        .reads_x = lk_recompute_reads_x(replica, i),
        .reads_y = lk_recompute_reads_y(replica, i),
        .inputs = op->shapes.inputs,
        .last_reader = replica->recompute.last_reader[i],
    };
    for (int j = 0; j < op->shapes.inputs; j++)
        described.makers[j] = s->values[op->x[j]].producer;
    return described;
}

/* Plans with the first proposal that fits, or else the one of least memory. */
static enum lk_status choose(struct lk_replica *replica, struct lk_segment_search *search)
{
    int least = 0;
    size_t least_bytes = SIZE_MAX;
    for (int i = 0; lk_segment_search_take(search, i, replica->recompute.segment); i++) {
        lk_recompute_mark(replica);
        LK_TRY(lk_replica_plan_memory(replica));
        if (lk_replica_fits(replica))
            return LK_OK;
        if (replica->is_planned && replica->plan.total_bytes < least_bytes) {
            least_bytes = replica->plan.total_bytes;
            least = i;
        }
    }
    (void)lk_segment_search_take(search, least, replica->recompute.segment);
    lk_recompute_mark(replica);
    return lk_replica_plan_memory(replica);
}

enum lk_status lk_recompute_search(struct lk_replica *replica)
{
    const int count = replica->schedule.op_count;
    struct lk_segment_op *ops = calloc((size_t)count + 1, sizeof *ops);
    struct lk_segment_search *search = NULL;
    if (!ops)
        return lk_fail_memory("a memory plan", (size_t)count * sizeof *ops);
    for (int i = 0; i < count; i++)
        ops[i] = describe(replica, i);
    enum lk_status status = lk_segment_search_create(ops, count, &search);
    if (status == LK_OK)
        status = choose(replica, search);
    lk_segment_search_destroy(search);
    free(ops);
    return status;
}
