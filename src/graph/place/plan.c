/* Plans a group: makes the replica of each place, asks it, and destroys it. */
#include "graph/place/plan.h"

#include "base/fail.h"
#include "graph/planes.h"
#include "graph/replica_internal.h"

_Static_assert((int)LK_MOST_PLACE_CROSSINGS == (int)LK_MOST_CROSSINGS, "room for all");

/* Bytes of weights that are read forward, and for dx; of gradients, which each shard writes and
 * which are read to be added. Where images are small and layers wide they take most of the
 * time. Of tables few rows are read. */
static double weight_bytes(const struct lk_replica *replica, int i, bool wants_dx)
{
    const struct lk_scheduled_op *op = &replica->schedule.ops[i];
    const int times = 1 + wants_dx + (op->wants_dw ? 2 * replica->tiling.shards : 0);
    double bytes = 0;
    for (int j = 0; j < op->shapes.params; j++)
        if (!op->shapes.param[j].is_rows)
            bytes += (double)lk_shape_count(&op->shapes.param[j].shape) *
                     (double)lk_dtype_bytes(replica->config.real);
    return bytes * times;
}

int lk_place_passes(const struct lk_replica *replica, int i)
{
    const struct lk_scheduled_op *op = &replica->schedule.ops[i];
    bool wants_dx = false;
    for (int j = 0; j < op->shapes.inputs; j++)
        wants_dx |= op->wants_dx[j];
    return 1 + wants_dx + op->wants_dw;
}

double lk_place_work(const struct lk_replica *replica, int i)
{
    const struct lk_scheduled_op *op = &replica->schedule.ops[i];
    const int passes = lk_place_passes(replica, i);
    if (op->crossing)
        return 0;
    return lk_recompute_op_work(replica, i) * passes +
           LK_FLOPS_PER_BYTE * weight_bytes(replica, i, passes > 1 + op->wants_dw);
}

/* All replicas of a place share weights, gradients and what the optimizer keeps. */
static struct lk_place_plan ask(const struct lk_replica *replica, int in_flight)
{
    struct lk_place_plan plan = {.bytes = lk_replica_bytes(replica)};
    const size_t more = plan.bytes.activations + plan.bytes.inputs;
    plan.bytes.activations *= (size_t)in_flight;
    plan.bytes.inputs *= (size_t)in_flight;
    plan.bytes.total += more * (size_t)(in_flight - 1);
    plan.fits = lk_replica_fits(replica) &&
                (double)plan.bytes.total <= lk_replica_bytes_there(replica->config.device);
    for (int i = 0; i < replica->param_count; i++)
        if (!replica->params[i].is_elsewhere && !replica->params[i].is_borrowed)
            plan.parameters += replica->params[i].count;
    for (int i = 0; i < replica->schedule.op_count; i++)
        plan.work += lk_place_work(replica, i);
    return plan;
}

static size_t sample_bytes(const struct lk_replica *replica, int value)
{
    return (size_t)lk_shape_count(&replica->schedule.values[value].shape) *
           lk_dtype_bytes(lk_replica_value_stored(replica, value));
}

/* Notes what departs here. */
static void note_crossings(const struct lk_replica *replica, struct lk_group_plan *plan)
{
    const struct lk_schedule *s = &replica->schedule;
    for (int i = 0; i < s->op_count; i++) {
        const int number = lk_crossing_of(replica, i);
        if (number < 0 || s->ops[i].op != &lk_op_depart)
            continue;
        const struct lk_crossing *crossing = lk_crossing_get(replica, number);
        struct lk_place_crossing *found = &plan->crossings[number];
        const bool is_weights = crossing->value < 0;
        const size_t bytes = is_weights ? (size_t)lk_replica_params_span(replica, i) *
                                              lk_dtype_bytes(replica->config.real)
                                        : sample_bytes(replica, s->ops[i].x[0]);
        const size_t copies = is_weights ? (size_t)replica->tiling.shards : 1;
        *found =
            (struct lk_place_crossing){.node = s->ops[i].node,
                                       .is_weights = is_weights,
                                       .from = crossing->from,
                                       .to = crossing->to,
                                       .forward = bytes,
                                       .backward = crossing->has_gradient ? bytes * copies : 0};
    }
}

enum lk_status lk_group_plan(const struct lk_replica_config *config,
                             struct lk_device *const *devices, int count, int in_flight,
                             struct lk_group_plan *plan)
{
    *plan = (struct lk_group_plan){.count = count};
    struct lk_replica_config own = *config;
    own.places = count;
    own.few_samples &= lk_devices_take_planes(devices, count);
    for (int i = 0; i < count; i++) {
        struct lk_replica *replica = NULL;
        own.device = devices[i];
        own.place = i;
        LK_TRY(lk_replica_make(&own, &replica));
        plan->crossing_count = lk_crossing_count(replica);
        plan->places[i] = ask(replica, in_flight);
        note_crossings(replica, plan);
        lk_replica_destroy(replica);
    }
    return LK_OK;
}
