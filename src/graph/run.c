/* Runs a replica forward and backward: everything here enqueues and returns. */
#include "base/fail.h"
#include "device/chain.h"
#include "graph/replica_internal.h"
#include "graph/watch.h"
#include <stddef.h>

static struct lk_buffer *live_range(const struct lk_replica *replica, int index)
{
    return index < 0 ? NULL : replica->live_range_views[index];
}

enum lk_status lk_replica_upload(struct lk_replica *replica, int slot, int64_t samples)
{
    for (int i = 0; i < replica->input_count; i++) {
        struct lk_replica_input *input = &replica->inputs[i];
        const size_t each = (input->bytes - input->records) / (size_t)replica->config.batch;
        LK_TRY(lk_transfer_buffer_enqueue_to_device(
            input->slots[slot], samples > 0 ? input->records + each * (size_t)samples : 0));
    }
    replica->is_uploaded[slot] = true;
    return LK_OK;
}

static enum lk_status load_numbers(struct lk_replica *replica, const struct lk_input *about,
                                   const struct lk_buffer *from, struct lk_buffer *y)
{
    const int64_t samples = replica->micro_batch.samples;
    const struct lk_number_batch numbers = {
        .buffer = from, .samples = samples, .scale = about->scale, .shift = about->shift};
    const struct lk_label_batch labels = {.buffer = from,
                                          .samples = samples,
                                          .on = about->scale + about->shift,
                                          .off = about->shift};
    return about->takes_numbers
               ? lk_loader_enqueue_numbers(replica->loader, &numbers, &about->shape, y)
               : lk_loader_enqueue_one_hot(replica->loader, &labels, &about->shape, y);
}

/* Loads an input from its slot, which the host may fill again as soon as the kernels have read
 * it; of a chain, when all of it has run. */
static enum lk_status load_input(struct lk_replica *replica, int index, int slot)
{
    struct lk_replica_input *input = &replica->inputs[index];
    const struct lk_input *about = &input->about;
    struct lk_buffer *y = live_range(replica, replica->activation[input->value]);
    struct lk_buffer *from = lk_transfer_buffer_on_device(input->slots[slot]);
    const struct lk_image_batch images = {.buffer = from,
                                          .pixels_at = (int64_t)input->records,
                                          .samples = replica->micro_batch.samples,
                                          .scale = about->scale,
                                          .shift = about->shift};
    if (about->dtype == LK_I32)
        LK_TRY(lk_loader_enqueue_integers(replica->loader, from, replica->micro_batch.samples,
                                          &about->shape, y));
    if (about->dtype == LK_F32)
        LK_TRY(load_numbers(replica, about, from, y));
    if (about->dtype == LK_U8)
        LK_TRY(lk_loader_enqueue_images(replica->loader, &images, &about->shape, y));
    return replica->chain
               ? LK_OK
               : lk_transfer_buffer_enqueue_to_host(input->slots[slot], input->bytes);
}

/* The activation of a value, which may have been made again. */
static struct lk_buffer *activation(const struct lk_replica *replica, int value, bool again)
{
    return live_range(replica, again && replica->again[value] >= 0
                                   ? replica->again[value]
                                   : replica->activation[value]);
}

/* The replica that has what is packed once of the weights. */
static const struct lk_replica *packer(const struct lk_replica *replica)
{
    const bool borrows = replica->config.packs_once && replica->config.weights_of;
    return borrows ? replica->config.weights_of : replica;
}

/* Notes that operation i packs its weights in this pass; false: it has packed them as they are.
 */
static bool packs_now(const struct lk_replica *replica, int i, bool in_backward)
{
    const struct lk_replica *owner = packer(replica);
    int64_t *packed_at = &owner->prepared[i].packed_at[in_backward];
    const bool is_new = *packed_at != owner->weights_version + 1;
    *packed_at = owner->weights_version + 1;
    return is_new;
}

/* Weights that are trained have changed since the last forward, and those of another replica
 * may have. */
static bool repacks(const struct lk_replica *replica, int i)
{
    if (replica->config.packs_once)
        return packs_now(replica, i, false);
    return replica->weights_are_new || replica->config.training ||
           (replica->config.weights_of && !replica->config.weights_stay);
}

/* With `again` it reads and writes what backward makes again of what forward had dropped. */
static struct lk_op_run base_run(const struct lk_replica *replica, int i, bool again)
{
    const struct lk_scheduled_op *scheduled = &replica->schedule.ops[i];
    const struct lk_prepared *prepared = &replica->prepared[i];
    struct lk_op_run run = {
        .y = activation(replica, scheduled->y, again),
        .saved = live_range(replica, again && prepared->saved_again >= 0 ? prepared->saved_again
                                                                         : prepared->saved),
        .past = live_range(replica, prepared->past),
        .packed = live_range(packer(replica), packer(replica)->prepared[i].packed),
        .time = replica->config.one_step ? replica->step : 0,
        .loss_scale = replica->loss_scale,
        .dw_stride = lk_replica_gradient_stride(replica),
        .samples = replica->micro_batch.samples,
        .step = replica->step,
        .first_sample = replica->micro_batch.first_sample,
    };
    for (int j = 0; j < scheduled->shapes.inputs; j++)
        run.x[j] = activation(replica, scheduled->x[j], again);
    for (int j = 0; j < scheduled->shapes.params; j++)
        run.w[j] = replica->weight_views[prepared->param[j]];
    return run;
}

enum lk_status lk_replica_load(struct lk_replica *replica, int slot, int64_t samples)
{
    const struct lk_micro_batch all = {.shards = replica->tiling.shards, .samples = samples};
    if (samples < 1 || samples > replica->config.batch)
        return lk_fail(LK_E_ARGUMENT, "%lld samples, the batch has room for %lld",
                       (long long)samples, (long long)replica->config.batch);
    return lk_replica_load_micro_batch(replica, slot, &all);
}

enum lk_status lk_replica_load_micro_batch(struct lk_replica *replica, int slot,
                                           const struct lk_micro_batch *micro_batch)
{
    const struct lk_tiling whole = replica->tiling;
    if (micro_batch->shards < 1 || micro_batch->shards > whole.shards ||
        micro_batch->samples < 0 ||
        micro_batch->samples > micro_batch->shards * whole.shard_samples)
        return lk_fail(LK_E_ARGUMENT, "%lld samples in %d shards; there is room for %lld in %d",
                       (long long)micro_batch->samples, micro_batch->shards,
                       (long long)(whole.shards * whole.shard_samples), whole.shards);
    replica->micro_batch = *micro_batch;
    const struct lk_tiling used = lk_tiling_cut(&whole, micro_batch->shards);
    for (int i = 0; i < replica->schedule.op_count; i++)
        replica->prepared[i].setup.tiling =
            lk_tiling_cut(lk_replica_tiling_of(replica, replica->schedule.ops[i].in_planes),
                          micro_batch->shards);
    lk_loader_use(replica->loader, &used);
    if (!replica->is_uploaded[slot])
        LK_TRY(lk_replica_upload(replica, slot, micro_batch->samples));
    replica->is_uploaded[slot] = false;
    replica->loaded = slot;
    LK_TRY(lk_chain_begin(replica->chain)); /* which forward ends */
    for (int i = 0; i < replica->input_count; i++) {
        const enum lk_status status = load_input(replica, i, slot);
        if (status != LK_OK) {
            (void)!lk_chain_end(replica->chain);
            return status;
        }
    }
    return LK_OK;
}

enum lk_status lk_replica_wait_slot(struct lk_replica *replica, int slot)
{
    for (int i = 0; i < replica->input_count && !replica->is_uploaded[slot]; i++)
        LK_TRY(lk_transfer_buffer_wait(replica->inputs[i].slots[slot],
                                       &replica->inputs[i].memory[slot]));
    return LK_OK;
}

enum lk_status lk_replica_claim_slot(struct lk_replica *replica, int slot)
{
    for (int i = 0; i < replica->input_count; i++)
        LK_TRY(lk_transfer_buffer_enqueue_to_host(replica->inputs[i].slots[slot],
                                                  replica->inputs[i].bytes));
    replica->is_uploaded[slot] = false;
    return lk_replica_wait_slot(replica, slot);
}

void lk_replica_begin_forward(struct lk_replica *replica, int64_t step)
{
    replica->step = step;
    replica->next_forward = 0;
    replica->next_backward = replica->schedule.op_count - 1;
    lk_crossings_begin(replica);
}

enum lk_status lk_replica_go_forward(struct lk_replica *replica, bool *is_done)
{
    for (; replica->next_forward < replica->schedule.op_count; replica->next_forward++) {
        const int i = replica->next_forward;
        if (lk_crossing_is_awaited(replica, i, false))
            break;
        struct lk_op_run run = base_run(replica, i, false);
        run.weights_are_new = repacks(replica, i);
        run.workspace = live_range(replica, replica->prepared[i].forward_workspace);
        LK_TRY(replica->schedule.ops[i].op->forward(&replica->prepared[i].setup, &run));
        if (replica->watch)
            LK_TRY(lk_watch_value(replica, i, &run));
    }
    *is_done = replica->next_forward == replica->schedule.op_count;
    replica->weights_are_new &= !*is_done;
    return LK_OK;
}

enum lk_status lk_replica_forward(struct lk_replica *replica, int64_t step)
{
    bool is_done;
    lk_replica_begin_forward(replica, step);
    const enum lk_status status = lk_replica_go_forward(replica, &is_done);
    const enum lk_status ended = lk_chain_end(replica->chain);
    for (int i = 0; replica->chain && i < replica->input_count; i++) {
        struct lk_replica_input *input = &replica->inputs[i];
        LK_TRY(lk_transfer_buffer_enqueue_to_host(input->slots[replica->loaded], input->bytes));
    }
    return status != LK_OK ? status : ended;
}

/* dx += extra: the gradient of another reader of the value. */
static enum lk_status accumulate(struct lk_replica *replica, struct lk_buffer *extra,
                                 struct lk_buffer *dx)
{
    enum { CHUNK = 4096 };
    const enum lk_dtype stored = lk_replica_stored(replica);
    const int64_t count = (int64_t)(lk_buffer_bytes(dx) / lk_dtype_bytes(stored));
    const struct lk_grid grid = {{lk_divide_up(count, CHUNK), 1, 1},
                                 replica->tiling.lanes / replica->tiling.vector};
    return LK_ENQUEUE(replica->accumulate, grid, LK_BUF(extra), LK_BUF(dx),
                      LK_INT(count / replica->tiling.lanes),
                      LK_INT(CHUNK / replica->tiling.lanes));
}

static enum lk_status backward_op(struct lk_replica *replica, int i)
{
    const struct lk_scheduled_op *scheduled = &replica->schedule.ops[i];
    const struct lk_prepared *prepared = &replica->prepared[i];
    struct lk_op_run run = base_run(replica, i, true);
    run.weights_are_new = !replica->config.packs_once || packs_now(replica, i, true);
    run.workspace = live_range(replica, prepared->backward_workspace);
    run.dy = live_range(replica, replica->gradient[scheduled->y]);
    if (!scheduled->shapes.backward_reads_y || prepared->setup.dy_is_gated)
        run.y = NULL;
    for (int j = 0; j < scheduled->shapes.inputs; j++)
        if (scheduled->wants_dx[j])
            run.dx[j] = prepared->extra_dx[j] >= 0
                            ? live_range(replica, prepared->extra_dx[j])
                            : live_range(replica, replica->gradient[scheduled->x[j]]);
    for (int j = 0; j < scheduled->shapes.params; j++)
        if (scheduled->wants_dw)
            run.dw[j] = replica->gradient_views[prepared->param[j]];
    if (prepared->setup.lists_rows)
        run.dw_stride = lk_param_list_stride(&replica->params[prepared->param[0]]);
    if (prepared->extra_dw >= 0)
        LK_TRY(lk_replica_begin_extra_dw(replica, i, &run));
    LK_TRY(scheduled->op->backward(&prepared->setup, &run));
    if (prepared->extra_dw >= 0)
        LK_TRY(lk_replica_add_extra_dw(replica, i));
    for (int j = 0; j < scheduled->shapes.inputs; j++)
        if (prepared->extra_dx[j] >= 0)
            LK_TRY(accumulate(replica, run.dx[j],
                              live_range(replica, replica->gradient[scheduled->x[j]])));
    return replica->watch ? lk_watch_gradients(replica, i, &run) : LK_OK;
}

/* Where a segment ends with operation `last`, runs those of it forward again whose values were
 * dropped and are wanted. Random numbers come from the step, so they are the same again. */
static enum lk_status run_again(struct lk_replica *replica, int last)
{
    const struct lk_recompute *r = &replica->recompute;
    if (last + 1 < replica->schedule.op_count && r->segment[last + 1] == r->segment[last])
        return LK_OK;
    for (int i = r->segment[last]; i <= last; i++) {
        if (!r->runs_again[i])
            continue;
        struct lk_op_run run = base_run(replica, i, true);
        run.weights_are_new = repacks(replica, i);
        run.workspace = live_range(replica, replica->prepared[i].again_workspace);
        LK_TRY(replica->schedule.ops[i].op->forward(&replica->prepared[i].setup, &run));
    }
    return LK_OK;
}

enum lk_status lk_replica_backward(struct lk_replica *replica)
{
    return lk_replica_backward_bucket(replica, replica->bucket_count - 1);
}

enum lk_status lk_replica_go_backward(struct lk_replica *replica, int bucket, bool *is_done)
{
    const bool is_last = bucket >= replica->bucket_count - 1;
    const int end = is_last ? 0 : replica->buckets[bucket].op;
    for (; replica->next_backward >= end; replica->next_backward--) {
        const int i = replica->next_backward;
        if (lk_crossing_is_awaited(replica, i, true))
            break;
        LK_TRY(run_again(replica, i));
        if (replica->schedule.ops[i].has_backward)
            LK_TRY(backward_op(replica, i));
    }
    *is_done = replica->next_backward < end;
    return LK_OK;
}

enum lk_status lk_replica_backward_bucket(struct lk_replica *replica, int bucket)
{
    bool is_done;
    return lk_replica_go_backward(replica, bucket, &is_done);
}

static const struct lk_replica_input *find_input(const struct lk_replica *replica,
                                                 const struct lk_node *node)
{
    for (int i = 0; i < replica->input_count; i++)
        if (replica->inputs[i].node == node)
            return &replica->inputs[i];
    return NULL;
}

void *lk_replica_slot(struct lk_replica *replica, const struct lk_node *input, int slot)
{
    const struct lk_replica_input *found = find_input(replica, input);
    return found ? (uint8_t *)found->memory[slot] + found->records : NULL;
}

size_t lk_replica_sample_bytes(const struct lk_replica *replica, const struct lk_node *input)
{
    const struct lk_replica_input *found = find_input(replica, input);
    return found ? lk_input_bytes(&found->about) : 0;
}

struct lk_transform_params *lk_replica_transform_params(struct lk_replica *replica,
                                                        const struct lk_node *input, int slot)
{
    const struct lk_replica_input *found = find_input(replica, input);
    return found && found->records > 0 ? found->memory[slot] : NULL;
}

void lk_replica_set_loss_scale(struct lk_replica *replica, const struct lk_buffer *scale)
{
    replica->loss_scale = scale;
}

const struct lk_buffer *lk_replica_output(const struct lk_replica *replica, int index,
                                          struct lk_shape *shape)
{
    const int value = replica->schedule.outputs[index];
    *shape = replica->schedule.values[value].shape;
    return live_range(replica, replica->activation[value]);
}
