/* Describes a schedule to the search, and takes the best proposal that fits. */
#include "graph/place/choose.h"

#include "base/fail.h"
#include "graph/place/plan.h"
#include "graph/place/search.h"
#include "graph/planes.h"
#include "graph/replica_internal.h"
#include <math.h>
#include <stdlib.h>

/* Each end of a crossing takes as long for a byte as for so many floating-point operations: a
 * CPU copies it once or twice, a GPU sends it over a bus. */
enum { FLOPS_PER_BYTE_OF_CPU = 32, FLOPS_PER_BYTE_OF_GPU = 256 };

struct choosing {
    struct lk_replica_config config;
    struct lk_device *const *devices;
    int count, in_flight;
    struct lk_replica *whole; /* on the first device */
    const int *others; /* places of nodes of the part that is not divided; NULL: they have none
                        */
    const struct lk_measured_ops *measured;
    double per_ms; /* estimated work of a measured millisecond; 0: nothing was measured */
    struct lk_place_search search;
};

/* --- what is to be divided --------------------------------------------------------------- */

static double flops_per_byte(const struct choosing *c)
{
    if (c->per_ms > 0 && c->measured->copy_ms_per_mb > 0)
        return c->per_ms * 1e-6 * c->measured->copy_ms_per_mb;
    return lk_device_info(c->devices[0])->device_class == LK_CLASS_GPU ? FLOPS_PER_BYTE_OF_GPU
                                                                       : FLOPS_PER_BYTE_OF_CPU;
}

static int count_uses(const struct lk_schedule *s, int first)
{
    int uses = 0;
    for (int i = 0; i < s->op_count; i++)
        uses += s->ops[i].shapes.params > 0 &&
                lk_node_owner(s->ops[i].node) == lk_node_owner(s->ops[first].node);
    return uses;
}

static int64_t count_parameters(const struct lk_scheduled_op *op)
{
    int64_t count = 0;
    for (int j = 0; j < op->shapes.params; j++)
        count += lk_shape_count(&op->shapes.param[j].shape);
    return count;
}

/* What is measured is put in units of estimated work, in which all else is. */
static void find_unit(struct choosing *c)
{
    const struct lk_measured_ops *measured = c->measured;
    double ms = 0, work = 0;
    if (!measured || measured->count != c->whole->schedule.op_count)
        return;
    for (int i = 0; i < measured->count; i++) {
        ms += measured->ms[i];
        work += measured->ms[i] > 0 ? lk_place_work(c->whole, i) : 0;
    }
    c->per_ms = ms > 0 ? work / ms : 0;
}

static double work_of(const struct choosing *c, int i)
{
    return c->per_ms > 0 && c->measured->ms[i] > 0 ? c->per_ms * c->measured->ms[i]
                                                   : lk_place_work(c->whole, i);
}

/* Memory is estimated as if nothing were computed again: proposals that hold less are made from
 * it, and planned to the byte. */
static struct lk_place_op describe(const struct choosing *c, int i)
{
    const struct lk_schedule *s = &c->whole->schedule;
    const struct lk_scheduled_op *op = &s->ops[i];
    const struct lk_replica_config *config = &c->config;
    const double per_byte = flops_per_byte(c), real = (double)lk_dtype_bytes(config->real);
    const double value = (double)lk_recompute_bytes(c->whole, op->y);
    const bool has_weights = op->shapes.params > 0;
    const int first = has_weights ? lk_schedule_first_use(s, i) : i;
    const double weights = (double)count_parameters(op) * real;
    struct lk_place_op made = {.work = work_of(c, i),
                               .crosses =
                                   value * per_byte * (s->values[op->y].wants_gradient ? 2 : 1),
                               .has_gradient = s->values[op->y].wants_gradient,
                               .first_use = first,
                               .uses = has_weights ? count_uses(s, first) : 1,
                               .inputs = op->shapes.inputs};
    made.held = (value + (double)c->whole->prepared[i].setup.saved_bytes) * c->in_flight;
    if (first == i && op->wants_dw)
        made.held +=
            weights * (1 + config->shards + config->optimizer_arrays + config->gradient_sums);
    else if (first == i)
        made.held += weights;
    if (first != i) {
        made.weights = weights * per_byte * (op->wants_dw ? 1 + config->shards : 1);
        made.weights_forward = weights * per_byte;
    }
    made.forward = made.work / lk_place_passes(c->whole, i);
    for (int j = 0; j < op->shapes.inputs; j++)
        made.makers[j] = s->values[op->x[j]].producer;
    return made;
}

/* Describes the schedule. Compute units tell devices of one kind apart, of which one is a part
 * of a larger one. */
static enum lk_status begin_search(struct choosing *c)
{
    struct lk_place_search *search = &c->search;
    const int ops = c->whole->schedule.op_count;
    void *memory = NULL;
    search->op_count = ops;
    search->places = c->count;
    for (int p = 0; p < c->count; p++)
        search->speeds[p] = fmax(1, lk_device_info(c->devices[p])->compute_units);
    LK_TRY(lk_arena_allocate(&search->arena, (size_t)(ops + 1) * sizeof(struct lk_place_op),
                             &memory));
    struct lk_place_op *described = memory;
    for (int i = 0; i < ops; i++) {
        described[i] = describe(c, i);
        described[i].crosses /= search->speeds[0];
        described[i].weights /= search->speeds[0];
        described[i].weights_forward /= search->speeds[0];
    }
    search->ops = described;
    search->micro_batches = c->measured ? c->measured->micro_batches : 0;
    return lk_place_search_begin(search);
}

static enum lk_status propose(struct lk_place_search *search)
{
    LK_TRY(lk_place_propose_branches(search));
    LK_TRY(lk_place_propose_cuts(search));
    lk_place_sort(search);
    return LK_OK;
}

/* --- choosing ---------------------------------------------------------------------------- */

static void clear_places(const struct lk_graph *graph)
{
    for (int i = 0; i < graph->count; i++)
        lk_node_set_place(graph->nodes[i], -1);
}

/* Whether operation i turns images (graph/planes): it is computed where its node is. */
static bool is_turning(const struct lk_schedule *s, int i)
{
    return s->ops[i].op != s->ops[i].node->op;
}

/* A place may have nothing but turnings, which are elsewhere then. */
static bool has_idle_place(const struct choosing *c, const struct lk_place_proposal *proposal)
{
    const struct lk_schedule *s = &c->whole->schedule;
    uint32_t busy = 0;
    for (int i = 0; i < s->op_count; i++)
        if (!is_turning(s, i))
            busy |= UINT32_C(1) << proposal->places[i];
    return busy != (UINT32_C(1) << c->count) - 1;
}

/* What an operation has absorbed, and views of what it makes, have no place of their own: they
 * follow it, as turnings do. */
static void put(const struct choosing *c, const struct lk_place_proposal *proposal)
{
    const struct lk_graph *graph = c->config.outputs[0]->graph;
    const struct lk_schedule *s = &c->whole->schedule;
    for (int i = 0; i < graph->count; i++)
        lk_node_set_place(graph->nodes[i], c->others ? c->others[i] : -1);
    for (int i = 0; i < s->op_count; i++)
        if (!is_turning(s, i))
            lk_node_set_place(graph->nodes[s->ops[i].node->index], proposal->places[i]);
}

/* What a plan has shown of a proposal. */
struct judged {
    bool fits;
    double time; /* with what backward computes again */
    size_t most; /* bytes of the fullest place */
};

/* Validation runs the whole graph where its parts are, so a head that is divided by itself must
 * not send back what the frozen part has sent: places would wait for each other. */
static enum lk_status check_whole(const struct choosing *c)
{
    struct lk_group_plan plan;
    struct lk_replica_config whole = c->config;
    whole.part = LK_PART_ALL;
    whole.training = false;
    whole.shards = 1;
    whole.optimizer_arrays = whole.gradient_sums = 0;
    return c->config.part == LK_PART_HEAD
               ? lk_group_plan(&whole, c->devices, c->count, 1, &plan)
               : LK_OK;
}

static enum lk_status judge(const struct choosing *c, const struct lk_place_proposal *proposal,
                            struct judged *judged)
{
    struct lk_group_plan plan;
    double again = 0;
    put(c, proposal);
    LK_TRY(check_whole(c));
    LK_TRY(lk_group_plan(&c->config, c->devices, c->count, c->in_flight, &plan));
    *judged = (struct judged){.fits = true};
    for (int p = 0; p < c->count; p++) {
        const struct lk_place_plan *place = &plan.places[p];
        judged->fits &= place->fits;
        again = fmax(again, place->bytes.again);
        if (place->bytes.total > judged->most)
            judged->most = place->bytes.total;
    }
    judged->time = proposal->time * (1 + again / 3); /* forward is a third of the work */
    return LK_OK;
}

/* Says what does not fit, in the words of the replica that does not. */
static enum lk_status refuse(const struct choosing *c, const struct lk_place_proposal *least)
{
    if (!least)
        return lk_fail(LK_E_UNSUPPORTED,
                       "place: auto: %d operations can be divided among %d devices in no way",
                       c->search.op_count, c->count);
    struct lk_replica_config own = c->config;
    own.places = c->count;
    put(c, least);
    for (int p = 0; p < c->count; p++) {
        struct lk_replica *replica = NULL;
        own.device = c->devices[p];
        own.place = p;
        const enum lk_status status = lk_replica_create(&own, &replica);
        lk_replica_destroy(replica);
        if (status != LK_OK)
            return lk_fail_within(status,
                                  "place: auto: of the divisions among %d devices that were "
                                  "planned none fits; device %d of that which needs the least",
                                  c->count, p);
    }
    return lk_fail(LK_E_DEVICE_MEMORY,
                   "place: auto: of the divisions among %d devices that were planned none fits "
                   "with %d micro-batches on their way at a time",
                   c->count, c->in_flight);
}

/* Proposals come in the order of their times. One that computes much again may take longer than
 * a later one, but never less than it was estimated to. */
static enum lk_status take_best(const struct choosing *c)
{
    const struct lk_place_proposal *best = NULL, *least = NULL;
    double time = INFINITY;
    size_t least_bytes = SIZE_MAX;
    for (int i = 0; i < c->search.proposal_count; i++) {
        const struct lk_place_proposal *proposal = &c->search.proposals[i];
        struct judged judged;
        if (proposal->time >= time)
            break;
        if (has_idle_place(c, proposal))
            continue;
        const enum lk_status status = judge(c, proposal, &judged);
        if (status == LK_E_ARGUMENT || status == LK_E_UNSUPPORTED) {
            lk_error_clear(); /* the graph cannot be divided so */
            continue;
        }
        LK_TRY(status);
        if (judged.fits && judged.time < time) {
            best = proposal;
            time = judged.time;
        }
        if (judged.most < least_bytes) {
            least = proposal;
            least_bytes = judged.most;
        }
    }
    if (!best)
        return refuse(c, least);
    put(c, best);
    return LK_OK;
}

static enum lk_status begin(struct choosing *c)
{
    c->config.few_samples &= lk_devices_take_planes(c->devices, c->count);
    struct lk_replica_config whole = c->config;
    whole.device = c->devices[0];
    whole.places = 0;
    whole.recompute = LK_RECOMPUTE_OFF;
    LK_TRY(lk_replica_make(&whole, &c->whole));
    find_unit(c);
    return begin_search(c);
}

static enum lk_status choose(struct choosing *c)
{
    LK_TRY(begin(c));
    LK_TRY(propose(&c->search));
    return take_best(c);
}

static enum lk_status choose_part(const struct choosing *of)
{
    struct choosing c = *of;
    LK_TRY(lk_choices_copy(of->config.choices, &c.config.choices));
    const enum lk_status status = choose(&c);
    lk_replica_destroy(c.whole);
    lk_place_search_clear(&c.search);
    lk_choices_destroy(c.config.choices);
    return status;
}

/* --- a head, and what is frozen before it ------------------------------------------------ */

/* What runs before the head, a shard at a time and forward alone. */
static struct choosing frozen_of(const struct choosing *head)
{
    struct choosing c = {
        .config = head->config, .devices = head->devices, .count = head->count, .in_flight = 1};
    c.config.part = LK_PART_FROZEN;
    c.config.batch = lk_divide_up(c.config.batch, c.config.shards);
    c.config.shards = 1;
    c.config.optimizer_arrays = c.config.gradient_sums = 0;
    return c;
}

/* What cannot be divided is left to the first device. */
static enum lk_status choose_frozen(const struct choosing *head)
{
    const struct choosing c = frozen_of(head);
    const enum lk_status status = choose_part(&c);
    if (status != LK_E_UNSUPPORTED)
        return status;
    lk_error_clear();
    clear_places(c.config.outputs[0]->graph);
    return LK_OK;
}

/* Whether the first device has room for all of the frozen part. */
static bool is_frozen_small(const struct choosing *head)
{
    const struct choosing c = frozen_of(head);
    struct lk_group_plan plan;
    clear_places(c.config.outputs[0]->graph);
    const bool is_small =
        lk_group_plan(&c.config, c.devices, c.count, 1, &plan) == LK_OK && plan.places[0].fits;
    lk_error_clear();
    return is_small;
}

/* The head is where what it reads was made, and the other devices compute features alone. */
static bool can_follow(const struct choosing *c, const int *frozen)
{
    const struct lk_graph *graph = c->config.outputs[0]->graph;
    bool has_any = false;
    for (int i = 0; i < graph->count; i++) {
        lk_node_set_place(graph->nodes[i], frozen[i]);
        has_any |= frozen[i] >= 0;
    }
    const bool can = has_any && check_whole(c) == LK_OK;
    lk_error_clear();
    return can;
}

/* With the frozen part divided; or with all of it on the first device, since a head is computed
 * more often; or the frozen part alone, since a head is often too small. At last as if nothing
 * was computed beforehand. */
static enum lk_status choose_behind(struct choosing *c, const int *frozen)
{
    struct choosing whole = *c;
    whole.config.part = LK_PART_ALL;
    c->others = frozen;
    enum lk_status status = choose_part(c);
    if (status != LK_E_UNSUPPORTED)
        return status;
    lk_error_clear();
    c->others = NULL;
    status = is_frozen_small(c) ? choose_part(c) : LK_E_UNSUPPORTED;
    if (status != LK_E_UNSUPPORTED)
        return status;
    lk_error_clear();
    return can_follow(c, frozen) ? LK_OK : choose_part(&whole);
}

static enum lk_status choose_head(struct choosing *c)
{
    const struct lk_graph *graph = c->config.outputs[0]->graph;
    LK_TRY(choose_frozen(c));
    int *frozen = malloc(((size_t)graph->count + 1) * sizeof *frozen);
    if (!frozen)
        return lk_fail_memory("places", (size_t)graph->count * sizeof *frozen);
    for (int i = 0; i < graph->count; i++)
        frozen[i] = graph->nodes[i]->place;
    const enum lk_status status = choose_behind(c, frozen);
    free(frozen);
    return status;
}

enum lk_status lk_group_choose(const struct lk_replica_config *config,
                               struct lk_device *const *devices, int count, int in_flight,
                               const struct lk_measured_ops *measured)
{
    struct choosing c = {.config = *config,
                         .devices = devices,
                         .count = count,
                         .in_flight = in_flight,
                         .measured = measured};
    clear_places(config->outputs[0]->graph);
    if (count == 1)
        return LK_OK;
    const enum lk_status status =
        config->part == LK_PART_HEAD ? choose_head(&c) : choose_part(&c);
    if (status != LK_OK)
        clear_places(config->outputs[0]->graph);
    return status;
}

/* --- estimating -------------------------------------------------------------------------- */

/* Of tables few rows are. */
static int64_t count_updated(const struct lk_scheduled_op *op)
{
    int64_t count = 0;
    for (int j = 0; j < op->shapes.params; j++)
        count += op->shapes.param[j].is_rows ? 0 : lk_shape_count(&op->shapes.param[j].shape);
    return count;
}

/* What is added up and updated of gradients goes at the speed of copying, which moves each byte
 * twice: the sums of a micro-batch's shards and of those before; gradient, weights and state
 * arrays, of which all but the first are written too. */
static void describe_updates(struct choosing *c, const int *places)
{
    struct lk_place_search *search = &c->search;
    const struct lk_schedule *s = &c->whole->schedule;
    for (int i = 0; i < s->op_count; i++) {
        const struct lk_scheduled_op *op = &s->ops[i];
        if (!op->wants_dw || op->shapes.params == 0 || search->ops[i].first_use != i)
            continue;
        const double each = (double)count_updated(op) * (double)lk_dtype_bytes(c->config.real) *
                            flops_per_byte(c) / 2 / search->speeds[places[i]];
        search->sums[places[i]] += each * (c->config.shards + 2);
        search->update[places[i]] += each * (3 + 2 * c->config.optimizer_arrays);
    }
}

/* An input is loaded at each place that reads it; a small one is copied before. */
static void describe_loads(struct choosing *c, const int *places)
{
    const struct lk_schedule *s = &c->whole->schedule;
    const struct lk_measured_ops *measured = c->measured;
    for (int v = 0; v < c->whole->input_count; v++) {
        const struct lk_replica_input *input = &c->whole->inputs[v];
        const double mb = 1e-6 * sizeof(float) * (double)c->config.batch *
                          (double)lk_shape_count(&input->about.shape);
        const bool copies = input->bytes < LK_LARGE_UPLOAD;
        bool is_read[LK_MOST_PLACES] = {false};
        for (int i = 0; i < s->op_count; i++)
            for (int j = 0; j < s->ops[i].shapes.inputs; j++)
                is_read[places[i]] |= s->ops[i].x[j] == input->value;
        for (int p = 0; p < c->count; p++)
            if (is_read[p])
                c->search.loads[p] +=
                    mb * (measured->load_ms_per_mb + (copies ? measured->copy_ms_per_mb : 0)) *
                    c->per_ms / c->search.speeds[p];
    }
}

static enum lk_status estimate_step(struct choosing *c, struct lk_group_estimate *estimate)
{
    struct lk_place_search *search = &c->search;
    const struct lk_schedule *s = &c->whole->schedule;
    struct lk_place_simulated found;
    struct lk_place_walk walk;
    void *memory = NULL;
    if (c->per_ms == 0)
        return lk_fail(LK_E_UNSUPPORTED, "no operation was measured");
    LK_TRY(lk_arena_allocate(&search->arena, (size_t)(s->op_count + 1) * sizeof(int), &memory));
    int *places = memory;
    for (int i = 0; i < s->op_count; i++)
        places[i] = lk_node_place(s->ops[i].node);
    if (!lk_place_walk(search, places, &walk))
        return lk_fail(LK_E_UNSUPPORTED, "the graph cannot be divided so");
    const double unit = c->per_ms / search->speeds[0];
    const int times = c->measured->micro_batches > 0 ? c->measured->micro_batches : 1;
    describe_updates(c, places);
    describe_loads(c, places);
    LK_TRY(lk_place_simulate(search, places, times, c->in_flight, &found));
    *estimate = (struct lk_group_estimate){.step_ms = found.step / unit};
    for (int i = 0; i < s->op_count; i++)
        estimate->alone_ms += times * search->ops[i].work / c->per_ms;
    for (int p = 0; p < c->count; p++) {
        estimate->busy_ms[p] = fmin(found.busy[p], found.step) / unit;
        estimate->crossing_ms[p] = found.crossing[p] / unit;
    }
    return LK_OK;
}

enum lk_status lk_group_estimate(const struct lk_replica_config *config,
                                 struct lk_device *const *devices, int count, int in_flight,
                                 const struct lk_measured_ops *measured,
                                 struct lk_group_estimate *estimate)
{
    struct choosing c = {.config = *config,
                         .devices = devices,
                         .count = count,
                         .in_flight = in_flight,
                         .measured = measured};
    LK_TRY(lk_choices_copy(config->choices, &c.config.choices));
    enum lk_status status = begin(&c);
    if (status == LK_OK)
        status = estimate_step(&c, estimate);
    lk_replica_destroy(c.whole);
    lk_place_search_clear(&c.search);
    lk_choices_destroy(c.config.choices);
    return status;
}
