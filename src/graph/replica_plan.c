/* What a replica keeps in device memory, from when to when. Time runs 0..n-1 through forward,
 * then through backward, with operations between that it runs forward again: recompute.h. */
#include "graph/replica_internal.h"

#include "base/fail.h"

static int add_live_range(struct lk_replica *replica, size_t bytes, int first, int last)
{
    if (bytes == 0)
        return -1;
    replica->live_ranges[replica->live_range_count] =
        (struct lk_live_range){.bytes = bytes, .first = first, .last = last};
    return replica->live_range_count++;
}

static int backward_time(const struct lk_replica *replica, int i)
{
    return replica->recompute.backward_time[i];
}

/* Whether backward of operation i finds an input that is `value`. */
static bool keeps_x(const struct lk_replica *replica, int i, int value)
{
    const struct lk_scheduled_op *op = &replica->schedule.ops[i];
    return lk_recompute_reads_x(replica, i) ||
           (op->op->takes_length && op->has_backward &&
            replica->schedule.values[value].dtype == LK_I32);
}

/* The last time at which the activation of `value` is read. One that is dropped and made again
 * has a life in forward and one in backward: with `again` it is the second, else the first. */
static int last_read(const struct lk_replica *replica, int value, bool again)
{
    const struct lk_schedule *s = &replica->schedule;
    const struct lk_recompute *r = &replica->recompute;
    const bool lives_twice = r->is_dropped[value] && r->runs_again[s->values[value].producer];
    int last = s->values[value].producer;
    if (lk_schedule_is_output(s, value))
        return r->end;
    if (again)
        last = r->again_time[last];
    for (int i = 0; i < s->op_count; i++) {
        bool reads = false;
        for (int j = 0; j < s->ops[i].shapes.inputs; j++)
            reads |= s->ops[i].x[j] == value;
        const bool in_backward = (reads && keeps_x(replica, i, value)) ||
                                 (s->ops[i].y == value && lk_recompute_reads_y(replica, i));
        const int times[] = {reads ? i : -1, reads && r->runs_again[i] ? r->again_time[i] : -1,
                             in_backward ? r->backward_time[i] : -1};
        for (int t = 0; t < (lives_twice && !again ? 1 : 3); t++)
            last = times[t] > last ? times[t] : last;
    }
    return last;
}

/* After fusion some values have no producer; those of the part that is not run have no reader.
 */
bool lk_replica_is_live(const struct lk_replica *replica, int value)
{
    const struct lk_schedule *s = &replica->schedule;
    const bool is_input = s->values[value].input || s->values[value].cut;
    bool is_made = is_input && lk_schedule_readers(s, value) > 0;
    for (int i = 0; i < s->op_count; i++)
        is_made |= s->ops[i].y == value;
    return is_made;
}

/* A value's gradient lives from its last reader's backward to its producer's. */
static void plan_value(struct lk_replica *replica, int value, size_t bytes)
{
    const struct lk_schedule *s = &replica->schedule;
    const struct lk_value *v = &s->values[value];
    replica->activation[value] = replica->gradient[value] = replica->again[value] = -1;
    if (!lk_replica_is_live(replica, value))
        return;
    replica->activation[value] =
        add_live_range(replica, bytes, v->producer, last_read(replica, value, false));
    if (replica->recompute.is_dropped[value] && replica->recompute.runs_again[v->producer])
        replica->again[value] =
            add_live_range(replica, bytes, replica->recompute.again_time[v->producer],
                           last_read(replica, value, true));
    for (int i = s->op_count - 1; i >= 0 && v->wants_gradient; i--)
        for (int j = 0; j < s->ops[i].shapes.inputs; j++) {
            if (s->ops[i].x[j] != value)
                continue;
            const int time = backward_time(replica, i);
            if (replica->gradient[value] < 0)
                replica->gradient[value] =
                    add_live_range(replica, bytes, time, backward_time(replica, v->producer));
            else
                replica->prepared[i].extra_dx[j] = add_live_range(replica, bytes, time, time);
        }
}

static void plan_op(struct lk_replica *replica, int i)
{
    struct lk_prepared *p = &replica->prepared[i];
    const bool backward = replica->schedule.ops[i].has_backward;
    const int back = backward_time(replica, i);
    const bool again = replica->recompute.runs_again[i];
    const int when = again ? replica->recompute.again_time[i] : 0;
    p->saved = add_live_range(replica, p->setup.saved_bytes, i, backward && !again ? back : i);
    p->forward_workspace = add_live_range(replica, p->setup.workspace_bytes, i, i);
    p->past = add_live_range(replica, p->setup.past_bytes, -1, replica->recompute.end);
    const bool has_own = !replica->config.packs_once || !replica->config.weights_of;
    p->packed = add_live_range(replica, has_own ? p->setup.packed_bytes : 0, -1,
                               replica->recompute.end);
    p->saved_again = p->again_workspace = -1;
    if (again) {
        p->saved_again =
            add_live_range(replica, p->setup.saved_bytes, when, backward ? back : when);
        p->again_workspace = add_live_range(replica, p->setup.workspace_bytes, when, when);
    }
    p->backward_workspace =
        backward ? add_live_range(replica, p->setup.workspace_bytes, back, back) : -1;
    p->extra_dw = add_live_range(replica, lk_replica_extra_dw_bytes(replica, i), back, back);
}

enum lk_dtype lk_replica_stored(const struct lk_replica *replica)
{
    return replica->config.stores_half ? LK_F16 : replica->config.real;
}

enum lk_dtype lk_replica_value_stored(const struct lk_replica *replica, int value)
{
    const struct lk_schedule *s = &replica->schedule;
    const int producer = s->values[value].producer;
    if (s->values[value].dtype == LK_I32)
        return LK_I32;
    if (producer >= 0 && s->ops[producer].shapes.is_loss)
        return replica->config.real;
    const bool is_read = lk_schedule_is_output(s, value) && !s->values[value].cut;
    return is_read ? replica->config.real : lk_replica_stored(replica);
}

static enum lk_status take_ints(struct lk_replica *replica, int **ints)
{
    const size_t count = (size_t)replica->schedule.value_count;
    void *memory = NULL;
    LK_TRY(lk_arena_allocate(&replica->arena, count * sizeof **ints, &memory));
    *ints = memory;
    return LK_OK;
}

enum lk_status lk_replica_begin_plan(struct lk_replica *replica)
{
    const struct lk_schedule *s = &replica->schedule;
    int most = 3 * s->value_count;
    for (int i = 0; i < s->op_count; i++)
        most += 8 + s->ops[i].shapes.inputs;
    void *memory = NULL;
    LK_TRY(lk_arena_allocate(&replica->arena, (size_t)most * sizeof *replica->live_ranges,
                             &memory));
    replica->live_ranges = memory;
    LK_TRY(take_ints(replica, &replica->activation));
    LK_TRY(take_ints(replica, &replica->gradient));
    LK_TRY(take_ints(replica, &replica->again));
    return lk_recompute_init(replica);
}

enum lk_status lk_replica_plan_memory(struct lk_replica *replica)
{
    const struct lk_schedule *s = &replica->schedule;
    const struct lk_device_info *info = lk_device_info(replica->config.device);
    replica->live_range_count = 0;
    replica->plan = (struct lk_memory_plan){0};
    for (int i = 0; i < s->op_count; i++)
        for (int j = 0; j < LK_MOST_INPUTS; j++)
            replica->prepared[i].extra_dx[j] = -1;
    for (int v = 0; v < s->value_count; v++) {
        const size_t bytes = lk_recompute_bytes(replica, v);
        if (bytes == (size_t)-1)
            return lk_fail(LK_E_SHAPE, "an activation is too large to count");
        plan_value(replica, v, bytes);
    }
    for (int i = 0; i < s->op_count; i++)
        plan_op(replica, i);
    /* A plan that fails leaves is_planned false, for lk_replica_create() to say more. */
    const enum lk_status status =
        lk_memory_plan_make(replica->live_ranges, replica->live_range_count, info->align_bytes,
                            info->allocation_bytes, &replica->plan);
    replica->is_planned = status == LK_OK;
    if (status != LK_E_DEVICE_MEMORY)
        return status;
    lk_error_clear();
    return LK_OK;
}
