/* A share of a step on a device's thread: it computes its shards, hands their sums to the host
 * as they come, and updates by the sum over all shards. */
#include "team/lockstep/lockstep.h"

#include "base/clock.h"
#include "base/fail.h"

static enum lk_status take_metrics(struct lk_worker *worker, const struct lk_command *command)
{
    struct lk_exchange *exchange = lk_stepper_exchange(worker->stepper);
    struct lk_delivery *delivery = &worker->delivery;
    struct lk_arrival *arrival = &delivery->arrivals[LK_ARRIVAL_METRICS];
    arrival->count = 0;
    if (command->share.run.count > 0)
        LK_TRY(lk_exchange_wait(exchange, lk_exchange_metrics(exchange), arrival->terms,
                                &arrival->checksums, &arrival->count));
    delivery->checks = NULL;
    if (worker->has_updated)
        LK_TRY(lk_exchange_checks(exchange, &delivery->checks));
    (void)lk_worker_deliver(worker, command->ticket, 1);
    return LK_OK;
}

static enum lk_status take_bucket(struct lk_worker *worker, const struct lk_command *command,
                                  int bucket)
{
    struct lk_exchange *exchange = lk_stepper_exchange(worker->stepper);
    struct lk_arrival *arrival = &worker->delivery.arrivals[LK_ARRIVAL_BUCKETS + bucket];
    arrival->count = 0;
    if (command->share.run.count > 0)
        LK_TRY(lk_exchange_wait(exchange, bucket, arrival->terms, &arrival->checksums,
                                &arrival->count));
    return lk_exchange_result(exchange, bucket, &arrival->result);
}

/* Whether what crosses in a group was changed is known when all of its devices have ended the
 * share: for the host, before it adds up the last bucket; where sums go on to other ranks, and
 * could not be taken back, before the first arrival. */
static enum lk_status check_crossings(struct lk_worker *worker, bool has_shards)
{
    int wrong_at = -1;
    if (has_shards)
        LK_TRY(lk_stepper_check_crossings(worker->stepper, &wrong_at));
    worker->delivery.has_crossed_wrong = wrong_at >= 0;
    worker->delivery.wrong_at = wrong_at;
    return LK_OK;
}

static bool get_next(void *context, struct lk_step_share *next)
{
    struct lk_worker *worker = context;
    struct lk_team *team = worker->team;
    pthread_mutex_lock(&team->mutex);
    *next = team->queue.pending;
    next->run = worker->share;
    pthread_mutex_unlock(&team->mutex);
    return next->step && next->run.count;
}

/* The next step's samples are read while the device computes this one's. */
static enum lk_status prefetch(struct lk_worker *worker)
{
    struct lk_step_share next;
    return get_next(worker, &next)
               ? lk_stepper_prefetch(worker->stepper, worker->team->batches, &next)
               : LK_OK;
}

/* Takes the share's times. Called before the last bucket is announced, because the step is
 * reported as soon as that has come. */
static void take_times(struct lk_worker *worker, double start, double begun)
{
    struct lk_share_times *times = &worker->delivery.times;
    lk_worker_be_slow(worker, lk_seconds() - start);
    *times = lk_stepper_share_times(worker->stepper);
    if (!(times->compute_ms > 0)) /* a driver without times */
        times->compute_ms = 1e3 * (lk_seconds() - begun);
    times->compute_ms *= worker->trouble.slowness;
}

enum lk_status lk_share_begin(struct lk_worker *worker, const struct lk_command *command)
{
    struct lk_team *team = worker->team;
    const int64_t step = command->share.step;
    const bool has_shards = command->share.run.count > 0;
    const double start = lk_seconds();
    lk_worker_trace(worker, step);
    worker->delivery.times = (struct lk_share_times){0};
    LK_TRY(lk_worker_fail(worker, step));
    lk_stepper_set_next(worker->stepper, &(struct lk_next_share){get_next, worker});
    if (has_shards)
        LK_TRY(lk_stepper_begin(worker->stepper, team->batches, &command->share));
    const double begun = lk_seconds();
    LK_TRY(prefetch(worker));
    const double fetched = lk_seconds();
    if (team->job.ranks)
        LK_TRY(check_crossings(worker, has_shards));
    LK_TRY(take_metrics(worker, command));
    for (int bucket = 0; bucket < team->buckets; bucket++) {
        const bool is_last = bucket == team->buckets - 1;
        LK_TRY(take_bucket(worker, command, bucket));
        if (is_last && !team->job.ranks)
            LK_TRY(check_crossings(worker, has_shards));
        if (is_last)
            LK_TRY(lk_worker_end_copy(worker, step));
        if (is_last && has_shards)
            take_times(worker, start, begun);
        if (is_last) { /* once all is there, it may be found wrong, and the device abandoned */
            lk_worker_note(worker, "enqueue", step, start, begun);
            lk_worker_note(worker, "read next batch", step, begun, fetched);
            lk_worker_note(worker, "wait", step, fetched, lk_seconds());
            lk_worker_collect(worker, step);
        }
        if (!lk_worker_deliver(worker, command->ticket, 1))
            break;
    }
    return LK_OK;
}

enum lk_status lk_share_end(struct lk_worker *worker, const struct lk_command *command)
{
    struct lk_team *team = worker->team;
    worker->has_updated = true;
    if (command->keeps_gradient)
        LK_TRY(lk_stepper_keep_gradient(worker->stepper, command->share.step));
    LK_TRY(lk_stepper_update(worker->stepper, command->share.samples, command->lr,
                             command->share.step, command->weights));
    if (command->copies_state)
        LK_TRY(lk_worker_begin_copy(worker, command->share.step));
    pthread_mutex_lock(&team->mutex);
    lk_worker_change(worker, LK_WORKER_UPDATED, NULL);
    pthread_mutex_unlock(&team->mutex);
    return LK_OK;
}
