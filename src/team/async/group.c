/* What a device does with a group of shards: takes it, computes it, adds it up and makes it
 * the log's next entry. */
#include "team/async/internal.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/log.h"
#include "tensor/elementwise.h"
#include <string.h>

/* A device is at fault when the sums of so many groups in a row were not finite on it and
 * finite on another device. (A single such group proves nothing: where training diverges,
 * the device with the newest parameters is the first to see it.) */
enum { MOST_DOUBTS = 3 };

/* --- computing -----------------------------------------------------------------------------
 */

/* Whether the device may take the next group. A group whose sums were not finite on this
 * device goes to another one, where there is one. */
static bool may_take(const struct lk_worker *worker)
{
    const struct lk_team *team = worker->team;
    return team->async->queue[0].doubted != worker->position + 1 || lk_team_left(team) < 2;
}

/* Takes nothing while a device adds to the log: whether another group may begin depends on
 * what is added. */
bool lk_async_dequeue_group(struct lk_worker *worker)
{
    struct lk_async *async = worker->team->async;
    struct lk_async_member *member = lk_async_member(worker);
    if (async->is_pausing || async->is_adding || async->queued == 0 || !may_take(worker) ||
        !lk_staleness_may_begin(&async->staleness, member->applied))
        return false;
    member->group = async->queue[0];
    member->has_group = true;
    async->queued--;
    memmove(async->queue, async->queue + 1, (size_t)async->queued * sizeof *async->queue);
    lk_staleness_begin(&async->staleness, worker->position, member->applied);
    pthread_cond_broadcast(&worker->team->changed); /* the queue may want more */
    return true;
}

static enum lk_status await(struct lk_worker *worker, int bucket, int arrival)
{
    struct lk_arrival *a = &worker->delivery.arrivals[arrival];
    return lk_exchange_wait(lk_stepper_exchange(worker->stepper), bucket, a->terms,
                            &a->checksums, &a->count);
}

/* Computes a group and waits until all its sums are in host memory. */
static enum lk_status compute(struct lk_worker *worker, const struct lk_step_share *share)
{
    struct lk_team *team = worker->team;
    struct lk_exchange *exchange = lk_stepper_exchange(worker->stepper);
    const double start = lk_seconds();
    LK_TRY(lk_worker_fail(worker, share->step));
    lk_worker_trace(worker, share->step);
    LK_TRY(lk_stepper_begin(worker->stepper, team->batches, share));
    lk_worker_note(worker, "enqueue", share->step, start, lk_seconds());
    const double begun = lk_seconds();
    LK_TRY(await(worker, lk_exchange_metrics(exchange), LK_ARRIVAL_METRICS));
    for (int b = 0; b < team->buckets; b++)
        LK_TRY(await(worker, b, LK_ARRIVAL_BUCKETS + b));
    struct lk_delivery *delivery = &worker->delivery;
    LK_TRY(lk_stepper_check_crossings(worker->stepper, &delivery->wrong_at));
    delivery->has_crossed_wrong = delivery->wrong_at >= 0;
    lk_worker_be_slow(worker, lk_seconds() - start);
    worker->delivery.times = lk_stepper_share_times(worker->stepper);
    if (!(worker->delivery.times.compute_ms > 0)) /* a driver without times */
        worker->delivery.times.compute_ms = 1e3 * (lk_seconds() - start);
    worker->delivery.times.compute_ms *= worker->trouble.slowness;
    lk_worker_note(worker, "wait", share->step, begun, lk_seconds());
    lk_worker_collect(worker, share->step);
    return LK_OK;
}

/* --- adding up -----------------------------------------------------------------------------
 */

/* Adds up an arrival of a group. */
static enum lk_status add_arrival(struct lk_worker *worker, int arrival, void *memory,
                                  uint32_t *checksum, bool *is_finite)
{
    struct lk_team *team = worker->team;
    const struct lk_arrival *a = &worker->delivery.arrivals[arrival];
    const struct lk_shard_run run = lk_async_member(worker)->group.share.run;
    uint32_t found[LK_MOST_SHARDS];
    struct lk_reduction_result sum = {
        .subtree = {run.first, run.count}, .copies = &memory, .copy_count = 1};
    const struct lk_reduction_job job = {.dtype = team->config.real,
                                         .count = team->values[arrival],
                                         .terms = a->terms,
                                         .term_count = a->count,
                                         .sums = &sum,
                                         .sum_count = 1,
                                         .checksums = found};
    LK_TRY(lk_reducer_sum(team->reducer, &job));
    *checksum = sum.checksum;
    *is_finite &= sum.is_finite;
    if (memcmp(found, a->checksums, (size_t)a->count * sizeof *found) != 0)
        return lk_fail(LK_E_DEVICE, "what it sends does not arrive unchanged");
    return LK_OK;
}

struct outcome {
    double loss, correct, penalty, reduce_ms;
    bool is_finite;
};

/* Writes a group's sums into the log's next entry; the device is done with them.
 * fails: LK_E_DEVICE where they have changed on their way */
static enum lk_status add_up(struct lk_worker *worker, struct lk_async_update *update,
                             struct outcome *outcome)
{
    const struct lk_async_group *group = &lk_async_member(worker)->group;
    const struct lk_exchange *exchange = lk_stepper_exchange(worker->stepper);
    const bool is_f64 = worker->team->config.real == LK_F64;
    const size_t real = lk_dtype_bytes(worker->team->config.real);
    union {
        float f32[LK_PAD];
        double f64[LK_PAD];
    } metrics;
    uint32_t unused;
    const double start = lk_seconds();
    outcome->is_finite = true;
    if (worker->delivery.has_crossed_wrong)
        return lk_fail(LK_E_DEVICE,
                       "what crosses between its devices does not arrive unchanged");
    LK_TRY(add_arrival(worker, LK_ARRIVAL_METRICS, &metrics, &unused, &outcome->is_finite));
    for (int b = 0; b < worker->team->buckets; b++) {
        const size_t at = (size_t)lk_exchange_reals_before(exchange, b) * real;
        LK_TRY(add_arrival(worker, LK_ARRIVAL_BUCKETS + b, (char *)update->gradient + at,
                           &update->sums[b], &outcome->is_finite));
    }
    update->samples = group->samples;
    update->lr = group->lr;
    outcome->loss = is_f64 ? metrics.f64[0] : metrics.f32[0];
    outcome->correct = is_f64 ? metrics.f64[1] : metrics.f32[1];
    outcome->penalty = is_f64 ? metrics.f64[LK_METRIC_PENALTY] : metrics.f32[LK_METRIC_PENALTY];
    outcome->reduce_ms = 1e3 * (lk_seconds() - start);
    lk_worker_note(worker, "reduce", group->share.step, start, lk_seconds());
    return LK_OK;
}

/* --- the log -------------------------------------------------------------------------------
 */

/* Whether the log may get another entry: no other device is adding one, the entry that it
 * would overwrite has been applied everywhere, and no device in the middle of a group would
 * fall further behind than the bound on staleness allows. */
static bool may_add(const struct lk_worker *worker)
{
    const struct lk_team *team = worker->team;
    const struct lk_async *async = team->async;
    if (async->is_adding || !lk_staleness_may_apply(&async->staleness, worker->position))
        return false;
    for (int i = 0; i < team->count; i++)
        if (lk_worker_is_at_work(team->workers[i]) && !async->members[i].is_wrong &&
            async->staleness.updates - async->members[i].applied >= async->room)
            return false;
    return true;
}

/* From here on the group counts. */
static void commit(struct lk_worker *worker, const struct outcome *outcome, double waited)
{
    struct lk_async *async = worker->team->async;
    struct lk_async_member *member = lk_async_member(worker);
    const struct lk_async_group *group = &member->group;
    struct lk_async_step *step = &async->steps[group->share.step % LK_MOST_BEGUN];
    struct lk_device_times *times = &step->devices[worker->position];
    lk_staleness_apply(&async->staleness, worker->position);
    async->is_unchecked = true;
    step->applied++;
    step->loss += outcome->loss;
    step->correct += outcome->correct;
    step->penalty += outcome->penalty;
    step->tries = group->tries > step->tries ? group->tries : step->tries;
    times->samples += group->samples;
    times->input_ms += worker->delivery.times.input_ms;
    times->transfer_ms += worker->delivery.times.transfer_ms;
    times->compute_ms += worker->delivery.times.compute_ms;
    times->reduce_ms += outcome->reduce_ms;
    times->wait_ms += 1e3 * waited;
    worker->evidence.changed = 0;
    member->has_group = false;
    member->doubts = 0;
}

/* A group whose sums cannot be used is computed again, perhaps by another device. */
static void refuse(struct lk_worker *worker, bool has_changed)
{
    struct lk_team *team = worker->team;
    struct lk_async_member *member = lk_async_member(worker);
    if (has_changed) {
        lk_log(LK_LOG_WARNING, "device %d: gradients were changed on their way in step %lld",
               worker->position, (long long)member->group.share.step);
        if (++worker->evidence.changed > 1)
            lk_worker_change(worker, LK_WORKER_LOSE, lk_error_text());
        lk_error_clear();
    } else {
        member->group.doubted = worker->position + 1;
        member->group.doubted_at = member->applied;
    }
    team->counts.repeated_steps++;
    lk_async_return(team->async, worker->position);
}

/* Judges the device on which this group's sums were not finite before. It is at fault if
 * they are finite here with the same parameters, or if that happened several times in a row.
 * If no device finds finite sums, training has diverged, and the update is made as it is. */
static void judge_doubted(struct lk_worker *worker, bool is_finite)
{
    struct lk_team *team = worker->team;
    const struct lk_async_member *member = lk_async_member(worker);
    struct lk_worker *doubted = team->workers[member->group.doubted - 1];
    if (!is_finite)
        team->judgement.has_diverged = true;
    else if (doubted != worker && (++lk_async_member(doubted)->doubts == MOST_DOUBTS ||
                                   member->group.doubted_at == member->applied))
        lk_worker_change(doubted, LK_WORKER_LOSE, "it computes no numbers where others do");
}

/* Makes the group that was computed the log's next entry, as soon as it may be. */
static enum lk_status add_update(struct lk_worker *worker)
{
    struct lk_team *team = worker->team;
    struct lk_async *async = team->async;
    struct lk_async_member *member = lk_async_member(worker);
    struct outcome outcome = {0};
    const double start = lk_seconds();
    while (lk_worker_is_at_work(worker) && !async->is_stopped && !may_add(worker))
        pthread_cond_wait(&team->changed, &team->mutex);
    if (!lk_worker_is_at_work(worker) || async->is_stopped)
        return LK_OK;
    const double waited = lk_seconds() - start;
    async->is_adding = true;
    pthread_mutex_unlock(&team->mutex);
    const enum lk_status status =
        add_up(worker, lk_async_update(async, async->staleness.updates + 1), &outcome);
    pthread_mutex_lock(&team->mutex);
    async->is_adding = false;
    pthread_cond_broadcast(&team->changed);
    if (status != LK_OK && status != LK_E_DEVICE)
        return status;
    if (status == LK_OK && member->group.doubted)
        judge_doubted(worker, outcome.is_finite);
    if (status == LK_OK && (outcome.is_finite || team->judgement.has_diverged))
        commit(worker, &outcome, waited);
    else
        refuse(worker, status != LK_OK);
    return LK_OK;
}

enum lk_status lk_async_do_group(struct lk_worker *worker)
{
    struct lk_team *team = worker->team;
    struct lk_async_member *member = lk_async_member(worker);
    const double start = lk_team_seconds(team);
    member->since = start;
    pthread_mutex_unlock(&team->mutex);
    const enum lk_status status = compute(worker, &member->group.share);
    pthread_mutex_lock(&team->mutex);
    if (!lk_worker_is_at_work(worker) || status != LK_OK)
        return status;
    member->since = 0;
    const double seconds = lk_team_seconds(team) - start;
    if (member->has_computed)
        lk_team_note_step(team, seconds, seconds);
    member->has_computed = true;
    return add_update(worker);
}
