/* Runs a device's share of a training step again and again, as a worker of a team does, and
 * measures when each bucket is ready. */
#include "base/clock.h"
#include "base/fail.h"
#include "bench/samples.h"
#include "bench/scale/scale.h"
#include "bench/timing.h"
#include "model/model.h"
#include "optim/optimizer.h"
#include "tensor/elementwise.h"
#include "train/settings/settings.h"
#include <stdlib.h>
#include <string.h>

enum { FEWEST_ROUNDS = 3, MOST_ROUNDS = 63, TRIPS = 8 };

/* Times of one kind, [MOST_ROUNDS]. */
typedef double times[MOST_ROUNDS];

struct meter {
    const struct lk_scale_subject *subject;
    struct lk_device *device;
    struct lk_model *model;
    struct lk_choices *choices;
    struct lk_stepper *stepper;
    struct lk_replica *replica;
    struct lk_exchange *exchange;
    /* a very small one, to time what every transfer waits for */
    struct lk_transfer_buffer *parcel;
    struct lk_timestamp *start, *end;
    struct lk_timestamp *ready[LK_MOST_BUCKETS], *arrived[LK_MOST_BUCKETS],
        *updated[LK_MOST_BUCKETS];
    int buckets, sizes, most;    /* sizes: how many numbers of shards are wanted */
    int size_at[LK_MOST_SHARDS]; /* ascending */
    int rounds;
    int64_t step;
    times *took;   /* [sizes][buckets] */
    times *cores;  /* [sizes] */
    times *update; /* [buckets] */
    times trips;
};

/* --- what the settings say ---------------------------------------------------------------- */

struct lk_loss_scale lk_scale_loss_scale(const struct lk_settings *settings)
{
    return settings ? lk_settings_loss_scale(settings) : (struct lk_loss_scale){0};
}

bool lk_scale_asks_planes(const struct lk_settings *settings, struct lk_model *model,
                          int64_t batch, int shards)
{
    return settings ? lk_settings_ask_planes(settings, model, batch, shards)
                    : lk_model_trains_planes(model, batch, shards);
}

/* --- making ----------------------------------------------------------------------------- */

static void list_sizes(struct meter *m)
{
    m->most = 1;
    for (int n = 1; n <= LK_MOST_SHARDS; n++)
        if (m->subject->wanted[n])
            m->size_at[m->sizes++] = n;
    while (m->sizes > 0 && m->most < m->size_at[m->sizes - 1])
        m->most *= 2;
}

static enum lk_status create_stepper(struct meter *m)
{
    struct lk_node *labels, *loss;
    LK_TRY(m->subject->settings ? lk_settings_open_model(m->subject->settings, &m->model)
                                : lk_model_open(m->subject->model, NULL, &m->model));
    LK_TRY(lk_model_add_loss(m->model, &labels, &loss));
    LK_TRY(lk_choices_create(LK_MATH_NORMAL, &m->choices));
    const struct lk_stepper_config config = {
        .device = m->device,
        .loss = loss,
        .batch = m->subject->batch,
        .shards = m->subject->shards,
        .most_shards = m->most,
        .real = LK_F32,
        .seed = 1,
        .optimizer = "adam",
        .choices = m->choices,
        .lists_rows = true,
        .loss_scale = lk_scale_loss_scale(m->subject->settings),
        .few_samples = lk_scale_asks_planes(m->subject->settings, m->model, m->subject->batch,
                                            m->subject->shards)};
    LK_TRY(lk_stepper_create(&config, &m->stepper));
    LK_TRY(lk_stepper_build(m->stepper));
    m->replica = lk_stepper_replica(m->stepper);
    m->exchange = lk_stepper_exchange(m->stepper);
    m->buckets = lk_replica_bucket_count(m->replica);
    return LK_OK;
}

static int64_t samples_of(const struct meter *m, int shards)
{
    return lk_least(shards * lk_replica_tiling(m->replica)->shard_samples, m->subject->batch);
}

static enum lk_status create(struct meter *m)
{
    list_sizes(m);
    LK_TRY(create_stepper(m));
    lk_samples_fill(m->stepper, m->model, 0, samples_of(m, m->most));
    LK_TRY(lk_timestamp_create(m->device, &m->start));
    LK_TRY(lk_timestamp_create(m->device, &m->end));
    for (int b = 0; b < m->buckets; b++) {
        LK_TRY(lk_timestamp_create(m->device, &m->ready[b]));
        LK_TRY(lk_timestamp_create(m->device, &m->arrived[b]));
        LK_TRY(lk_timestamp_create(m->device, &m->updated[b]));
    }
    LK_TRY(lk_transfer_buffer_create(m->device, LK_PAD * sizeof(float), LK_DEVICE_WRITES,
                                     &m->parcel));
    LK_TRY(lk_buffer_enqueue_fill(lk_transfer_buffer_on_device(m->parcel), 0));
    m->took = calloc((size_t)(m->sizes * m->buckets), sizeof *m->took);
    m->cores = calloc((size_t)m->sizes, sizeof *m->cores);
    m->update = calloc((size_t)m->buckets, sizeof *m->update);
    return m->took && m->cores && m->update ? LK_OK
                                            : lk_fail_memory("times of steps", sizeof *m->took);
}

static void clear(struct meter *m)
{
    (void)!lk_device_finish(m->device);
    lk_timestamp_destroy(m->start);
    lk_timestamp_destroy(m->end);
    for (int b = 0; b < m->buckets; b++) {
        lk_timestamp_destroy(m->ready[b]);
        lk_timestamp_destroy(m->arrived[b]);
        lk_timestamp_destroy(m->updated[b]);
    }
    lk_transfer_buffer_destroy(m->parcel);
    lk_stepper_destroy(m->stepper);
    lk_choices_destroy(m->choices);
    lk_model_destroy(m->model);
    free(m->took);
    free(m->cores);
    free(m->update);
}

/* --- a step ----------------------------------------------------------------------------- */

static enum lk_status enqueue_part(struct meter *m, int shards)
{
    const struct lk_shard_run run = {0, shards};
    const struct lk_micro_batch share = {.shards = shards, .samples = samples_of(m, shards)};
    LK_TRY(lk_exchange_begin(m->exchange, run));
    LK_TRY(lk_timestamp_enqueue(m->start));
    LK_TRY(lk_replica_load_micro_batch(m->replica, 0, &share));
    LK_TRY(lk_replica_forward(m->replica, m->step));
    LK_TRY(lk_exchange_enqueue_metrics(m->exchange, m->replica, run));
    for (int b = 0; b < m->buckets; b++) {
        LK_TRY(lk_replica_backward_bucket(m->replica, b));
        LK_TRY(lk_exchange_enqueue_bucket(m->exchange, b, run));
        LK_TRY(lk_timestamp_enqueue(m->ready[b]));
    }
    return LK_OK;
}

/* Takes the first subtree's sum in place of the sum over all devices, whose value does not
 * matter here. */
static enum lk_status take_sums(struct meter *m)
{
    struct lk_term terms[LK_MOST_SHARDS];
    const uint32_t *checksums;
    int count;
    void *result;
    LK_TRY(lk_exchange_wait(m->exchange, m->buckets, terms, &checksums, &count));
    for (int b = 0; b < m->buckets; b++) {
        const size_t values = (size_t)lk_replica_bucket(m->replica, b).sum_count;
        LK_TRY(lk_exchange_wait(m->exchange, b, terms, &checksums, &count));
        LK_TRY(lk_exchange_result(m->exchange, b, &result));
        memcpy(result, terms[0].values, values * sizeof(float));
    }
    return LK_OK;
}

static enum lk_status enqueue_update(struct meter *m, int shards)
{
    const uint32_t *checksums;
    for (int b = 0; b < m->buckets; b++) {
        const struct lk_bucket bucket = lk_replica_bucket(m->replica, b);
        const struct lk_update update = {.first = bucket.first,
                                         .count = bucket.count,
                                         .is_list = bucket.list_stride > 0,
                                         .scale = 1.0 / (double)samples_of(m, shards),
                                         .lr = 1e-3,
                                         .step = m->step};
        LK_TRY(lk_exchange_enqueue_result(m->exchange, b));
        LK_TRY(lk_timestamp_enqueue(m->arrived[b]));
        LK_TRY(lk_optimizer_enqueue_part(lk_stepper_optimizer(m->stepper),
                                         lk_replica_weights(m->replica),
                                         lk_exchange_sum(m->exchange, b), &update));
        LK_TRY(lk_timestamp_enqueue(m->updated[b]));
    }
    LK_TRY(lk_exchange_end(m->exchange, false));
    LK_TRY(lk_timestamp_enqueue(m->end));
    return lk_exchange_checks(m->exchange, &checksums);
}

static enum lk_status run_step(struct meter *m, int shards)
{
    m->step++;
    LK_TRY(enqueue_part(m, shards));
    LK_TRY(take_sums(m));
    LK_TRY(enqueue_update(m, shards));
    return lk_device_finish(m->device);
}

static double between(const struct lk_timestamp *a, const struct lk_timestamp *b)
{
    return lk_timestamp_seconds(b) - lk_timestamp_seconds(a);
}

/* Notes the times of a step; the time of checksums after the last update counts as update. */
static void note_step(struct meter *m, int size)
{
    for (int b = 0; b < m->buckets; b++) {
        struct lk_timestamp *updated = b < m->buckets - 1 ? m->updated[b] : m->end;
        m->took[size * m->buckets + b][m->rounds] = between(m->start, m->ready[b]);
        m->update[b][m->rounds] = between(m->arrived[b], updated);
    }
}

/* Measures the fixed cost of a step, between the last bucket's arrival and the next start:
 * hands a tiny piece of memory to the host and back, so that transfer and addition hardly
 * count. */
static enum lk_status time_trips(struct meter *m, double *seconds)
{
    void *memory;
    const double start = lk_seconds();
    for (int i = 0; i < TRIPS; i++) {
        LK_TRY(lk_transfer_buffer_enqueue_to_host(m->parcel, LK_PAD * sizeof(float)));
        LK_TRY(lk_transfer_buffer_wait(m->parcel, &memory));
        LK_TRY(lk_transfer_buffer_enqueue_to_device(m->parcel, LK_PAD * sizeof(float)));
    }
    LK_TRY(lk_device_finish(m->device));
    *seconds = (lk_seconds() - start) / TRIPS;
    return LK_OK;
}

static enum lk_status measure(struct meter *m, double seconds)
{
    LK_TRY(create(m));
    for (int i = 0; i < m->sizes; i++) /* some drivers compile here */
        LK_TRY(run_step(m, m->size_at[i]));
    const double end = lk_seconds() + seconds * m->sizes;
    while (m->rounds < FEWEST_ROUNDS || (m->rounds < MOST_ROUNDS && lk_seconds() < end)) {
        for (int i = 0; i < m->sizes; i++) {
            const double start = lk_core_seconds();
            LK_TRY(run_step(m, m->size_at[i]));
            m->cores[i][m->rounds] = lk_core_seconds() - start;
            note_step(m, i);
        }
        LK_TRY(time_trips(m, &m->trips[m->rounds]));
        m->rounds++;
    }
    return LK_OK;
}

/* Of the times that lk_median() has sorted. */
static double spread_of(const double *times, int count)
{
    return (times[count * 3 / 4] - times[count / 4]) / times[count / 2];
}

static void report(struct meter *m, struct lk_scale_costs *costs)
{
    costs->shards = m->subject->shards;
    costs->buckets = m->buckets;
    memset(costs->ready, 0, sizeof costs->ready);
    memset(costs->spread, 0, sizeof costs->spread);
    for (int b = 0; b < m->buckets; b++) {
        costs->bytes[b] = (double)lk_replica_bucket(m->replica, b).sum_count * sizeof(float);
        costs->update[b] = lk_median(m->update[b], m->rounds);
        for (int i = 0; i < m->sizes; i++) {
            double *times = m->took[i * m->buckets + b];
            costs->ready[m->size_at[i]][b] = lk_median(times, m->rounds);
            costs->spread[m->size_at[i]] = spread_of(times, m->rounds); /* of the last bucket */
        }
    }
    memset(costs->cores_time, 0, sizeof costs->cores_time);
    for (int i = 0; i < m->sizes; i++)
        costs->cores_time[m->size_at[i]] = lk_median(m->cores[i], m->rounds);
    costs->fixed = lk_median(m->trips, m->rounds);
}

enum lk_status lk_scale_measure(struct lk_device *device,
                                const struct lk_scale_subject *subject, double seconds,
                                struct lk_scale_costs *costs)
{
    struct meter *meter = calloc(1, sizeof *meter);
    if (!meter)
        return lk_fail_memory("a meter of steps", sizeof *meter);
    meter->device = device;
    meter->subject = subject;
    const enum lk_status status = measure(meter, seconds);
    if (status == LK_OK)
        report(meter, costs);
    clear(meter);
    free(meter);
    return status;
}
