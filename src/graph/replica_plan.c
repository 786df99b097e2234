/* What a replica keeps in device memory, from when to when. Time runs 0..n-1 through forward
 * and n..2n-1 through backward, in which operation i has time 2n-1-i. */
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
    return 2 * replica->schedule.op_count - 1 - i;
}

/* The last time at which the activation of `value` is read. */
static int last_read(const struct lk_replica *replica, int value)
{
    const struct lk_schedule *s = &replica->schedule;
    int last = s->values[value].producer;
    if (lk_schedule_is_output(s, value))
        return 2 * s->op_count;
    for (int i = s->op_count - 1; i >= 0; i--) {
        const struct lk_scheduled_op *scheduled = &s->ops[i];
        bool reads = false, reads_again = false;
        for (int j = 0; j < scheduled->shapes.inputs; j++)
            reads |= scheduled->x[j] == value;
        reads_again |= reads && scheduled->has_backward && scheduled->shapes.backward_reads_x;
        reads_again |= scheduled->y == value && scheduled->has_backward &&
                       scheduled->shapes.backward_reads_y && !s->values[value].is_gated;
        const int time = reads_again ? backward_time(replica, i) : reads ? i : -1;
        if (time > last)
            last = time;
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
    replica->activation[value] = replica->gradient[value] = -1;
    if (!lk_replica_is_live(replica, value))
        return;
    replica->activation[value] =
        add_live_range(replica, bytes, v->producer, last_read(replica, value));
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
    p->saved = add_live_range(replica, p->setup.saved_bytes, i, backward ? back : i);
    p->forward_workspace = add_live_range(replica, p->setup.workspace_bytes, i, i);
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

enum lk_status lk_replica_plan_memory(struct lk_replica *replica)
{
    const struct lk_schedule *s = &replica->schedule;
    const struct lk_device_info *info = lk_device_info(replica->config.device);
    int most = 2 * s->value_count;
    for (int i = 0; i < s->op_count; i++)
        most += 4 + s->ops[i].shapes.inputs;
    void *memory = NULL;
    LK_TRY(lk_arena_allocate(&replica->arena, (size_t)most * sizeof *replica->live_ranges,
                             &memory));
    replica->live_ranges = memory;
    LK_TRY(lk_arena_allocate(&replica->arena, (size_t)s->value_count * sizeof(int), &memory));
    replica->activation = memory;
    LK_TRY(lk_arena_allocate(&replica->arena, (size_t)s->value_count * sizeof(int), &memory));
    replica->gradient = memory;
    for (int i = 0; i < s->op_count; i++)
        for (int j = 0; j < LK_MOST_INPUTS; j++)
            replica->prepared[i].extra_dx[j] = -1;
    for (int v = 0; v < s->value_count; v++) {
        const size_t bytes = lk_tiled_bytes(&replica->tiling, &s->values[v].shape,
                                            lk_replica_value_stored(replica, v));
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
