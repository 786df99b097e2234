/* Creates a replica of a graph on a device: places parameters, announces kernels, allocates. */
#include "graph/replica.h"

#include "base/fail.h"
#include "device/chain.h"
#include "graph/planes.h"
#include "graph/replica_internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHORT_FLOPS = 32 << 20 }; /* of a launch: what CPUs compute in some 0.1 ms */

static enum lk_status take(struct lk_replica *replica, int count, size_t bytes, void *pointer)
{
    void *memory = NULL;
    LK_TRY(lk_arena_allocate(&replica->arena, (size_t)(count + 1) * bytes, &memory));
    memcpy(pointer, &memory, sizeof memory);
    return LK_OK;
}

static void add_param(struct lk_replica *replica, int i, int j)
{
    const struct lk_scheduled_op *s = &replica->schedule.ops[i];
    struct lk_param *param = &replica->params[replica->param_count];
    param->spec = s->shapes.param[j];
    param->shape = param->spec.shape;
    param->count = lk_shape_count(&param->shape);
    const struct lk_node *owner = lk_node_owner(s->node);
    param->is_borrowed = lk_replica_lends(replica, i) >= 0;
    param->is_elsewhere = !param->is_borrowed && replica->config.places > 1 &&
                          lk_node_place(s->node) != replica->config.place;
    param->has_gradient = owner->is_trainable && !param->is_elsewhere && !param->is_borrowed;
    param->lr_scale = owner->lr_scale;
    param->l1 = owner->l1;
    param->l2 = owner->l2;
    param->is_trainable = param->has_gradient && !param->spec.is_tracked;
    snprintf(param->name, sizeof param->name, "%s.%s", owner->name, param->spec.name);
    replica->prepared[i].param[j] = replica->param_count++;
}

/* Places the parameters of one kind behind those placed before; returns where they end. */
static int64_t place_params(struct lk_replica *replica, bool has_gradient, bool is_trainable)
{
    for (int i = 0; i < replica->param_count; i++) {
        struct lk_param *param = &replica->params[i];
        if (param->is_elsewhere || param->has_gradient != has_gradient ||
            param->is_trainable != is_trainable)
            continue;
        param->offset = replica->weight_count;
        replica->weight_count += lk_divide_up(param->count, LK_PARAM_ALIGN) * LK_PARAM_ALIGN;
    }
    return replica->weight_count;
}

static enum lk_status list_params(struct lk_replica *replica)
{
    int most = 0;
    for (int i = 0; i < replica->schedule.op_count; i++)
        most += replica->schedule.ops[i].shapes.params;
    LK_TRY(take(replica, most, sizeof *replica->params, &replica->params));
    LK_TRY(take(replica, most, sizeof *replica->weight_views, &replica->weight_views));
    LK_TRY(take(replica, most, sizeof *replica->gradient_views, &replica->gradient_views));
    for (int i = 0; i < replica->schedule.op_count; i++) {
        const int first = lk_schedule_first_use(&replica->schedule, i);
        if (first != i)
            memcpy(replica->prepared[i].param, replica->prepared[first].param,
                   sizeof replica->prepared[i].param);
        for (int j = 0; first == i && j < replica->schedule.ops[i].shapes.params; j++)
            add_param(replica, i, j);
    }
    replica->trainable_count = place_params(replica, true, true);
    replica->gradient_count = place_params(replica, true, false);
    place_params(replica, false, false);
    lk_replica_find_lists(replica);
    return LK_OK;
}

/* Whether weights change so seldom that packing them anew for each run is not worth it. */
static bool keeps_packed(const struct lk_replica *replica)
{
    const struct lk_replica_config *c = &replica->config;
    return c->packs_once || (!c->training && (!c->weights_of || c->weights_stay));
}

static enum lk_status prepare_op(struct lk_replica *replica, int i)
{
    const struct lk_scheduled_op *scheduled = &replica->schedule.ops[i];
    struct lk_op_setup *setup = &replica->prepared[i].setup;
    lk_schedule_describe(&replica->schedule, i, setup);
    setup->device = replica->config.device;
    setup->tiling = *lk_replica_tiling_of(replica, scheduled->in_planes);
    setup->real = replica->config.real;
    setup->stores_half = replica->config.stores_half;
    setup->training = replica->config.training;
    setup->weights_stay = keeps_packed(replica);
    setup->lists_rows = scheduled->shapes.params > 0 &&
                        replica->params[replica->prepared[i].param[0]].places > 0;
    setup->seed = replica->config.seed;
    setup->stream = (uint32_t)scheduled->node->index;
    setup->arena = &replica->arena;
    setup->choices = replica->config.choices;
    const enum lk_status status = scheduled->op->prepare(setup);
    lk_schedule_note_gates(&replica->schedule, i, setup);
    return status == LK_OK ? LK_OK : lk_fail_within(status, "%s", scheduled->node->name);
}

/* A feature is loaded as it is: adding -0 keeps the sign of a zero, which adding 0 would not.
 */
static struct lk_input feature_input(const struct lk_node *node, const struct lk_value *value)
{
    return (struct lk_input){.name = node->name,
                             .dtype = LK_F32,
                             .shape = value->shape,
                             .scale = 1,
                             .shift = -0.0,
                             .takes_numbers = true};
}

static enum lk_status list_inputs(struct lk_replica *replica)
{
    for (int v = 0; v < replica->schedule.value_count; v++) {
        const struct lk_value *value = &replica->schedule.values[v];
        const struct lk_node *node = value->input ? value->input : value->cut;
        if (!node || value->producer >= 0 || !lk_replica_is_live(replica, v))
            continue;
        if (replica->input_count == LK_MOST_INPUTS)
            return lk_fail(LK_E_UNSUPPORTED, "more than %d inputs", LK_MOST_INPUTS);
        struct lk_input about = value->input ? node->input : feature_input(node, value);
        about.shape = value->shape;
        if (about.dtype == LK_F64 || about.dtype == LK_F16)
            return lk_fail(LK_E_UNSUPPORTED, "input '%s' of type %s", node->name,
                           lk_dtype_name(about.dtype));
        const size_t batch = (size_t)replica->config.batch;
        const bool draws = about.dtype == LK_U8 && lk_transform_has_params(&replica->transform);
        const size_t records = draws ? batch * sizeof(struct lk_transform_params) : 0;
        replica->inputs[replica->input_count++] = (struct lk_replica_input){
            .node = node,
            .about = about,
            .value = v,
            .records = records,
            .bytes = records + batch * lk_input_bytes(&about),
        };
    }
    return LK_OK;
}

static bool has_gradients(const struct lk_replica *replica)
{
    return replica->config.training && replica->config.part != LK_PART_FROZEN;
}

static bool borrows_gradients(const struct lk_replica *replica)
{
    return has_gradients(replica) && replica->config.weights_of;
}

/* The slab of another replica that may serve as slab i of this one; NULL: none. */
static struct lk_buffer *lent_slab(const struct lk_replica *replica, int i)
{
    const struct lk_replica *lender = replica->config.weights_of;
    const bool is_lent = replica->config.borrows_memory && lender && i < lender->plan.slabs &&
                         lender->plan.slab_bytes[i] >= replica->plan.slab_bytes[i];
    return is_lent ? lender->slabs[i] : NULL;
}

struct lk_replica_bytes lk_replica_bytes(const struct lk_replica *replica)
{
    const size_t real = lk_dtype_bytes(replica->config.real);
    const bool borrows = replica->config.weights_of != NULL;
    const int64_t gradients = lk_replica_gradient_stride(replica);
    const int64_t lists = lk_replica_list_reals(replica);
    struct lk_replica_bytes bytes = {
        .weights = borrows ? 0 : (size_t)replica->weight_count * real,
        .again = lk_recompute_work(replica),
    };
    for (int i = 0; i < replica->plan.slabs; i++)
        bytes.activations += lent_slab(replica, i) ? 0 : replica->plan.slab_bytes[i];
    if (has_gradients(replica) && !borrows)
        bytes.gradients = (size_t)(gradients + lists) * (size_t)replica->tiling.shards * real;
    for (int i = 0; i < replica->input_count; i++)
        bytes.inputs += replica->inputs[i].bytes * LK_REPLICA_SLOTS;
    bytes.optimizer_arrays =
        (size_t)(replica->gradient_count * replica->config.optimizer_arrays +
                 (gradients + lists * replica->config.list_shards) *
                     replica->config.gradient_sums) *
        real;
    bytes.total = bytes.weights + bytes.gradients + bytes.activations + bytes.inputs +
                  bytes.optimizer_arrays;
    return bytes;
}

/* Prepares what adds up the gradients of values with several readers. */
static enum lk_status prepare_forks(struct lk_replica *replica)
{
    const struct lk_kernel_spec accumulate = {
        .source = "graph/accumulate",
        .name = "accumulate",
        .real_bytes = (int)lk_dtype_bytes(replica->config.real),
        .lanes = replica->tiling.lanes,
        .stores_half = replica->config.stores_half,
    };
    bool has_forks = false;
    for (int i = 0; i < replica->schedule.op_count; i++)
        for (int j = 0; j < replica->schedule.ops[i].shapes.inputs; j++)
            has_forks |= replica->prepared[i].extra_dx[j] >= 0;
    return has_forks
               ? lk_kernel_create(replica->config.device, &accumulate, &replica->accumulate)
               : LK_OK;
}

/* Plans memory, with what backward computes again. */
static enum lk_status plan(struct lk_replica *replica)
{
    const enum lk_recompute_mode mode =
        has_gradients(replica) ? replica->config.recompute : LK_RECOMPUTE_OFF;
    LK_TRY(lk_replica_begin_plan(replica));
    if (mode == LK_RECOMPUTE_SQRT)
        lk_recompute_cut_evenly(replica);
    LK_TRY(lk_replica_plan_memory(replica));
    return mode == LK_RECOMPUTE_AUTO && !lk_replica_fits(replica) ? lk_recompute_search(replica)
                                                                  : LK_OK;
}

/* Announces loader kernels that only some graphs' inputs need. */
static enum lk_status add_kernels(struct lk_loader *loader, const struct lk_input *input)
{
    if (input->dtype != LK_F32)
        return LK_OK;
    return input->takes_numbers ? lk_loader_add_numbers(loader) : lk_loader_add_one_hot(loader);
}

static enum lk_status create(struct lk_replica *replica)
{
    const struct lk_replica_config *config = &replica->config;
    LK_TRY(lk_schedule_make(config->outputs, config->training, &replica->schedule));
    if (config->one_step)
        LK_TRY(lk_replica_narrow(replica));
    if (lk_replica_takes_planes(replica))
        lk_replica_spread_planes(replica);
    if (lk_replica_trains_planes(replica))
        lk_replica_turn_planes(replica);
    LK_TRY(take(replica, replica->schedule.op_count, sizeof *replica->prepared,
                &replica->prepared));
    LK_TRY(list_params(replica));
    LK_TRY(lk_replica_cut(replica));
    LK_TRY(lk_replica_divide(replica));
    if (lk_replica_fuses(replica))
        LK_TRY(lk_replica_fuse(replica));
    if (replica->tiling.planes || replica->planes.planes)
        LK_TRY(lk_replica_map_planes(replica));
    lk_replica_cut_buckets(replica);
    LK_TRY(list_inputs(replica));
    for (int i = replica->schedule.op_count - 1; i >= 0; i--)
        LK_TRY(prepare_op(replica, i));
    LK_TRY(lk_loader_create(config->device, &replica->tiling, lk_replica_stored(replica),
                            &replica->transform, &replica->loader));
    for (int i = 0; i < replica->input_count; i++)
        LK_TRY(add_kernels(replica->loader, &replica->inputs[i].about));
    LK_TRY(plan(replica));
    LK_TRY(lk_replica_prepare_shared(replica));
    return prepare_forks(replica);
}

static enum lk_status make(const struct lk_replica_config *config, struct lk_replica **replica)
{
    if (config->batch < 1 || config->shards < 1 || config->shards > config->batch ||
        (config->shards & (config->shards - 1)) != 0)
        return lk_fail(LK_E_ARGUMENT,
                       "%d shards for a batch size of %lld: a power of two, at most the batch",
                       config->shards, (long long)config->batch);
    if (config->real == LK_F64 && !lk_device_info(config->device)->has_fp64)
        return lk_fail(LK_E_UNSUPPORTED, "%s has no double precision",
                       lk_device_info(config->device)->name);
    if (config->stores_half && (config->real != LK_F32 || !config->training))
        return lk_fail(LK_E_ARGUMENT, "halves are stored while float32 is trained with alone");
    struct lk_replica *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("a replica", sizeof *made);
    made->config = *config;
    made->self = made;
    made->group = &made->self;
    if (!config->choices && config->weights_of)
        made->config.choices = config->weights_of->config.choices;
    if (config->transform)
        made->transform = *config->transform;
    made->tiling =
        lk_tiling_make(lk_device_info(config->device), config->batch, config->shards);
    const enum lk_status status = create(made);
    if (status != LK_OK) {
        lk_replica_destroy(made);
        return status;
    }
    *replica = made;
    return LK_OK;
}

/* What is packed once is kept only where nothing has to be computed again for that, beside what
 * was asked for. */
enum lk_status lk_replica_make(const struct lk_replica_config *config,
                               struct lk_replica **replica)
{
    struct lk_replica_config keeping = *config;
    struct lk_replica *made = NULL;
    if (!config->packs_once)
        return make(config, replica);
    if (config->recompute == LK_RECOMPUTE_AUTO)
        keeping.recompute = LK_RECOMPUTE_OFF;
    LK_TRY(make(&keeping, &made));
    if (lk_replica_fits(made)) {
        *replica = made;
        return LK_OK;
    }
    lk_replica_destroy(made);
    keeping = *config;
    keeping.packs_once = false;
    return make(&keeping, replica);
}

void lk_replica_renew_weights(struct lk_replica *replica)
{
    const bool borrows = replica->config.packs_once && replica->config.weights_of;
    (borrows ? replica->config.weights_of : replica)->weights_version++;
}

bool lk_replica_packs_once(const struct lk_replica *replica)
{
    return replica->config.packs_once;
}

/* A row list has memory of its own, others a place in the gradients. */
static enum lk_status make_gradient(struct lk_replica *replica, int i, size_t gradients)
{
    const struct lk_param *param = &replica->params[i];
    const size_t real = lk_dtype_bytes(replica->config.real);
    struct lk_buffer **view = &replica->gradient_views[i];
    if (param->places == 0) {
        const size_t offset = (size_t)param->gradient_at * real;
        return lk_buffer_view(replica->gradients, offset, gradients - offset, view);
    }
    const int64_t reals = lk_param_list_stride(param) * replica->tiling.shards;
    if (borrows_gradients(replica))
        return lk_buffer_view(replica->config.weights_of->gradient_views[i], 0,
                              (size_t)reals * real, view);
    return lk_buffer_create_zeros(replica->config.device, (size_t)reals * real, view);
}

static enum lk_status allocate_params(struct lk_replica *replica)
{
    struct lk_device *device = replica->config.device;
    const size_t real = lk_dtype_bytes(replica->config.real);
    const struct lk_replica_bytes bytes = lk_replica_bytes(replica);
    if (replica->config.weights_of) {
        replica->weights = replica->config.weights_of->weights;
    } else {
        LK_TRY(lk_buffer_create_zeros(device, bytes.weights, &replica->weights));
    }
    const size_t gradients =
        (size_t)lk_replica_gradient_stride(replica) * (size_t)replica->tiling.shards * real;
    if (borrows_gradients(replica)) {
        replica->gradients = replica->config.weights_of->gradients;
    } else {
        LK_TRY(lk_buffer_create_zeros(device, has_gradients(replica) ? gradients : 0,
                                      &replica->gradients)); /* padding stays zero */
    }
    for (int i = 0; i < replica->param_count; i++) {
        const struct lk_param *param = &replica->params[i];
        const size_t offset = (size_t)param->offset * real;
        if (param->is_elsewhere)
            continue;
        LK_TRY(lk_buffer_view(replica->weights, offset, (size_t)param->count * real,
                              &replica->weight_views[i]));
        if (has_gradients(replica) && param->has_gradient)
            LK_TRY(make_gradient(replica, i, gradients));
    }
    return LK_OK;
}

/* Activations start as zeros, so that even dead lanes never hold a NaN. */
static enum lk_status allocate_live_ranges(struct lk_replica *replica)
{
    LK_TRY(take(replica, replica->live_range_count, sizeof *replica->live_range_views,
                &replica->live_range_views));
    for (int i = 0; i < replica->plan.slabs; i++) {
        if ((replica->slabs[i] = lent_slab(replica, i)))
            continue;
        LK_TRY(lk_buffer_create_zeros(replica->config.device, replica->plan.slab_bytes[i],
                                      &replica->slabs[i]));
    }
    for (int i = 0; i < replica->live_range_count; i++) {
        const struct lk_live_range *live_range = &replica->live_ranges[i];
        LK_TRY(lk_buffer_view(replica->slabs[live_range->slab], live_range->offset,
                              live_range->bytes, &replica->live_range_views[i]));
    }
    return LK_OK;
}

static enum lk_status allocate_inputs(struct lk_replica *replica)
{
    for (int i = 0; i < replica->input_count; i++) {
        struct lk_replica_input *input = &replica->inputs[i];
        const enum lk_buffer_writer writer = replica->chain || input->bytes >= LK_LARGE_UPLOAD
                                                 ? LK_HOST_SHARES
                                                 : LK_HOST_UPLOADS;
        if (input->about.dtype == LK_U8)
            LK_TRY(lk_loader_allocate(replica->loader, input->about.shape.dim[1]));
        for (int slot = 0; slot < LK_REPLICA_SLOTS; slot++) {
            LK_TRY(lk_transfer_buffer_create(replica->config.device, input->bytes, writer,
                                             &input->slots[slot]));
            LK_TRY(lk_transfer_buffer_enqueue_to_host(input->slots[slot], input->bytes));
        }
    }
    for (int slot = 0; slot < LK_REPLICA_SLOTS; slot++)
        LK_TRY(lk_replica_wait_slot(replica, slot));
    return LK_OK;
}

/* Whether launches are short enough to be worth a chain, whose kernel takes seconds to compile:
 * those of few samples, and of a small model that only predicts. */
static bool is_chained(const struct lk_replica *replica)
{
    const struct lk_replica_config *c = &replica->config;
    double flops = 0;
    for (int i = 0; i < replica->schedule.op_count; i++)
        flops += replica->schedule.ops[i].shapes.flops * (double)c->batch;
    return replica->tiling.planes || (!c->training && !c->weights_of && !c->places &&
                                      flops < SHORT_FLOPS * replica->schedule.op_count);
}

enum lk_status lk_replica_build(struct lk_replica *replica)
{
    replica->weights_are_new = true;
    LK_TRY(allocate_params(replica));
    LK_TRY(allocate_live_ranges(replica));
    LK_TRY(lk_replica_build_shared(replica));
    LK_TRY(lk_crossings_build(replica));
    if (is_chained(replica))
        LK_TRY(lk_chain_create(replica->config.device, &replica->chain));
    LK_TRY(allocate_inputs(replica));
    return lk_device_build(replica->config.device);
}

void lk_replica_destroy(struct lk_replica *replica)
{
    if (!replica)
        return;
    (void)!lk_device_finish(replica->config.device);
    lk_loader_destroy(replica->loader);
    lk_chain_destroy(replica->chain);
    lk_kernel_destroy(replica->accumulate);
    lk_replica_clear_shared(replica);
    lk_crossings_clear(replica);
    for (int i = 0; i < replica->input_count; i++)
        for (int slot = 0; slot < LK_REPLICA_SLOTS; slot++)
            lk_transfer_buffer_destroy(replica->inputs[i].slots[slot]);
    for (int i = 0; replica->live_range_views && i < replica->live_range_count; i++)
        lk_buffer_destroy(replica->live_range_views[i]);
    for (int i = 0; i < replica->plan.slabs; i++)
        if (!lent_slab(replica, i))
            lk_buffer_destroy(replica->slabs[i]);
    for (int i = 0; i < replica->param_count; i++) {
        lk_buffer_destroy(replica->weight_views[i]);
        lk_buffer_destroy(replica->gradient_views[i]);
    }
    if (!replica->config.weights_of)
        lk_buffer_destroy(replica->weights);
    if (!borrows_gradients(replica))
        lk_buffer_destroy(replica->gradients);
    lk_schedule_clear(&replica->schedule);
    lk_arena_clear(&replica->arena);
    free(replica);
}
