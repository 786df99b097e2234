/* A device's share of a step: its shards, in micro-batches of as many as it has room for. */
#include "team/stepper/internal.h"

#include "base/clock.h"
#include "base/fail.h"

struct lk_micro_batch lk_stepper_micro_batch(const struct lk_stepper *stepper,
                                             const struct lk_step_share *given,
                                             struct lk_shard_run at_once)
{
    const int64_t each = lk_replica_tiling(stepper->places[0].replica)->shard_samples;
    const int64_t first = lk_least(at_once.first * each, given->samples);
    const int64_t end = lk_least((at_once.first + at_once.count) * each, given->samples);
    return (struct lk_micro_batch){at_once.count, first, end - first};
}

enum lk_status lk_stepper_fetch(struct lk_stepper *stepper,
                                const struct lk_feed_target *targets, int count,
                                struct lk_batches *batches, const struct lk_step_share *given,
                                const struct lk_micro_batch *micro_batch)
{
    void *to[LK_MOST_FIELDS] = {NULL};
    const struct lk_batch_range range = {given->step - 1, micro_batch->first_sample,
                                         micro_batch->samples};
    for (int i = 0; i < count; i++)
        LK_TRY(lk_replica_claim_slot(targets[i].replica, targets[i].slot));
    if (micro_batch->samples > 0)
        LK_TRY(lk_feed_read_all(stepper->config.feed, targets, count, batches, range, to));
    for (int i = 0; i < count; i++)
        LK_TRY(lk_replica_upload(targets[i].replica, targets[i].slot, micro_batch->samples));
    return LK_OK;
}

static enum lk_status fetch(struct lk_stepper *stepper, struct lk_batches *batches,
                            const struct lk_step_share *given,
                            const struct lk_micro_batch *micro_batch, double *ms)
{
    const struct lk_feed_target target = {stepper->places[0].replica, stepper->slot};
    const double start = lk_seconds();
    LK_TRY(lk_stepper_fetch(stepper, &target, 1, batches, given, micro_batch));
    *ms += 1e3 * (lk_seconds() - start);
    return LK_OK;
}

/* How many of a share's first micro-batches were prefetched. */
static int count_fetched(const struct lk_stepper *stepper, const struct lk_step_share *given)
{
    const struct lk_step_share *there = &stepper->fetched;
    const bool is_same = there->step == given->step && there->run.first == given->run.first &&
                         there->run.count == given->run.count;
    return is_same ? stepper->fetched_count : 0;
}

static enum lk_status run_micro_batch(struct lk_stepper *stepper,
                                      const struct lk_step_share *given,
                                      struct lk_shard_run at_once,
                                      const struct lk_micro_batch *micro_batch)
{
    struct lk_replica *replica = stepper->places[0].replica;
    const int buckets = lk_replica_bucket_count(replica);
    LK_TRY(lk_replica_load_micro_batch(replica, stepper->slot, micro_batch));
    stepper->slot = (stepper->slot + 1) % LK_REPLICA_SLOTS;
    if (at_once.first == given->run.first)
        LK_TRY(lk_timestamp_enqueue(stepper->slots[0].marks[LK_AT_LOADED]));
    LK_TRY(lk_replica_forward(replica, given->step));
    LK_TRY(lk_stepper_enqueue_penalties(stepper, lk_exchange_shard_metrics(stepper->exchange),
                                        at_once.first == 0));
    LK_TRY(lk_exchange_enqueue_metrics(stepper->exchange, replica, at_once));
    for (int b = 0; b < buckets; b++) {
        LK_TRY(lk_replica_backward_bucket(replica, b));
        LK_TRY(lk_exchange_enqueue_bucket(stepper->exchange, b, at_once));
    }
    return LK_OK;
}

enum lk_status lk_stepper_begin(struct lk_stepper *stepper, struct lk_batches *batches,
                                const struct lk_step_share *given)
{
    const int end = given->run.first + given->run.count;
    const int fetched = count_fetched(stepper, given);
    bool is_there = fetched > 0;
    stepper->fetched_count = 0;
    stepper->input_ms = is_there ? stepper->fetched_ms : 0;
    if (stepper->group)
        return lk_stepper_group_begin(stepper, batches, given, fetched);
    LK_TRY(lk_exchange_begin(stepper->exchange, given->run));
    LK_TRY(lk_timestamp_enqueue(stepper->slots[0].marks[LK_AT_START]));
    for (int first = given->run.first; first < end;) {
        const struct lk_shard_run at_once =
            lk_shard_run_at_once(given->run, first, stepper->config.most_shards);
        const struct lk_micro_batch micro_batch =
            lk_stepper_micro_batch(stepper, given, at_once);
        if (!is_there)
            LK_TRY(fetch(stepper, batches, given, &micro_batch, &stepper->input_ms));
        LK_TRY(run_micro_batch(stepper, given, at_once, &micro_batch));
        is_there = false;
        first += at_once.count;
    }
    return lk_timestamp_enqueue(stepper->slots[0].marks[LK_AT_BACKWARD]);
}

static enum lk_status prefetch_first(struct lk_stepper *stepper, struct lk_batches *batches,
                                     const struct lk_step_share *given)
{
    const struct lk_shard_run at_once =
        lk_shard_run_at_once(given->run, given->run.first, stepper->config.most_shards);
    const struct lk_micro_batch micro_batch = lk_stepper_micro_batch(stepper, given, at_once);
    LK_TRY(fetch(stepper, batches, given, &micro_batch, &stepper->fetched_ms));
    stepper->fetched_count = 1;
    return LK_OK;
}

enum lk_status lk_stepper_prefetch(struct lk_stepper *stepper, struct lk_batches *batches,
                                   const struct lk_step_share *given)
{
    const double start = lk_seconds();
    if (given->run.count == 0)
        return LK_OK;
    if (count_fetched(stepper, given) == 0) {
        stepper->fetched_ms = 0;
        stepper->fetched_count = 0;
        stepper->fetched = *given;
    }
    if (!stepper->group)
        return stepper->fetched_count ? LK_OK : prefetch_first(stepper, batches, given);
    LK_TRY(lk_stepper_group_prefetch(stepper, batches, given, stepper->fetched_count));
    stepper->fetched_ms += 1e3 * (lk_seconds() - start);
    return LK_OK;
}

void lk_stepper_set_next(struct lk_stepper *stepper, const struct lk_next_share *next)
{
    stepper->next = *next;
}

struct lk_exchange *lk_stepper_exchange(struct lk_stepper *stepper)
{
    return stepper->exchange;
}

/* Brings the sums to the device and looks at all of them. */
static enum lk_status enqueue_results(struct lk_stepper *stepper, int place)
{
    const struct lk_stepper_place *at = &stepper->places[place];
    for (int b = 0; b < lk_replica_bucket_count(at->replica); b++) {
        const struct lk_bucket bucket = lk_replica_bucket(at->replica, b);
        const int number = lk_exchange_bucket(stepper->exchange, place, b);
        LK_TRY(lk_exchange_enqueue_result(stepper->exchange, number));
        const struct lk_buffer *sum = lk_exchange_sum(stepper->exchange, number);
        LK_TRY(bucket.list_stride > 0 ? lk_optimizer_enqueue_check_list(
                                            at->optimizer, sum, bucket.first, bucket.sum_count)
                                      : lk_optimizer_enqueue_check(at->optimizer, sum,
                                                                   bucket.first, bucket.count));
    }
    return LK_OK;
}

/* Before any update all gradients are looked at: only then is it known whether the update is
 * left out, and how long the gradient is. */
static enum lk_status decide(struct lk_stepper *stepper, double scale)
{
    if (!lk_optimizer_decides(stepper->places[0].optimizer))
        return LK_OK;
    for (int i = 0; i < stepper->place_count; i++)
        LK_TRY(enqueue_results(stepper, i));
    if (stepper->group)
        LK_TRY(lk_stepper_share_checks(stepper));
    for (int i = 0; i < stepper->place_count; i++)
        LK_TRY(lk_optimizer_enqueue_decision(stepper->places[i].optimizer, scale));
    return LK_OK;
}

static enum lk_status update_place(struct lk_stepper *stepper, int place,
                                   struct lk_update update)
{
    const struct lk_stepper_place *at = &stepper->places[place];
    const bool decides = lk_optimizer_decides(at->optimizer);
    for (int b = 0; b < lk_replica_bucket_count(at->replica); b++) {
        const struct lk_bucket bucket = lk_replica_bucket(at->replica, b);
        const int number = lk_exchange_bucket(stepper->exchange, place, b);
        update.first = bucket.first;
        update.count = bucket.count;
        update.is_list = bucket.list_stride > 0;
        if (!decides)
            LK_TRY(lk_exchange_enqueue_result(stepper->exchange, number));
        LK_TRY(lk_optimizer_enqueue_part(at->optimizer, lk_replica_weights(at->replica),
                                         lk_exchange_sum(stepper->exchange, number), &update));
    }
    return LK_OK;
}

/* Sums are divided by the number of samples in the update, by its scale. */
enum lk_status lk_stepper_update(struct lk_stepper *stepper, int64_t samples, double lr,
                                 int64_t step, bool weights)
{
    const struct lk_update update = {.scale = 1.0 / (double)samples, .lr = lr, .step = step};
    LK_TRY(lk_stepper_await_copy(stepper));
    LK_TRY(decide(stepper, update.scale));
    for (int i = 0; i < stepper->place_count; i++)
        LK_TRY(update_place(stepper, i, update));
    return lk_exchange_end(stepper->exchange, weights);
}

enum lk_status lk_stepper_check_crossings(struct lk_stepper *stepper, int *wrong_at)
{
    *wrong_at = -1;
    return stepper->group ? lk_group_check(stepper->group, wrong_at) : LK_OK;
}

struct lk_share_times lk_stepper_share_times(const struct lk_stepper *stepper)
{
    double at[LK_STEP_TIMESTAMPS];
    for (int i = 0; i < LK_STEP_TIMESTAMPS; i++)
        at[i] = 1e3 * lk_timestamp_seconds(stepper->slots[0].marks[i]);
    struct lk_share_times times = {.input_ms = stepper->input_ms,
                                   .transfer_ms = at[LK_AT_LOADED] - at[LK_AT_START],
                                   .compute_ms = at[LK_AT_BACKWARD] - at[LK_AT_LOADED],
                                   .places = stepper->config.places};
    for (int p = 0; p < times.places; p++)
        times.of_place[p] = lk_group_times(stepper->group, p);
    return times;
}
