/* Divides a schedule among the devices of a group: finds where values cross from one place to
 * another, and leaves a replica the operations of its place. */
#include "base/fail.h"
#include "graph/replica_internal.h"
#include <string.h>

static int place_of(const struct lk_schedule *s, int i)
{
    return lk_node_place(s->ops[i].node);
}

static int reads(const struct lk_scheduled_op *op, int value)
{
    int times = 0;
    for (int j = 0; j < op->shapes.inputs; j++)
        times += op->x[j] == value;
    return times;
}

/* --- finding crossings ------------------------------------------------------------------- */

static enum lk_status add_crossing(struct lk_replica *replica, const struct lk_crossing *found)
{
    if (replica->crossing_count == LK_MOST_CROSSINGS)
        return lk_fail(LK_E_UNSUPPORTED,
                       "more than %d values, and uses of weights, cross between devices",
                       LK_MOST_CROSSINGS);
    replica->crossings[replica->crossing_count++] = *found;
    return LK_OK;
}

/* The first of the readers at the end of the schedule that are all at one place. */
static int begin_of_last_run(const struct lk_schedule *s, int value)
{
    int first = -1, place = -1;
    for (int i = s->op_count - 1; i >= 0; i--) {
        if (!reads(&s->ops[i], value))
            continue;
        if (place >= 0 && place_of(s, i) != place)
            break;
        place = place_of(s, i);
        first = i;
    }
    return first;
}

static int last_reader_at(const struct lk_schedule *s, int value, int place)
{
    int last = -1;
    for (int i = 0; i < s->op_count; i++)
        if (reads(&s->ops[i], value) && place_of(s, i) == place)
            last = i;
    return last;
}

/* Backward adds the gradients of a value's readers one after the other, beginning with the last
 * reader. Those at the end that are at one place are added there and cross as one sum. Any
 * other one that is elsewhere crosses by itself, so that sums keep their order. Without
 * gradients each place gets the value once. */
static enum lk_status find_crossings_of(struct lk_replica *replica, int value)
{
    const struct lk_schedule *s = &replica->schedule;
    const bool has_gradient = s->values[value].wants_gradient;
    const int run = begin_of_last_run(s, value), from = place_of(s, s->values[value].producer);
    struct lk_crossing found = {.value = value,
                                .from = from,
                                .has_gradient = has_gradient,
                                .after = s->values[value].producer};
    uint32_t served = 0; /* places, where there are no gradients */
    for (int i = 0; i < s->op_count; i++) {
        if (!reads(&s->ops[i], value))
            continue;
        found.to = place_of(s, i);
        found.first = found.last = i;
        if (found.to == from) {
            found.after = i;
            continue;
        }
        if (i == run || !has_gradient)
            found.last = last_reader_at(s, value, found.to);
        else if (reads(&s->ops[i], value) > 1)
            return lk_fail(LK_E_UNSUPPORTED,
                           "'%s' reads what '%s' makes more than once, and others read it too: "
                           "they cannot be on two devices",
                           s->ops[i].node->name, s->ops[s->values[value].producer].node->name);
        if (!(served >> found.to & 1))
            LK_TRY(add_crossing(replica, &found));
        if (i == run && has_gradient)
            break;
        served |= has_gradient ? 0 : UINT32_C(1) << found.to;
    }
    return LK_OK;
}

/* --- weights of several places ------------------------------------------------------------ */

int lk_replica_lends(const struct lk_replica *replica, int i)
{
    const struct lk_schedule *s = &replica->schedule;
    const int place = replica->config.place;
    if (replica->config.places <= 1 || place_of(s, i) == place)
        return -1;
    for (int j = i + 1; j < s->op_count; j++)
        if (s->ops[j].shapes.params > 0 && place_of(s, j) == place &&
            lk_node_owner(s->ops[j].node) == lk_node_owner(s->ops[i].node))
            return j;
    return -1;
}

/* Whether the gradients of all uses have to be added in the order of the uses, whatever place
 * each has. The sum of two is the same in either order. */
static bool needs_order(const struct lk_schedule *s, int first)
{
    const struct lk_node *owner = lk_node_owner(s->ops[first].node);
    int uses = 0;
    for (int i = 0; i < s->op_count; i++)
        uses += s->ops[i].shapes.params > 0 && lk_node_owner(s->ops[i].node) == owner;
    return uses > 2;
}

/* Weights of a head that are first used in the frozen part are where that part has them. */
static enum lk_status check_owned(const struct lk_replica *replica, int i)
{
    const struct lk_scheduled_op *op = &replica->schedule.ops[i];
    if (op->shapes.params == 0 || lk_node_place(op->node) != replica->config.place)
        return LK_OK;
    const struct lk_param *param = &replica->params[replica->prepared[i].param[0]];
    return !param->is_elsewhere && !param->is_borrowed
               ? LK_OK
               : lk_fail(LK_E_UNSUPPORTED,
                         "the weights of '%s' are used in the frozen part and behind it: both "
                         "uses need one place",
                         lk_node_owner(op->node)->name);
}

static enum lk_status find_weights(struct lk_replica *replica)
{
    const struct lk_schedule *s = &replica->schedule;
    for (int i = 0; i < s->op_count; i++) {
        const int first = s->ops[i].shapes.params > 0 ? lk_schedule_first_use(s, i) : i;
        if (place_of(s, first) == place_of(s, i)) {
            LK_TRY(first == i ? check_owned(replica, i) : LK_OK);
            continue;
        }
        const struct lk_crossing found = {.value = -1,
                                          .from = place_of(s, first),
                                          .to = place_of(s, i),
                                          .after = first,
                                          .first = i,
                                          .last = i,
                                          .has_gradient = s->ops[i].wants_dw,
                                          .is_in_order = needs_order(s, first)};
        LK_TRY(add_crossing(replica, &found));
    }
    return LK_OK;
}

/* --- refusals ---------------------------------------------------------------------------- */

static enum lk_status check_places(const struct lk_replica *replica)
{
    const struct lk_schedule *s = &replica->schedule;
    for (int i = 0; i < s->op_count; i++) {
        if (place_of(s, i) >= replica->config.places)
            return lk_fail(LK_E_ARGUMENT, "'%s' is placed on device %d of a group of %d",
                           s->ops[i].node->name, place_of(s, i), replica->config.places);
        if (s->ops[i].misplaced)
            return lk_fail(LK_E_ARGUMENT,
                           "'%s' and '%s' are computed as one: they need one place, not %d "
                           "and %d",
                           s->ops[i].node->name, s->ops[i].misplaced->name, place_of(s, i),
                           lk_node_place(s->ops[i].misplaced));
    }
    return LK_OK;
}

/* Whether place `to` is reached from `from` along crossings. */
static bool reaches(const struct lk_replica *replica, int from, int to)
{
    uint32_t reached = UINT32_C(1) << from, before = 0;
    while (reached != before) {
        before = reached;
        for (int c = 0; c < replica->crossing_count; c++)
            if (replica->crossings[c].value >= 0 && reached >> replica->crossings[c].from & 1)
                reached |= UINT32_C(1) << replica->crossings[c].to;
    }
    return reached >> to & 1;
}

/* The node that has put this one on device 0, since it reads an input and names no device;
 * NULL: some node before it names one. */
static const struct lk_node *find_silent(const struct lk_node *node)
{
    while (node->place < 0 && node->input_nodes[0]->op)
        node = node->input_nodes[0];
    return node->place < 0 ? node : NULL;
}

/* Of the nodes that cross in a circle, one that is in it because nobody has said where it is.
 */
static const struct lk_node *find_silent_of_circle(const struct lk_replica *replica, int of)
{
    const struct lk_schedule *s = &replica->schedule;
    const struct lk_node *found = NULL;
    for (int c = 0; c < replica->crossing_count && !found; c++) {
        const struct lk_crossing *crossing = &replica->crossings[c];
        if (crossing->value < 0 || !reaches(replica, crossing->to, of) ||
            !reaches(replica, of, crossing->from))
            continue;
        found = find_silent(s->ops[crossing->first].node);
        if (!found)
            found = find_silent(s->ops[s->values[crossing->value].producer].node);
    }
    return found;
}

static enum lk_status check_circles(const struct lk_replica *replica)
{
    const struct lk_schedule *s = &replica->schedule;
    for (int c = 0; c < replica->crossing_count; c++) {
        const struct lk_crossing *crossing = &replica->crossings[c];
        if (crossing->value < 0 || !reaches(replica, crossing->to, crossing->from))
            continue;
        const struct lk_node *silent = find_silent_of_circle(replica, crossing->from);
        return lk_fail(LK_E_ARGUMENT,
                       "devices %d and %d of a group wait for each other: '%s' on %d reads "
                       "'%s' on %d, and something there reads what comes from it%s%s%s",
                       crossing->from, crossing->to, s->ops[crossing->first].node->name,
                       crossing->to, s->ops[s->values[crossing->value].producer].node->name,
                       crossing->from, silent ? "; '" : "", silent ? silent->name : "",
                       silent ? "' names no device, so it is on 0" : "");
    }
    return LK_OK;
}

/* --- the schedule of a place -------------------------------------------------------------- */

struct division {
    struct lk_replica *replica;
    struct lk_scheduled_op *ops;
    struct lk_prepared *prepared;
    int count;
};

static void keep_op(struct division *d, int i)
{
    struct lk_scheduled_op *op = &d->ops[d->count];
    *op = d->replica->schedule.ops[i];
    memcpy(d->prepared[d->count].param, d->replica->prepared[i].param,
           sizeof d->prepared[i].param);
    for (int c = 0; c < d->replica->crossing_count; c++) {
        const struct lk_crossing *crossing = &d->replica->crossings[c];
        if (crossing->to != d->replica->config.place || i < crossing->first ||
            i > crossing->last)
            continue;
        if (crossing->value < 0)
            d->prepared[d->count].returns = crossing->has_gradient ? c + 1 : 0;
        for (int j = 0; j < op->shapes.inputs; j++)
            if (op->x[j] == crossing->value)
                op->x[j] = d->replica->first_crossed + c;
    }
    d->count++;
}

/* Adds what stands for crossing c at this place. What is not a value that arrives makes nothing
 * that is read. */
static void add_end(struct division *d, int c)
{
    const struct lk_crossing *crossing = &d->replica->crossings[c];
    struct lk_schedule *s = &d->replica->schedule;
    struct lk_value *made = &s->values[d->replica->first_crossed + c];
    struct lk_scheduled_op *op = &d->ops[d->count];
    const bool departs = crossing->from == d->replica->config.place;
    const bool is_value = crossing->value >= 0;
    const struct lk_value *crosses = is_value ? &s->values[crossing->value] : NULL;
    *made = is_value && !departs ? (struct lk_value){.shape = crosses->shape,
                                                     .dtype = crosses->dtype,
                                                     .wants_gradient = crossing->has_gradient,
                                                     .in_planes = crosses->in_planes}
                                 : (struct lk_value){.dtype = LK_F32};
    const int named = is_value  ? crosses->producer
                      : departs ? crossing->after
                                : crossing->first;
    *op = (struct lk_scheduled_op){.node = s->ops[named].node,
                                   .op = departs ? &lk_op_depart : &lk_op_arrive,
                                   .y = d->replica->first_crossed + c,
                                   .crossing = c + 1,
                                   .has_backward = crossing->has_gradient,
                                   .in_planes = is_value && crosses->in_planes,
                                   .shapes = {.y = made->shape}};
    if (is_value && departs) {
        op->shapes.inputs = 1;
        op->shapes.x[0] = crosses->shape;
        op->x[0] = crossing->value;
        op->wants_dx[0] = crossing->has_gradient;
    }
    if (!is_value) {
        op->has_backward = departs && crossing->has_gradient;
        op->wants_dw = op->has_backward;
        op->shapes.params = s->ops[crossing->after].shapes.params;
        memcpy(op->shapes.param, s->ops[crossing->after].shapes.param, sizeof op->shapes.param);
        memcpy(d->prepared[d->count].param, d->replica->prepared[crossing->after].param,
               sizeof d->prepared[d->count].param);
    }
    d->count++;
}

/* The operation behind which something departs; -1: it departs before all. Weights do, so that
 * nobody waits for them, and their gradients come last; but where gradients are added in order
 * they stand where the use that is elsewhere would stand. */
static int departs_behind(const struct lk_crossing *crossing)
{
    if (crossing->value >= 0)
        return crossing->after;
    return crossing->is_in_order ? crossing->first : -1;
}

static void add_departures(struct division *d, int i)
{
    const struct lk_crossing *crossings = d->replica->crossings;
    for (int c = 0; c < d->replica->crossing_count; c++)
        if (crossings[c].from == d->replica->config.place && departs_behind(&crossings[c]) == i)
            add_end(d, c);
}

static void divide(struct division *d)
{
    struct lk_replica *replica = d->replica;
    struct lk_schedule *s = &replica->schedule;
    const int place = replica->config.place;
    add_departures(d, -1);
    for (int i = 0; i < s->op_count; i++) {
        for (int c = 0; c < replica->crossing_count; c++)
            if (replica->crossings[c].to == place && replica->crossings[c].first == i)
                add_end(d, c);
        if (place_of(s, i) == place)
            keep_op(d, i);
        add_departures(d, i);
    }
}

static enum lk_status take(struct lk_replica *replica, int count, size_t bytes, void *pointer)
{
    void *memory = NULL;
    LK_TRY(lk_arena_allocate(&replica->arena, (size_t)(count + 1) * bytes, &memory));
    memcpy(pointer, &memory, sizeof memory);
    return LK_OK;
}

enum lk_status lk_replica_divide(struct lk_replica *replica)
{
    struct lk_schedule *s = &replica->schedule;
    struct division d = {.replica = replica};
    struct lk_value *values = NULL;
    if (replica->config.places <= 1)
        return LK_OK;
    LK_TRY(check_places(replica));
    LK_TRY(take(replica, LK_MOST_CROSSINGS, sizeof *replica->crossings, &replica->crossings));
    for (int i = 0; i < s->op_count; i++)
        LK_TRY(find_crossings_of(replica, s->ops[i].y));
    LK_TRY(check_circles(replica));
    LK_TRY(find_weights(replica));
    const int most = s->op_count + replica->crossing_count;
    LK_TRY(take(replica, replica->crossing_count, sizeof *replica->ends, &replica->ends));
    LK_TRY(take(replica, most, sizeof *d.ops, &d.ops));
    LK_TRY(take(replica, most, sizeof *d.prepared, &d.prepared));
    LK_TRY(take(replica, s->value_count + replica->crossing_count, sizeof *values, &values));
    memcpy(values, s->values, (size_t)s->value_count * sizeof *values);
    s->values = values;
    replica->first_crossed = s->value_count;
    divide(&d);
    s->value_count += replica->crossing_count;
    for (int v = 0; v < s->value_count; v++)
        s->values[v].producer = -1;
    for (int i = 0; i < d.count; i++)
        s->values[d.ops[i].y].producer = i;
    s->ops = d.ops;
    s->op_count = d.count;
    replica->prepared = d.prepared;
    return LK_OK;
}
