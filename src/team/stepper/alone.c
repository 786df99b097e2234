/* A training step on a device that is alone. */
#include "team/stepper/internal.h"

#include "base/fail.h"

enum lk_status lk_stepper_read(struct lk_stepper *stepper, int slot, struct lk_batches *batches,
                               struct lk_batch_range part)
{
    void *to[LK_MOST_FIELDS] = {NULL};
    return lk_feed_read(stepper->config.feed, stepper->places[0].replica, slot, batches, part,
                        to);
}

/* Row lists have all of their shards side by side as they are: the update adds them up. */
static enum lk_status update_listed(struct lk_stepper *stepper, struct lk_update update)
{
    struct lk_optimizer *optimizer = stepper->places[0].optimizer;
    struct lk_replica *replica = stepper->places[0].replica;
    struct lk_buffer *w = lk_replica_weights(replica);
    struct lk_gradient_run run;
    struct lk_bucket b;
    for (int i = 0; lk_replica_gradient_run(replica, i, &run); i++)
        LK_TRY(lk_optimizer_enqueue_check(optimizer, stepper->runs[i], run.first, run.count));
    for (int i = 0; i < lk_replica_bucket_count(replica); i++)
        if ((b = lk_replica_bucket(replica, i)).list_stride > 0)
            LK_TRY(lk_optimizer_enqueue_check_list(optimizer, b.list, b.first, b.sum_count));
    LK_TRY(lk_optimizer_enqueue_decision(optimizer, update.scale));
    for (int i = 0; lk_replica_gradient_run(replica, i, &run); i++) {
        update.first = run.first;
        update.count = run.count;
        LK_TRY(lk_optimizer_enqueue_part(optimizer, w, stepper->runs[i], &update));
    }
    update.is_list = true;
    for (int i = 0; i < lk_replica_bucket_count(replica); i++) {
        if ((b = lk_replica_bucket(replica, i)).list_stride == 0)
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
    struct lk_replica *replica = stepper->places[0].replica;
    const int64_t count = lk_replica_gradient_stride(replica);
    const double scale = 1.0 / (double)samples;
    LK_TRY(lk_stepper_await_copy(stepper));
    const struct lk_shard_slice slice = {
        .x = lk_replica_gradients(replica), .stride = count, .count = count};
    if (count > 0) /* else all that is trained are tables with row lists */
        LK_TRY(lk_shard_sum_enqueue(stepper->sum,
                                    (struct lk_subtree){0, stepper->config.shards}, &slice,
                                    &(struct lk_shard_target){.y = stepper->gradient}));
    if (lk_replica_listed_count(replica) > 0)
        return update_listed(stepper,
                             (struct lk_update){.scale = scale, .lr = lr, .step = step});
    return lk_optimizer_enqueue(stepper->places[0].optimizer, lk_replica_weights(replica),
                                stepper->gradient, scale, lr, step);
}

enum lk_status lk_stepper_enqueue_penalties(struct lk_stepper *stepper,
                                            struct lk_buffer *metrics, bool is_first)
{
    return lk_optimizer_enqueue_penalties(stepper->places[0].optimizer,
                                          lk_replica_weights(stepper->places[0].replica),
                                          is_first, metrics, LK_METRIC_PENALTY);
}

enum lk_status lk_stepper_enqueue(struct lk_stepper *stepper, int slot, int64_t samples,
                                  double lr, int64_t step)
{
    struct lk_stepper_slot *s = &stepper->slots[slot];
    struct lk_replica *replica = stepper->places[0].replica;
    struct lk_shape shape;
    struct lk_shard_slice slice;
    const size_t bytes = LK_STEP_METRICS * lk_dtype_bytes(stepper->config.real);
    s->samples = samples;
    LK_TRY(lk_timestamp_enqueue(s->marks[LK_AT_START]));
    LK_TRY(lk_replica_load(replica, slot, samples));
    LK_TRY(lk_timestamp_enqueue(s->marks[LK_AT_LOADED]));
    LK_TRY(lk_replica_forward(replica, step));
    LK_TRY(lk_shard_sum_enqueue_metrics(stepper->sum, lk_replica_output(replica, 0, &shape),
                                        stepper->config.shards, &slice));
    LK_TRY(lk_stepper_enqueue_penalties(stepper, lk_shard_sum_metrics(stepper->sum), true));
    LK_TRY(lk_shard_sum_enqueue(stepper->sum, (struct lk_subtree){0, stepper->config.shards},
                                &slice, &(struct lk_shard_target){.y = stepper->metrics}));
    LK_TRY(lk_replica_backward(replica));
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
    /* it has been uploaded before the metrics came, or that has failed */
    LK_TRY(lk_replica_wait_slot(stepper->places[0].replica, slot));
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
        .ended = 1e-3 * at[LK_AT_END],
    };
    return LK_OK;
}
