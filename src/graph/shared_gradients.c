/* Gradients of parameters that several operations use. Operations write gradients with "=". So
 * the last use, which runs backward first, writes into the replica's gradients. Each other use
 * writes to memory of its own, which is added at once: sums are made in the order of the
 * schedule. Gradients of a use that is at another place come to memory of their own, too, and
 * are copied from it where that use is the last one. */
#include "base/fail.h"
#include "graph/replica_internal.h"
#include <string.h>

/* Whether a later operation has the parameters of operation i, too. */
static bool is_used_later(const struct lk_replica *replica, int i)
{
    const struct lk_schedule *s = &replica->schedule;
    const struct lk_node *owner = lk_node_owner(s->ops[i].node);
    for (int later = i + 1; later < s->op_count; later++)
        if (s->ops[later].shapes.params > 0 && lk_node_owner(s->ops[later].node) == owner)
            return true;
    return false;
}

/* Where a parameter of operation i begins, counted from its first; j: their number gives the
 * end. Those of an operation lie side by side, as they are of one kind. */
static int64_t place_of(const struct lk_replica *replica, int i, int j)
{
    const int params = replica->schedule.ops[i].shapes.params;
    const int *param = replica->prepared[i].param;
    const struct lk_param *first = &replica->params[param[0]];
    const struct lk_param *last = &replica->params[param[params - 1]];
    if (j < params)
        return replica->params[param[j]].offset - first->offset;
    return last->offset - first->offset +
           lk_divide_up(last->count, LK_PARAM_ALIGN) * LK_PARAM_ALIGN;
}

int64_t lk_replica_params_span(const struct lk_replica *replica, int i)
{
    return place_of(replica, i, replica->schedule.ops[i].shapes.params);
}

size_t lk_replica_extra_dw_bytes(const struct lk_replica *replica, int i)
{
    const struct lk_scheduled_op *scheduled = &replica->schedule.ops[i];
    const bool crosses = scheduled->crossing > 0 || replica->prepared[i].returns > 0;
    if (!scheduled->wants_dw || !(crosses || is_used_later(replica, i)))
        return 0;
    return (size_t)lk_replica_params_span(replica, i) * (size_t)replica->tiling.shards *
           lk_dtype_bytes(replica->config.real);
}

enum lk_status lk_replica_prepare_shared(struct lk_replica *replica)
{
    const struct lk_kernel_spec accumulate = {
        .source = "graph/accumulate",
        .name = "accumulate",
        .real_bytes = (int)lk_dtype_bytes(replica->config.real),
        .lanes = replica->tiling.lanes,
    };
    bool has_extra = false;
    for (int i = 0; i < replica->schedule.op_count; i++)
        has_extra |= replica->prepared[i].extra_dw >= 0;
    return has_extra
               ? lk_kernel_create(replica->config.device, &accumulate, &replica->accumulate_dw)
               : LK_OK;
}

static enum lk_status take(struct lk_replica *replica, size_t bytes, void *pointer)
{
    void *memory = NULL;
    LK_TRY(lk_arena_allocate(&replica->arena, bytes, &memory));
    memcpy(pointer, &memory, sizeof memory);
    return LK_OK;
}

static enum lk_status build_op(struct lk_replica *replica, int i)
{
    struct lk_prepared *p = &replica->prepared[i];
    const int params = replica->schedule.ops[i].shapes.params, shards = replica->tiling.shards;
    const size_t real = lk_dtype_bytes(replica->config.real);
    struct lk_buffer *live_range = replica->live_range_views[p->extra_dw];
    LK_TRY(take(replica, sizeof *p->extra, &p->extra));
    p->extra->stride = place_of(replica, i, params);
    for (int j = 0; j < params; j++) {
        const size_t place = (size_t)place_of(replica, i, j) * real;
        LK_TRY(lk_buffer_view(live_range, place, lk_buffer_bytes(live_range) - place,
                              &p->extra->dw[j]));
    }
    if (p->returns)
        return LK_OK;
    p->extra->is_last_use = !is_used_later(replica, i);
    LK_TRY(take(replica, (size_t)shards * sizeof *p->extra->from, &p->extra->from));
    LK_TRY(take(replica, (size_t)shards * sizeof *p->extra->to, &p->extra->to));
    for (int shard = 0; shard < shards; shard++) {
        const int64_t from = shard * p->extra->stride;
        const int64_t to = shard * lk_replica_gradient_stride(replica) +
                           replica->params[p->param[0]].gradient_at;
        const size_t bytes = (size_t)p->extra->stride * real;
        LK_TRY(lk_buffer_view(live_range, (size_t)from * real, bytes, &p->extra->from[shard]));
        LK_TRY(
            lk_buffer_view(replica->gradients, (size_t)to * real, bytes, &p->extra->to[shard]));
    }
    return LK_OK;
}

enum lk_status lk_replica_build_shared(struct lk_replica *replica)
{
    for (int i = 0; i < replica->schedule.op_count; i++)
        if (replica->prepared[i].extra_dw >= 0)
            LK_TRY(build_op(replica, i));
    return LK_OK;
}

void lk_replica_clear_shared(struct lk_replica *replica)
{
    lk_kernel_destroy(replica->accumulate_dw);
    for (int i = 0; replica->prepared && i < replica->schedule.op_count; i++) {
        const struct lk_extra_dw *extra = replica->prepared[i].extra;
        for (int j = 0; extra && j < LK_MOST_PARAMS; j++)
            lk_buffer_destroy(extra->dw[j]);
        for (int shard = 0; extra && shard < replica->tiling.shards; shard++) {
            if (extra->from)
                lk_buffer_destroy(extra->from[shard]);
            if (extra->to)
                lk_buffer_destroy(extra->to[shard]);
        }
    }
}

/* Sets the extra memory to zeros first: what lies between parameters is added, too, and has to
 * stay 0. */
enum lk_status lk_replica_begin_extra_dw(const struct lk_replica *replica, int i,
                                         struct lk_op_run *run)
{
    const struct lk_prepared *p = &replica->prepared[i];
    LK_TRY(lk_buffer_enqueue_fill(replica->live_range_views[p->extra_dw], 0));
    for (int j = 0; j < replica->schedule.ops[i].shapes.params; j++)
        run->dw[j] = p->extra->dw[j];
    run->dw_stride = p->extra->stride;
    return LK_OK;
}

enum lk_status lk_replica_add_extra_dw(const struct lk_replica *replica, int i)
{
    enum { CHUNK = 4096 };
    const struct lk_prepared *p = &replica->prepared[i];
    const int lanes = replica->tiling.lanes;
    if (p->returns)
        return lk_crossing_send_dw(replica, i, replica->live_range_views[p->extra_dw]);
    const struct lk_grid grid = {{lk_divide_up(p->extra->stride, CHUNK), 1, 1},
                                 lanes / replica->tiling.vector};
    for (int shard = 0; shard < p->setup.tiling.shards; shard++) {
        if (p->extra->is_last_use) {
            LK_TRY(lk_buffer_enqueue_copy(p->extra->from[shard], p->extra->to[shard],
                                          lk_buffer_bytes(p->extra->to[shard])));
            continue;
        }
        LK_TRY(LK_ENQUEUE(replica->accumulate_dw, grid, LK_BUF(p->extra->from[shard]),
                          LK_BUF(p->extra->to[shard]), LK_INT(p->extra->stride / lanes),
                          LK_INT(CHUNK / lanes)));
    }
    return LK_OK;
}
