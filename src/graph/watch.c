/* Finds the first operation of which a number is not finite. */
#include "graph/watch.h"

#include "base/fail.h"
#include "base/half.h"
#include "graph/replica_internal.h"
#include <math.h>
#include <stdlib.h>

void lk_replica_watch(struct lk_replica *replica, struct lk_watch *watch)
{
    replica->watch = watch;
}

/* Values in the graph's order come before all gradients, which come in reverse. */
bool lk_watch_is_before(const struct lk_watch *a, const struct lk_watch *b)
{
    if (!a->node || !b->node)
        return a->node != NULL;
    if (a->is_gradient != b->is_gradient)
        return b->is_gradient;
    return a->is_gradient ? a->node->index > b->node->index : a->node->index < b->node->index;
}

static bool is_finite(const void *numbers, enum lk_dtype dtype, int64_t i)
{
    if (dtype == LK_F16)
        return isfinite(lk_half_value(((const uint16_t *)numbers)[i]));
    return dtype == LK_F64 ? isfinite(((const double *)numbers)[i])
                           : isfinite(((const float *)numbers)[i]);
}

/* Takes note of them if they come before what is known. */
static void look(struct lk_watch *watch, const struct lk_node *node, bool is_gradient,
                 const void *numbers, enum lk_dtype dtype, int64_t count)
{
    struct lk_watch found = {.node = node, .is_gradient = is_gradient, .all = count};
    for (int64_t i = 0; i < count; i++)
        found.wrong += !is_finite(numbers, dtype, i);
    if (found.wrong > 0 && lk_watch_is_before(&found, watch))
        *watch = found;
}

static enum lk_status look_at_value(const struct lk_replica *replica, int i, bool is_gradient,
                                    int value, const struct lk_buffer *buffer)
{
    const struct lk_value *about = &replica->schedule.values[value];
    const enum lk_dtype dtype = lk_replica_value_stored(replica, value);
    const int64_t samples = replica->micro_batch.samples;
    const int64_t count = samples * lk_shape_count(&about->shape);
    if (!buffer || count == 0 || (dtype != LK_F32 && dtype != LK_F64 && dtype != LK_F16))
        return LK_OK;
    void *numbers = malloc((size_t)count * lk_dtype_bytes(dtype));
    if (!numbers)
        return lk_fail_memory("values", (size_t)count * lk_dtype_bytes(dtype));
    const struct lk_tiling used = lk_tiling_cut(lk_replica_tiling_of(replica, about->in_planes),
                                                replica->micro_batch.shards);
    const enum lk_status status =
        lk_tiled_read(buffer, &used, &about->shape, dtype, samples, numbers);
    if (status == LK_OK)
        look(replica->watch, replica->schedule.ops[i].node, is_gradient, numbers, dtype, count);
    free(numbers);
    return status;
}

/* Those of each shard; row lists are left out. */
static enum lk_status look_at_param(const struct lk_replica *replica, int i, int param)
{
    const struct lk_param *about = &replica->params[param];
    const enum lk_dtype real = replica->config.real;
    const size_t bytes = (size_t)about->count * lk_dtype_bytes(real);
    const size_t stride = (size_t)lk_replica_gradient_stride(replica) * lk_dtype_bytes(real);
    enum lk_status status = LK_OK;
    if (about->places > 0 || !replica->gradient_views[param])
        return LK_OK;
    void *numbers = malloc(bytes);
    if (!numbers)
        return lk_fail_memory(about->name, bytes);
    for (int shard = 0; shard < replica->micro_batch.shards && status == LK_OK; shard++) {
        status = lk_buffer_read(replica->gradient_views[param], (size_t)shard * stride, bytes,
                                numbers);
        if (status == LK_OK)
            look(replica->watch, replica->schedule.ops[i].node, true, numbers, real,
                 about->count);
    }
    free(numbers);
    return status;
}

/* What crosses between places is looked at where it is made, and in its stead there are words
 * that are no numbers. */
static bool is_crossing(const struct lk_replica *replica, int i)
{
    return replica->schedule.ops[i].crossing > 0;
}

enum lk_status lk_watch_value(const struct lk_replica *replica, int i,
                              const struct lk_op_run *run)
{
    if (is_crossing(replica, i))
        return LK_OK;
    return look_at_value(replica, i, false, replica->schedule.ops[i].y, run->y);
}

enum lk_status lk_watch_gradients(const struct lk_replica *replica, int i,
                                  const struct lk_op_run *run)
{
    const struct lk_scheduled_op *scheduled = &replica->schedule.ops[i];
    if (is_crossing(replica, i))
        return LK_OK;
    for (int j = 0; j < scheduled->shapes.inputs; j++)
        LK_TRY(look_at_value(replica, i, true, scheduled->x[j], run->dx[j]));
    for (int j = 0; j < scheduled->shapes.params && scheduled->wants_dw; j++)
        LK_TRY(look_at_param(replica, i, replica->prepared[i].param[j]));
    return LK_OK;
}
