/* A team's steps: parts are ordered, their sums added up bucket by bucket as they come, and the
 * update ordered when all is there and right. */
#include "train/team_parts.h"

#include "base/fail.h"
#include "base/log.h"
#include "tensor/elementwise.h"
#include "train/async.h"
#include <stdio.h>
#include <string.h>

enum { MOST_TRIES = 8 };

/* --- ordering --------------------------------------------------------------------------- */

static void order_part(struct lk_team *team, struct lk_worker *worker)
{
    const struct lk_team_step *step = &team->steps[0];
    const struct lk_order order = {
        .kind = LK_ORDER_PART,
        .part = {.step = step->step, .samples = step->samples, .run = worker->run},
        .ticket = team->ticket,
    };
    worker->ticket = team->ticket;
    worker->arrived = 0;
    lk_worker_order(worker, &order);
}

/* Gives the oldest step to all devices, also to those without a shard, which need its sums; the
 * mutex is held. */
static void order_parts(struct lk_team *team)
{
    lk_team_deal(team);
    team->ticket++;
    team->is_at_work = true;
    team->ordered_at = lk_team_seconds(team);
    for (int i = 0; i < team->count; i++)
        if (!team->workers[i]->is_lost)
            order_part(team, team->workers[i]);
}

static struct lk_worker *only_worker(struct lk_team *team)
{
    int i = 0;
    while (i < team->count - 1 && team->workers[i]->is_lost)
        i++;
    return team->workers[i];
}

static void order_alone(struct lk_team *team, enum lk_order_kind kind,
                        const struct lk_team_step *step)
{
    const struct lk_order order = {.kind = kind,
                                   .part = {.step = step->step, .samples = step->samples},
                                   .ticket = step->step,
                                   .lr = step->lr};
    lk_worker_order(only_worker(team), &order);
}

enum lk_status lk_team_wants(struct lk_team *team, bool *wants)
{
    if (!team->async) {
        *wants = team->begun < LK_COUNT(team->steps);
        return LK_OK;
    }
    pthread_mutex_lock(&team->mutex);
    const enum lk_status status = lk_async_wants(team, wants);
    pthread_mutex_unlock(&team->mutex);
    return status;
}

static enum lk_status begin_async(struct lk_team *team, const struct lk_team_step *step)
{
    pthread_mutex_lock(&team->mutex);
    const enum lk_status status = lk_async_begin(team, step);
    pthread_mutex_unlock(&team->mutex);
    return status;
}

enum lk_status lk_team_begin(struct lk_team *team, const struct lk_team_step *step)
{
    if (team->async)
        return begin_async(team, step);
    if (team->begun == LK_COUNT(team->steps))
        return lk_fail(LK_E_ARGUMENT, "step %lld is begun before step %lld is ended",
                       (long long)step->step, (long long)team->steps[0].step);
    pthread_mutex_lock(&team->mutex);
    team->steps[team->begun++] = *step;
    if (team->is_alone)
        order_alone(team, LK_ORDER_START, step);
    else if (team->begun == 1)
        order_parts(team);
    else
        team->pending = (struct lk_part){.step = step->step, .samples = step->samples};
    pthread_mutex_unlock(&team->mutex);
    return LK_OK;
}

/* --- collecting ------------------------------------------------------------------------- */

/* Loses the devices that have failed and, where it is `late`, those that have brought fewer
 * than `arrived` buckets. Returns how many. */
static int lose_failed(struct lk_team *team, int arrived, bool late)
{
    int lost = 0;
    for (int i = 0; i < team->count; i++) {
        struct lk_worker *worker = team->workers[i];
        if (worker->is_lost)
            continue;
        if (worker->has_failed)
            lk_team_lose(team, worker, worker->text);
        else if (late && worker->arrived < arrived)
            lk_team_lose(team, worker, "it does not answer");
        lost += worker->is_lost;
    }
    return lost;
}

static enum lk_status wait_for_devices(struct lk_team *team, double until, bool *is_late)
{
    if (team->ranks)
        return lk_team_ranks_wait(team, until, is_late);
    *is_late = !lk_team_wait(team, until);
    return LK_OK;
}

/* Waits until every device that is left has brought its first `arrived` buckets, metrics
 * included. *is_whole: none was lost. fails: as a device for a reason that is not its own, such
 * as an unreadable sample. The mutex is held. */
static enum lk_status await_arrivals(struct lk_team *team, int arrived, bool *is_whole)
{
    const double until = team->ordered_at + lk_team_limit(team);
    for (bool is_late = false;;) {
        bool is_complete = true;
        *is_whole = lose_failed(team, arrived, is_late) == 0;
        if (!*is_whole)
            return LK_OK;
        for (int i = 0; i < team->count; i++) {
            const struct lk_worker *worker = team->workers[i];
            if (worker->is_lost)
                continue;
            if (worker->has_error)
                return lk_fail(worker->status, "%s", worker->text);
            is_complete &= worker->arrived >= arrived;
        }
        if (is_complete)
            return LK_OK;
        LK_TRY(wait_for_devices(team, until, &is_late));
    }
}

/* The terms of all devices, ascending, as their runs are. Returns how many. */
static int gather(struct lk_team *team, int arrival, struct lk_term *terms,
                  struct lk_worker **owners, uint32_t *checksums)
{
    int count = 0;
    for (int i = 0; i < team->count; i++) {
        struct lk_worker *worker = team->workers[i];
        const struct lk_arrival *a = &worker->arrivals[arrival];
        for (int j = 0; !worker->is_lost && j < a->count; j++, count++) {
            terms[count] = a->terms[j];
            owners[count] = worker;
            checksums[count] = a->checksums[j];
        }
    }
    return count;
}

/* Where the sums of a bucket go: to every device that is left, or on to the other ranks.
 * Returns how many sums. */
static int place_sums(struct lk_team *team, int bucket, void **copies,
                      struct lk_reduced sums[LK_MOST_SUBTREES])
{
    if (team->ranks)
        return lk_team_ranks_sums(team->ranks, bucket + 1, sums);
    sums[0] = (struct lk_reduced){
        .subtree = {0, team->config.shards}, .copies = copies, .copy_count = bucket < 0};
    for (int i = 0; i < team->count && bucket >= 0; i++)
        if (!team->workers[i]->is_lost)
            copies[sums[0].copy_count++] = team->workers[i]->arrivals[bucket + 1].result;
    return 1;
}

/* Adds up a bucket (-1: the metrics, into metrics) for every device that is left.
 * False: what has come is not what was sent, or no numbers. */
static enum lk_status reduce(struct lk_team *team, int bucket, void *metrics, bool *is_right)
{
    struct lk_term terms[LK_MOST_SHARDS];
    struct lk_worker *owners[LK_MOST_SHARDS];
    uint32_t sent[LK_MOST_SHARDS], found[LK_MOST_SHARDS];
    void *copies[LK_MOST_TEAM] = {metrics};
    struct lk_reduced sums[LK_MOST_SUBTREES];
    const struct lk_replica *replica = lk_stepper_replica(lk_team_lead(team)->stepper);
    const struct lk_reduction job = {
        .dtype = team->config.real,
        .count = bucket < 0 ? LK_PAD : lk_replica_bucket(replica, bucket).count,
        .terms = terms,
        .term_count = gather(team, bucket + 1, terms, owners, sent),
        .sums = sums,
        .sum_count = place_sums(team, bucket, copies, sums),
        .checksums = found};
    const double start = lk_seconds();
    LK_TRY(lk_reducer_sum(team->reducer, &job));
    lk_profile_span(team->profile, "host", "reduce", team->steps[0].step, start, lk_seconds());
    team->reduce_seconds += lk_seconds() - start;
    if (bucket >= 0 && !team->ranks)
        team->new_sums[bucket] = sums[0].checksum;
    *is_right = true;
    for (int i = 0; i < job.sum_count; i++)
        *is_right &= sums[i].is_finite || team->has_diverged;
    team->has_no_numbers |= !*is_right;
    for (int i = 0; i < job.term_count; i++)
        if (found[i] != sent[i]) {
            lk_log(LK_LOG_WARNING,
                   "device %d: gradients were changed on their way in step %lld",
                   owners[i]->position, (long long)team->steps[0].step);
            owners[i]->strikes++;
            *is_right = false;
        }
    return LK_OK;
}

/* Deals with a bucket that all devices have brought. */
static enum lk_status take_bucket(struct lk_team *team, int bucket, void *metrics,
                                  bool *is_right)
{
    *is_right = true;
    if (team->ranks && lk_team_ranks_has_sent(team->ranks, bucket + 1))
        return LK_OK;
    LK_TRY(reduce(team, bucket, metrics, is_right));
    if (bucket < 0)
        LK_TRY(lk_team_check_replicas(team, is_right));
    return team->ranks && *is_right ? lk_team_ranks_send(team, bucket + 1) : LK_OK;
}

/* Adds up all that the devices bring for the oldest step. False in *is_whole: it has to be
 * computed again. The mutex is held, but not while adding. */
static enum lk_status collect(struct lk_team *team, void *metrics, bool *is_whole)
{
    enum lk_status status = LK_OK;
    *is_whole = true;
    team->reduce_seconds = 0;
    for (int bucket = -1; bucket < team->buckets && *is_whole; bucket++) {
        LK_TRY(await_arrivals(team, bucket + 2, is_whole));
        if (!*is_whole)
            return LK_OK;
        pthread_mutex_unlock(&team->mutex);
        status = take_bucket(team, bucket, metrics, is_whole);
        pthread_mutex_lock(&team->mutex);
        LK_TRY(status);
    }
    if (!*is_whole || !team->ranks)
        return LK_OK;
    pthread_mutex_unlock(&team->mutex);
    status = lk_team_ranks_receive(team, metrics, is_whole);
    pthread_mutex_lock(&team->mutex);
    return status;
}

/* --- ending ----------------------------------------------------------------------------- */

enum lk_status lk_team_none_left(const struct lk_team *team)
{
    for (int i = 0; i < team->count; i++)
        if (team->workers[i]->text[0])
            return lk_fail(LK_E_DEVICE, "no device is left: device %d: %s", i,
                           team->workers[i]->text);
    return lk_fail(LK_E_DEVICE, "no device is left: they do not answer");
}

/* Samples a second while the device worked. */
static double rate(const struct lk_device_times *t)
{
    const double ms = t->transfer_ms + t->compute_ms;
    return ms > 0 ? 1e3 * (double)t->samples / ms : 0;
}

static void fill_result(const struct lk_team *team, const void *metrics, int tries,
                        struct lk_team_result *result)
{
    const bool is_f64 = team->config.real == LK_F64;
    const struct lk_team_step *step = &team->steps[0];
    const int64_t each = lk_divide_up(team->config.batch, team->config.shards);
    const double now = lk_seconds(), samples = (double)step->samples;
    const double loss = is_f64 ? ((const double *)metrics)[0] : ((const float *)metrics)[0];
    const double correct = is_f64 ? ((const double *)metrics)[1] : ((const float *)metrics)[1];
    *result = (struct lk_team_result){
        .loss = loss / samples, .accuracy = correct / samples, .tries = tries};
    for (int i = 0; i < team->count; i++) {
        const struct lk_worker *w = team->workers[i];
        struct lk_device_times *t = &result->devices[i];
        if (w->is_lost)
            continue;
        const int64_t end = lk_least((w->run.first + w->run.count) * each, step->samples);
        t->is_left = true;
        t->samples = end - lk_least(w->run.first * each, step->samples);
        t->share = (double)w->run.count / team->config.shards;
        t->input_ms = w->times.input_ms;
        t->transfer_ms = w->times.transfer_ms;
        t->compute_ms = w->times.compute_ms;
        t->reduce_ms = 1e3 * team->reduce_seconds;
        t->wait_ms = 1e3 * (now - w->came_at);
        t->samples_per_s = rate(t);
    }
}

/* From here on the step counts. The mutex is held. */
static void commit(struct lk_team *team)
{
    const struct lk_team_step *step = &team->steps[0];
    const int64_t every = team->config.check_every;
    const double seconds = lk_team_seconds(team) - team->ordered_at;
    const bool weighs = every > 0 && step->step % every == 0;
    memcpy(team->sums, team->new_sums, sizeof team->sums);
    team->has_sums = true;
    for (int i = 0; i < team->count; i++) {
        struct lk_worker *worker = team->workers[i];
        const struct lk_order order = {.kind = LK_ORDER_UPDATE,
                                       .part = {.step = step->step, .samples = step->samples},
                                       .lr = step->lr,
                                       .weights = weighs};
        if (!worker->is_lost)
            lk_worker_order(worker, &order);
        worker->strikes = 0;
    }
    if (team->has_worked) /* rises fast, falls slowly */
        team->step_seconds =
            seconds > team->step_seconds ? seconds : 0.9 * team->step_seconds + 0.1 * seconds;
}

/* The step after this one begins before anybody reports this one. */
static void go_on(struct lk_team *team)
{
    team->steps[0] = team->steps[1];
    team->begun--;
    team->pending = (struct lk_part){0};
    team->is_at_work = false;
    if (team->trial.is_one_faster) {
        team->trial.is_one_faster = false;
        pthread_mutex_unlock(&team->mutex);
        lk_team_go_alone(team, team->workers[team->trial.fastest]);
        pthread_mutex_lock(&team->mutex);
    }
    if (team->begun > 0 && team->is_alone)
        order_alone(team, LK_ORDER_START, &team->steps[0]);
    else if (team->begun > 0)
        order_parts(team);
}

/* Devices whose gradients were changed twice in a step are no longer trusted. */
static void lose_struck(struct lk_team *team)
{
    for (int i = 0; i < team->count; i++)
        if (!team->workers[i]->is_lost && team->workers[i]->strikes > 1)
            lk_team_lose(team, team->workers[i], "what it sends does not arrive unchanged");
}

static enum lk_status end_shared(struct lk_team *team, struct lk_team_result *result)
{
    double metrics[LK_PAD];
    const int64_t lost_before = team->counts.lost;
    bool had_no_numbers = false; /* by a fault, or by nature: then they are none again */
    team->has_no_numbers = false;
    for (int tries = 1;; tries++) {
        bool is_whole = false;
        LK_TRY(collect(team, metrics, &is_whole));
        if (is_whole) {
            fill_result(team, metrics, tries, result);
            commit(team);
            const double now = lk_seconds();
            if (team->has_worked) /* the first step compiles kernels */
                lk_team_measure(team, now - team->committed_at);
            team->has_worked = true;
            team->committed_at = now;
            go_on(team);
            return LK_OK;
        }
        lose_struck(team);
        if (lk_team_left(team) == 0)
            return lk_team_none_left(team);
        const int64_t lost = team->counts.lost - lost_before;
        if (tries - lost >= MOST_TRIES) /* each of which has cost no device */
            return lk_fail(LK_E_DEVICE, "step %lld has failed %d times",
                           (long long)team->steps[0].step, tries);
        team->has_diverged |= had_no_numbers && team->has_no_numbers; /* so be it */
        had_no_numbers = team->has_no_numbers;
        team->has_no_numbers = false;
        team->counts.repeated_steps++;
        order_parts(team);
    }
}

static enum lk_status end_alone(struct lk_team *team, struct lk_team_result *result)
{
    struct lk_worker *worker = only_worker(team);
    struct lk_device_times *times = &result->devices[worker->position];
    const struct lk_team_step *step = &team->steps[0];
    const double start = lk_team_seconds(team);
    order_alone(team, LK_ORDER_FINISH, step);
    while (worker->ticket != step->step && !worker->has_failed && !worker->has_error &&
           !worker->is_lost)
        if (!lk_team_wait(team, start + lk_team_limit(team)))
            lk_team_lose(team, worker, "it does not answer");
    if (worker->has_failed)
        lk_team_lose(team, worker, worker->text);
    if (worker->is_lost)
        return lk_team_none_left(team);
    if (worker->has_error)
        return lk_fail(worker->status, "%s", worker->text);
    *result = (struct lk_team_result){
        .loss = worker->result.loss, .accuracy = worker->result.accuracy, .tries = 1};
    *times = (struct lk_device_times){.is_left = true,
                                      .samples = step->samples,
                                      .share = 1,
                                      .input_ms = worker->times.input_ms,
                                      .transfer_ms = worker->result.transfer_ms,
                                      .compute_ms = worker->result.compute_ms,
                                      .reduce_ms = worker->result.reduce_ms,
                                      .wait_ms = 1e3 * (lk_team_seconds(team) - start)};
    times->samples_per_s = rate(times);
    if (team->has_worked)
        team->step_seconds = lk_team_seconds(team) - start;
    team->has_worked = true;
    team->steps[0] = team->steps[1];
    team->begun--;
    return LK_OK;
}

enum lk_status lk_team_end(struct lk_team *team, bool wants_stop, struct lk_team_result *result)
{
    if (!team->async && team->begun == 0)
        return lk_fail(LK_E_ARGUMENT, "no step was begun");
    team->wants_stop = wants_stop;
    team->must_stop = wants_stop;
    pthread_mutex_lock(&team->mutex);
    const enum lk_status status = team->async      ? lk_async_end(team, result)
                                  : team->is_alone ? end_alone(team, result)
                                                   : end_shared(team, result);
    pthread_mutex_unlock(&team->mutex);
    if (status == LK_OK)
        result->must_stop = team->must_stop;
    return status;
}
