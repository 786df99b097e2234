/* A training step on a device that is alone; creating steppers of both kinds. */
#include "team/stepper/internal.h"

#include "base/fail.h"
#include <stdlib.h>

enum { METRICS = 32 }; /* three numbers, padded as shard sums want it */

static enum lk_status create(struct lk_stepper *stepper)
{
    const struct lk_stepper_config *c = &stepper->config;
    const int shards = c->most_shards ? c->most_shards : c->shards;
    struct lk_optimizer_traits traits = {0};
    LK_TRY(lk_optimizer_ask(c->optimizer, c->optimizer_options, &traits));
    stepper->spares_vectors = traits.spares;
    stepper->is_lazy = traits.lazy;
    const struct lk_replica_config replica = {
        .device = c->device,
        .outputs = {c->loss},
        .batch = c->most_shards ? shards * lk_divide_up(c->batch, c->shards) : c->batch,
        .shards = shards,
        .micro_batches = c->shards / shards,
        .transform = c->transform,
        .real = c->real,
        .stores_half = c->loss_scale.first > 0,
        .training = true,
        .part = c->part,
        .recompute = c->recompute,
        .seed = c->seed,
        .choices = c->choices,
        .optimizer_arrays = traits.arrays + (c->ema > 0),
        .gradient_sums = 1 + (c->most_shards ? lk_exchange_terms(c->shards, shards) : 0),
        /* the norm of a list is not that of the gradient */
        .list_shards = c->lists_rows && c->clip.norm == 0 ? c->shards : 0,
    };
    LK_TRY(lk_replica_create(&replica, &stepper->replica));
    if (c->most_shards)
        return LK_OK;
    return lk_shard_sum_create(c->device, lk_replica_tiling(stepper->replica), c->real, false,
                               &stepper->sum);
}

enum lk_status lk_stepper_create(const struct lk_stepper_config *config,
                                 struct lk_stepper **stepper)
{
    struct lk_stepper *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("a stepper", sizeof *made);
    made->config = *config;
    const enum lk_status status = create(made);
    if (status != LK_OK) {
        lk_stepper_destroy(made);
        return status;
    }
    *stepper = made;
    return LK_OK;
}

static enum lk_status allocate_alone(struct lk_stepper *stepper, size_t real)
{
    struct lk_device *device = stepper->config.device;
    const size_t dense = (size_t)lk_replica_gradient_stride(stepper->replica);
    LK_TRY(lk_buffer_create(device, dense * real, &stepper->gradient));
    LK_TRY(lk_buffer_create(device, METRICS * real, &stepper->metrics));
    for (int i = 0; i < LK_REPLICA_SLOTS; i++)
        LK_TRY(lk_staging_create(device, METRICS * real, &stepper->slots[i].metrics));
    return LK_OK;
}

/* Factors of a parameter's updates: a vector is a bias, or scales or shifts what is normalized.
 */
static struct lk_param_factors factors_of(const struct lk_stepper *stepper,
                                          const struct lk_param *param)
{
    const bool is_vector = param->shape.rank < 2;
    const struct lk_param_penalties penalties = lk_param_penalties(param);
    return (struct lk_param_factors){.first = param->offset,
                                     .count = param->count,
                                     .rate = param->lr_scale,
                                     .decay = stepper->spares_vectors && is_vector ? 0 : 1,
                                     .l1 = penalties.l1,
                                     .l2 = penalties.l2};
}

static enum lk_status create_optimizer(struct lk_stepper *stepper, int64_t count)
{
    const struct lk_stepper_config *c = &stepper->config;
    const struct lk_param *param;
    int params = 0, used = 0, tables = 0;
    while (lk_replica_param(stepper->replica, params))
        params++;
    struct lk_param_factors *factors = calloc((size_t)params + 1, sizeof *factors);
    struct lk_param_rows *rows = calloc((size_t)params + 1, sizeof *rows);
    if (!factors || !rows) {
        free(factors);
        free(rows);
        return lk_fail_memory("factors of parameters", (size_t)params * sizeof *factors);
    }
    for (int i = 0; (param = lk_replica_param(stepper->replica, i)); i++) {
        const struct lk_param_factors of = factors_of(stepper, param);
        if (param->is_trainable && (of.rate != 1 || of.decay != 1 || of.l1 != 0 || of.l2 != 0))
            factors[used++] = of;
        if (param->is_trainable && param->spec.is_rows &&
            (stepper->is_lazy || param->places > 0))
            rows[tables++] =
                (struct lk_param_rows){.first = param->offset,
                                       .count = param->count,
                                       .units = param->shape.dim[param->shape.rank - 1],
                                       .places = param->places,
                                       .shards = c->shards};
    }
    const struct lk_optimizer_config config = {.device = c->device,
                                               .real = c->real,
                                               .kind = c->optimizer,
                                               .options = c->optimizer_options,
                                               .count = count,
                                               .factors = factors,
                                               .factor_count = used,
                                               .rows = rows,
                                               .row_count = tables,
                                               .clip = c->clip,
                                               .ema = c->ema};
    const enum lk_status status = lk_optimizer_create(&config, &stepper->optimizer);
    free(factors);
    free(rows);
    return status;
}

enum lk_status lk_stepper_build(struct lk_stepper *stepper)
{
    const struct lk_stepper_config *c = &stepper->config;
    const int64_t count = lk_replica_trainable_count(stepper->replica);
    const int64_t all = lk_replica_gradient_count(stepper->replica);
    if (count == 0)
        return lk_fail(LK_E_MODEL, "the model has no parameter to train");
    LK_TRY(create_optimizer(stepper, count));
    if (all > count)
        LK_TRY(lk_optimizer_track(stepper->optimizer, c->device, all - count));
    if (c->loss_scale.first > 0)
        LK_TRY(lk_optimizer_scale_loss(stepper->optimizer, c->device, &c->loss_scale));
    lk_replica_set_loss_scale(stepper->replica, lk_optimizer_info(stepper->optimizer)->scaling);
    for (int i = 0; i < LK_REPLICA_SLOTS; i++)
        for (int j = 0; j < LK_STEP_TIMESTAMPS; j++)
            LK_TRY(lk_timestamp_create(c->device, &stepper->slots[i].marks[j]));
    if (c->most_shards)
        LK_TRY(lk_exchange_create(c->device, stepper->replica, c->shards, &stepper->exchange));
    else
        LK_TRY(allocate_alone(stepper, lk_dtype_bytes(c->real)));
    LK_TRY(lk_replica_build(stepper->replica));
    return lk_replica_init_weights(stepper->replica, c->seed);
}

void lk_stepper_destroy(struct lk_stepper *stepper)
{
    if (!stepper)
        return;
    (void)!lk_device_finish(stepper->config.device);
    for (int i = 0; i < LK_REPLICA_SLOTS; i++) {
        lk_staging_destroy(stepper->slots[i].metrics);
        for (int j = 0; j < LK_STEP_TIMESTAMPS; j++)
            lk_timestamp_destroy(stepper->slots[i].marks[j]);
    }
    lk_exchange_destroy(stepper->exchange);
    lk_buffer_destroy(stepper->metrics);
    lk_buffer_destroy(stepper->gradient);
    lk_shard_sum_destroy(stepper->sum);
    lk_optimizer_destroy(stepper->optimizer);
    lk_replica_destroy(stepper->replica);
    free(stepper);
}

struct lk_replica *lk_stepper_replica(struct lk_stepper *stepper)
{
    return stepper->replica;
}

struct lk_optimizer *lk_stepper_optimizer(struct lk_stepper *stepper)
{
    return stepper->optimizer;
}

enum lk_status lk_stepper_read(struct lk_stepper *stepper, int slot, struct lk_batches *batches,
                               struct lk_batch_range part)
{
    void *to[LK_MOST_FIELDS] = {NULL};
    return lk_feed_read(stepper->config.feed, stepper->replica, slot, batches, part, to);
}

/* Row lists have all of their shards side by side as they are: the update adds them up. */
static enum lk_status update_listed(struct lk_stepper *stepper, struct lk_update update)
{
    struct lk_optimizer *optimizer = stepper->optimizer;
    struct lk_buffer *w = lk_replica_weights(stepper->replica);
    const int64_t listed = lk_replica_listed_count(stepper->replica);
    struct lk_bucket b;
    update.first = listed;
    update.count = lk_replica_gradient_stride(stepper->replica);
    LK_TRY(lk_optimizer_enqueue_check(optimizer, stepper->gradient, listed, update.count));
    for (int i = 0; i < lk_replica_bucket_count(stepper->replica); i++)
        if ((b = lk_replica_bucket(stepper->replica, i)).list_stride > 0)
            LK_TRY(lk_optimizer_enqueue_check(optimizer, b.list, b.first, b.sum_count));
    LK_TRY(lk_optimizer_enqueue_decision(optimizer, update.scale));
    LK_TRY(lk_optimizer_enqueue_part(optimizer, w, stepper->gradient, &update));
    update.is_list = true;
    for (int i = 0; i < lk_replica_bucket_count(stepper->replica); i++) {
        if ((b = lk_replica_bucket(stepper->replica, i)).list_stride == 0)
            continue;
        update.first = b.first;
        update.count = b.count;
        LK_TRY(lk_optimizer_enqueue_part(optimizer, w, b.list, &update));
    }
    return LK_OK;
}

/* Sums are divided by the number of samples in the update, by its scale. */
static enum lk_status reduce_and_update(struct lk_stepper *stepper, int64_t samples, double lr,
                                        int64_t step)
{
    struct lk_replica *replica = stepper->replica;
    const int64_t count = lk_replica_gradient_stride(replica);
    const double scale = 1.0 / (double)samples;
    const struct lk_shard_slice slice = {
        .x = lk_replica_gradients(replica), .stride = count, .count = count};
    LK_TRY(lk_shard_sum_enqueue(stepper->sum, (struct lk_subtree){0, stepper->config.shards},
                                &slice, stepper->gradient, 0));
    if (lk_replica_listed_count(replica) > 0)
        return update_listed(stepper,
                             (struct lk_update){.scale = scale, .lr = lr, .step = step});
    return lk_optimizer_enqueue(stepper->optimizer, lk_replica_weights(replica),
                                stepper->gradient, scale, lr, step);
}

enum lk_status lk_stepper_enqueue_penalties(struct lk_stepper *stepper,
                                            struct lk_buffer *metrics, bool is_first)
{
    return lk_optimizer_enqueue_penalties(stepper->optimizer,
                                          lk_replica_weights(stepper->replica), is_first,
                                          metrics, LK_METRIC_PENALTY);
}

enum lk_status lk_stepper_enqueue(struct lk_stepper *stepper, int slot, int64_t samples,
                                  double lr, int64_t step)
{
    struct lk_stepper_slot *s = &stepper->slots[slot];
    struct lk_shape shape;
    struct lk_shard_slice slice;
    const size_t bytes = METRICS * lk_dtype_bytes(stepper->config.real);
    s->samples = samples;
    LK_TRY(lk_timestamp_enqueue(s->marks[LK_AT_START]));
    LK_TRY(lk_replica_load(stepper->replica, slot, samples));
    LK_TRY(lk_timestamp_enqueue(s->marks[LK_AT_LOADED]));
    LK_TRY(lk_replica_forward(stepper->replica, step));
    LK_TRY(lk_shard_sum_enqueue_metrics(stepper->sum,
                                        lk_replica_output(stepper->replica, 0, &shape),
                                        stepper->config.shards, &slice));
    LK_TRY(lk_stepper_enqueue_penalties(stepper, lk_shard_sum_metrics(stepper->sum), true));
    LK_TRY(lk_shard_sum_enqueue(stepper->sum, (struct lk_subtree){0, stepper->config.shards},
                                &slice, stepper->metrics, 0));
    LK_TRY(lk_replica_backward(stepper->replica));
    LK_TRY(lk_timestamp_enqueue(s->marks[LK_AT_BACKWARD]));
    LK_TRY(reduce_and_update(stepper, samples, lr, step));
    LK_TRY(lk_timestamp_enqueue(s->marks[LK_AT_END]));
    return lk_staging_enqueue_read(s->metrics, stepper->metrics, bytes);
}

struct lk_step_metrics lk_step_metrics_read(const void *sums, enum lk_dtype real,
                                            int64_t samples)
{
    double of[3];
    for (int i = 0; i < LK_COUNT(of); i++)
        of[i] = real == LK_F64 ? ((const double *)sums)[i] : ((const float *)sums)[i];
    return (struct lk_step_metrics){.loss = of[LK_METRIC_LOSS] / (double)samples +
                                            of[LK_METRIC_PENALTY],
                                    .accuracy = of[LK_METRIC_CORRECT] / (double)samples};
}

enum lk_status lk_stepper_wait(struct lk_stepper *stepper, int slot,
                               struct lk_step_result *result)
{
    const struct lk_stepper_slot *s = &stepper->slots[slot];
    LK_TRY(lk_staging_wait(s->metrics));
    LK_TRY(lk_replica_wait_slot(stepper->replica, slot)); /* it has been uploaded before the
                                                           * metrics came, or that has failed */
    const void *sums = lk_staging_memory(s->metrics);
    double at[LK_STEP_TIMESTAMPS];
    for (int i = 0; i < LK_STEP_TIMESTAMPS; i++)
        at[i] = 1e3 * lk_timestamp_seconds(s->marks[i]);
    const struct lk_step_metrics found =
        lk_step_metrics_read(sums, stepper->config.real, s->samples);
    *result = (struct lk_step_result){
        .loss = found.loss,
        .accuracy = found.accuracy,
        .transfer_ms = at[LK_AT_LOADED] - at[LK_AT_START],
        .compute_ms = at[LK_AT_BACKWARD] - at[LK_AT_LOADED],
        .reduce_ms = at[LK_AT_END] - at[LK_AT_BACKWARD],
    };
    return LK_OK;
}
