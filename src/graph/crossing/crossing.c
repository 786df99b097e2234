/* What crosses between the replicas of a group: the operations that stand for it, and moving it
 * over the host. */
#include "graph/crossing.h"

#include "base/clock.h"
#include "base/fail.h"
#include "graph/crossing/checked_copy.h"
#include "graph/replica_internal.h"

/* --- the operations ---------------------------------------------------------------------- */

static enum lk_status infer(struct lk_op_shapes *shapes)
{
    (void)shapes;
    return LK_OK;
}

static enum lk_status prepare(struct lk_op_setup *setup)
{
    (void)setup;
    return LK_OK;
}

static enum lk_status send(struct lk_crossing_end *end, const struct lk_buffer *from)
{
    struct lk_transfer_buffer *to = end->departs ? end->value : end->gradient;
    const size_t bytes = end->departs ? end->bytes : end->gradient_bytes;
    LK_TRY(lk_checked_copy_send(end->checked, from, lk_transfer_buffer_on_device(to), bytes));
    LK_TRY(lk_transfer_buffer_enqueue_to_host(to, lk_checked_bytes(bytes)));
    end->is_sent = true;
    return LK_OK;
}

/* Of values, and of weights, which have no x, y nor dx. */
static enum lk_status depart(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    struct lk_crossing_end *end = setup->state;
    return send(end, end->weights ? end->weights : run->x[0]);
}

/* The host gets the memory for what comes next at once, behind the copy from it alone: later it
 * would wait for all that the device has been given by then. */
static enum lk_status get_ready(struct lk_transfer_buffer *in, size_t bytes)
{
    return lk_transfer_buffer_enqueue_to_host(in, lk_checked_bytes(bytes));
}

static enum lk_status come_back(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct lk_crossing_end *end = setup->state;
    LK_TRY(lk_checked_copy_receive(end->checked, lk_transfer_buffer_on_device(end->gradient),
                                   end->weights ? run->dw[0] : run->dx[0], end->gradient_bytes,
                                   lk_sent_slot((struct lk_sent){end->number, true})));
    return get_ready(end->gradient, end->gradient_bytes);
}

static enum lk_status arrive(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct lk_crossing_end *end = setup->state;
    LK_TRY(lk_checked_copy_receive(end->checked, lk_transfer_buffer_on_device(end->value),
                                   end->weights ? end->weights : run->y, end->bytes,
                                   lk_sent_slot((struct lk_sent){end->number, false})));
    return get_ready(end->value, end->bytes);
}

static enum lk_status send_back(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    return send(setup->state, run->dy);
}

enum lk_status lk_crossing_send_dw(const struct lk_replica *replica, int i,
                                   const struct lk_buffer *dw)
{
    return send(&replica->ends[replica->prepared[i].returns - 1], dw);
}

static const struct lk_option no_options[] = {{.kind = LK_OPTION_END}};

const struct lk_op lk_op_depart = {.name = "depart",
                                   .options = no_options,
                                   .min_inputs = 1,
                                   .max_inputs = 1,
                                   .infer = infer,
                                   .prepare = prepare,
                                   .forward = depart,
                                   .backward = come_back};
const struct lk_op lk_op_arrive = {.name = "arrive",
                                   .options = no_options,
                                   .infer = infer,
                                   .prepare = prepare,
                                   .forward = arrive,
                                   .backward = send_back};

/* --- members of a group ------------------------------------------------------------------ */

void lk_replica_join(struct lk_replica *replica, struct lk_replica *const *group)
{
    replica->group = group;
}

void lk_crossings_check(struct lk_replica *replica, struct lk_checked_copy *checked)
{
    replica->checked = checked;
}

int lk_crossing_slots(const struct lk_replica *replica)
{
    return 2 * replica->crossing_count;
}

int lk_sent_slot(struct lk_sent sent)
{
    return 2 * sent.number + sent.in_backward;
}

struct lk_sent lk_sent_of_slot(int slot)
{
    return (struct lk_sent){.number = slot / 2, .in_backward = slot % 2};
}

struct lk_replica *lk_group_member(const struct lk_replica *any, int place)
{
    return any->group[place];
}

struct lk_device *lk_group_device(const struct lk_replica *any, int place)
{
    return any->group[place]->config.device;
}

int lk_group_free_slot(const struct lk_replica *replica)
{
    return (replica->loaded + 1) % LK_REPLICA_SLOTS;
}

int lk_group_places(const struct lk_replica *any)
{
    return any->config.places > 1 ? any->config.places : 1;
}

int lk_group_place_of_param(const struct lk_replica *any, int param)
{
    for (int p = 0; p < any->config.places; p++)
        if (!any->group[p]->params[param].is_elsewhere &&
            !any->group[p]->params[param].is_borrowed)
            return p;
    return 0;
}

/* --- an end ------------------------------------------------------------------------------ */

int lk_crossing_of(const struct lk_replica *replica, int i)
{
    return replica->schedule.ops[i].crossing - 1;
}

/* Weights of an operation lie side by side. */
static enum lk_status build_weights(struct lk_replica *replica, int i,
                                    struct lk_crossing_end *end)
{
    const size_t real = lk_dtype_bytes(replica->config.real);
    const struct lk_param *first = &replica->params[replica->prepared[i].param[0]];
    end->bytes = (size_t)lk_replica_params_span(replica, i) * real;
    end->gradient_bytes = end->bytes * (size_t)replica->tiling.shards;
    return lk_buffer_view(replica->weights, (size_t)first->offset * real, end->bytes,
                          &end->weights);
}

static enum lk_status build_end(struct lk_replica *replica, int i)
{
    const struct lk_scheduled_op *scheduled = &replica->schedule.ops[i];
    const int number = lk_crossing_of(replica, i);
    struct lk_crossing_end *end = &replica->ends[number];
    struct lk_device *device = replica->config.device;
    end->number = number;
    end->checked = replica->checked;
    end->departs = scheduled->op == &lk_op_depart;
    replica->prepared[i].setup.state = end;
    if (replica->crossings[number].value < 0)
        LK_TRY(build_weights(replica, i, end));
    else
        end->bytes = end->gradient_bytes =
            lk_recompute_bytes(replica, end->departs ? scheduled->x[0] : scheduled->y);
    LK_TRY(lk_transfer_buffer_create(device, lk_checked_bytes(end->bytes),
                                     end->departs ? LK_DEVICE_SENDS : LK_HOST_WRITES,
                                     &end->value));
    if (!replica->crossings[number].has_gradient)
        return LK_OK;
    return lk_transfer_buffer_create(device, lk_checked_bytes(end->gradient_bytes),
                                     end->departs ? LK_HOST_WRITES : LK_DEVICE_SENDS,
                                     &end->gradient);
}

enum lk_status lk_crossings_build(struct lk_replica *replica)
{
    for (int i = 0; i < replica->schedule.op_count; i++)
        if (lk_crossing_of(replica, i) >= 0)
            LK_TRY(build_end(replica, i));
    return LK_OK;
}

void lk_crossings_clear(struct lk_replica *replica)
{
    for (int c = 0; replica->ends && c < replica->crossing_count; c++) {
        lk_transfer_buffer_destroy(replica->ends[c].value);
        lk_transfer_buffer_destroy(replica->ends[c].gradient);
        lk_buffer_destroy(replica->ends[c].weights);
    }
}

/* --- running ----------------------------------------------------------------------------- */

void lk_crossings_begin(struct lk_replica *replica)
{
    for (int c = 0; c < replica->crossing_count; c++)
        replica->ends[c].has_value = replica->ends[c].has_gradient = false;
}

bool lk_crossing_is_awaited(const struct lk_replica *replica, int i, bool in_backward)
{
    const int c = lk_crossing_of(replica, i);
    if (c < 0)
        return false;
    const struct lk_crossing_end *end = &replica->ends[c];
    if (end->departs != in_backward)
        return false;
    return in_backward ? end->gradient && !end->has_gradient : !end->has_value;
}

int lk_crossing_count(const struct lk_replica *replica)
{
    return replica->crossing_count;
}

const struct lk_crossing *lk_crossing_get(const struct lk_replica *replica, int number)
{
    return &replica->crossings[number];
}

const char *lk_crossing_name(const struct lk_replica *replica, int number)
{
    const struct lk_schedule *s = &replica->schedule;
    for (int i = 0; i < s->op_count; i++)
        if (lk_crossing_of(replica, i) == number)
            return s->ops[i].node->name;
    return "";
}

bool lk_crossing_take_sent(struct lk_replica *replica, struct lk_sent *sent)
{
    for (int c = 0; c < replica->crossing_count; c++)
        if (replica->ends[c].is_sent) {
            replica->ends[c].is_sent = false;
            *sent = (struct lk_sent){.number = c, .in_backward = !replica->ends[c].departs};
            return true;
        }
    return false;
}

/* The transfer buffers of what is sent: where it comes from, and where it goes to. */
struct way {
    struct lk_transfer_buffer *out, *in;
    size_t bytes;
};

static struct way way_of(const struct lk_replica *from, const struct lk_replica *to,
                         struct lk_sent sent)
{
    const struct lk_crossing_end *out = &from->ends[sent.number], *in = &to->ends[sent.number];
    return sent.in_backward ? (struct way){out->gradient, in->gradient, in->gradient_bytes}
                            : (struct way){out->value, in->value, in->bytes};
}

bool lk_crossing_is_there(const struct lk_replica *from, const struct lk_replica *to,
                          struct lk_sent sent)
{
    const struct way way = way_of(from, to, sent);
    return lk_transfer_buffer_is_there(way.out) && lk_transfer_buffer_is_there(way.in);
}

/* Both devices' turns end: what comes in next turn goes through the same memory. */
enum lk_status lk_crossing_move(struct lk_replica *from, struct lk_replica *to,
                                struct lk_sent sent, struct lk_crossing_tally *tally)
{
    struct lk_crossing_end *end = &to->ends[sent.number];
    const struct way way = way_of(from, to, sent);
    const size_t all = lk_checked_bytes(way.bytes);
    void *source = NULL, *target = NULL;
    LK_TRY(lk_transfer_buffer_enqueue_to_host(way.in, all));
    LK_TRY(lk_transfer_buffer_wait(way.in, &target));
    LK_TRY(lk_transfer_buffer_wait(way.out, &source));
    const double start = lk_seconds();
    if (!lk_checked_copy_move(source, target, way.bytes))
        tally->changed = lk_sent_slot(sent) + 1;
    tally->seconds += lk_seconds() - start;
    tally->bytes += (double)way.bytes;
    LK_TRY(lk_transfer_buffer_enqueue_to_device(way.in, all));
    LK_TRY(lk_transfer_buffer_enqueue_to_device(way.out, 0));
    *(sent.in_backward ? &end->has_gradient : &end->has_value) = true;
    return LK_OK;
}
