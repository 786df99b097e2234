/* Waits for what the devices of a team bring in a step and adds it up as it arrives. */
#include "team/lockstep/ranks.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/log.h"
#include "tensor/elementwise.h"
#include <math.h>
#include <string.h>

/* If so many steps in a row overflow, a device must be at fault: the loss scale has become as
 * small as it gets by then. */
enum { MOST_OVERFLOWS = 40 };

/* Takes out the devices that have failed and, where it is `late`, those that have brought
 * fewer than `arrived` arrivals. Returns how many. */
static int lose_failed(struct lk_team *team, int arrived, bool late)
{
    int lost = 0;
    for (int i = 0; i < team->count; i++) {
        struct lk_worker *worker = team->workers[i];
        if (lk_worker_is_at_work(worker))
            lost += lk_team_take_out(worker, late && worker->delivery.arrived < arrived);
    }
    return lost;
}

/* Whether a device computes for the first time, and so may still be compiling kernels. */
static bool is_any_new(const struct lk_team *team)
{
    bool is_any = false;
    for (int i = 0; i < team->count; i++) {
        const struct lk_worker *worker = team->workers[i];
        is_any |=
            lk_worker_is_at_work(worker) && worker->share.count > 0 && !worker->has_computed;
    }
    return is_any;
}

static enum lk_status wait_for_devices(struct lk_team *team, double until, bool *is_late)
{
    if (team->job.ranks)
        return lk_team_ranks_wait(team, until, is_late);
    *is_late = !lk_team_wait(team, until);
    return LK_OK;
}

/* Waits until every device that is left has brought its first `arrived` arrivals. *is_whole:
 * none was lost. fails: as a device for a reason that is not its own, such as an unreadable
 * sample. The mutex is held. */
static enum lk_status await_arrivals(struct lk_team *team, int arrived, bool *is_whole)
{
    const double until = team->clock.sent_at + lk_team_limit(team, is_any_new(team));
    for (bool is_late = false;;) {
        bool is_complete = true;
        *is_whole = lose_failed(team, arrived, is_late) == 0;
        if (!*is_whole)
            return LK_OK;
        for (int i = 0; i < team->count; i++) {
            const struct lk_worker *worker = team->workers[i];
            if (!lk_worker_is_at_work(worker))
                continue;
            if (worker->state == LK_WORKER_STOPPED)
                return lk_fail(worker->report.status, "%s", worker->report.text);
            is_complete &= worker->delivery.arrived >= arrived;
        }
        if (is_complete)
            return LK_OK;
        LK_TRY(wait_for_devices(team, until, &is_late));
    }
}

/* The terms of all devices, by ascending shards since their runs ascend. Returns how many. */
static int gather(struct lk_team *team, int arrival, struct lk_term *terms,
                  struct lk_worker **owners, uint32_t *checksums)
{
    int count = 0;
    for (int i = 0; i < team->count; i++) {
        struct lk_worker *worker = team->workers[i];
        const struct lk_arrival *a = &worker->delivery.arrivals[arrival];
        for (int j = 0; lk_worker_is_at_work(worker) && j < a->count; j++, count++) {
            terms[count] = a->terms[j];
            owners[count] = worker;
            checksums[count] = a->checksums[j];
        }
    }
    return count;
}

/* Where the sums of an arrival go: those of a bucket to every device that is left, unless it
 * keeps them, the metrics to copies[0]; over ranks, on to the other ranks. Returns how many
 * sums. */
static int place_sums(struct lk_team *team, int arrival, void **copies,
                      struct lk_reduction_result sums[LK_MOST_SUBTREES])
{
    const bool is_metrics = arrival == LK_ARRIVAL_METRICS;
    if (team->job.ranks)
        return lk_team_ranks_sums(team->job.ranks, arrival, sums);
    sums[0] = (struct lk_reduction_result){
        .subtree = {0, team->config.shards}, .copies = copies, .copy_count = is_metrics};
    for (int i = 0; i < team->count && !is_metrics; i++)
        if (lk_worker_is_at_work(team->workers[i])) {
            const struct lk_arrival *a = &team->workers[i]->delivery.arrivals[arrival];
            const bool keeps = a->count > 0 && a->result == a->terms[0].values;
            copies[sums[0].copy_count] = a->result;
            sums[0].copy_count += !keeps;
        }
    return 1;
}

static bool are_numbers(const void *values, int64_t count, enum lk_dtype dtype)
{
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(dtype == LK_F64 ? ((const double *)values)[i]
                                      : (double)((const float *)values)[i]))
            return false;
    return true;
}

/* Marks the devices whose terms are infinite or NaN. */
static void doubt(const struct lk_reduction_job *job, struct lk_worker **owners)
{
    for (int i = 0; i < job->term_count; i++)
        owners[i]->evidence.not_finite |=
            !are_numbers(job->terms[i].values, job->count, job->dtype);
}

/* Adds up an arrival: a bucket for every device that is left, the metrics into `metrics`.
 * *is_right false: what has come is not what was sent, or no numbers. */
static enum lk_status reduce(struct lk_team *team, int arrival, void *metrics, bool *is_right)
{
    const bool is_bucket = arrival != LK_ARRIVAL_METRICS;
    struct lk_term terms[LK_MOST_SHARDS];
    struct lk_worker *owners[LK_MOST_SHARDS];
    uint32_t sent[LK_MOST_SHARDS], found[LK_MOST_SHARDS];
    void *copies[LK_MOST_TEAM] = {metrics};
    struct lk_reduction_result sums[LK_MOST_SUBTREES];
    const struct lk_reduction_job job = {.dtype = team->config.real,
                                         .count = team->values[arrival],
                                         .terms = terms,
                                         .term_count =
                                             gather(team, arrival, terms, owners, sent),
                                         .sums = sums,
                                         .sum_count = place_sums(team, arrival, copies, sums),
                                         .checksums = found};
    const double start = lk_seconds();
    *is_right = true;
    if (job.term_count == 0) /* a rank without shards */
        return LK_OK;
    LK_TRY(lk_reducer_sum(team->reducer, &job));
    lk_profile_span(team->profile, "host", "reduce", team->queue.steps[0].step, start,
                    lk_seconds());
    team->reduce_seconds += lk_seconds() - start;
    if (is_bucket && !team->job.ranks)
        team->sums.next[arrival - LK_ARRIVAL_BUCKETS] = sums[0].checksum;
    for (int i = 0; i < job.term_count; i++)
        if (found[i] != sent[i]) {
            lk_log(LK_LOG_WARNING,
                   "device %d: gradients were changed on their way in step %lld",
                   owners[i]->position, (long long)team->queue.steps[0].step);
            owners[i]->evidence.changed++;
            *is_right = false;
        }
    bool is_finite = true;
    for (int i = 0; i < job.sum_count; i++)
        is_finite &= sums[i].is_finite;
    const bool may_overflow = is_bucket && team->config.loss_scale.first > 0 &&
                              team->judgement.overflows < MOST_OVERFLOWS;
    if (!is_finite && may_overflow)
        team->judgement.has_overflowed = true;
    else if (*is_right && !is_finite && !team->judgement.has_diverged) {
        team->judgement.is_not_finite = true;
        *is_right = false;
        doubt(&job, owners);
    }
    return LK_OK;
}

/* Counts groups in which something crossed wrong: none of their sums is right. */
static bool has_crossed_right(struct lk_team *team)
{
    bool is_right = true;
    for (int i = 0; i < team->count; i++) {
        struct lk_worker *worker = team->workers[i];
        if (!lk_worker_is_at_work(worker) || !worker->delivery.has_crossed_wrong)
            continue;
        worker->evidence.changed++;
        is_right = false;
    }
    return is_right;
}

/* Deals with an arrival that all devices have brought. */
static enum lk_status take_arrival(struct lk_team *team, int arrival, void *metrics,
                                   bool *is_right)
{
    *is_right = true;
    if (team->job.ranks && lk_team_ranks_has_sent(team->job.ranks, arrival))
        return LK_OK;
    LK_TRY(reduce(team, arrival, metrics, is_right));
    if (arrival == LK_ARRIVAL_METRICS)
        LK_TRY(lk_team_check_replicas(team, is_right));
    return team->job.ranks && *is_right ? lk_team_ranks_send(team, arrival) : LK_OK;
}

/* Waits for the result of the device that is alone: it has added up and updated by itself.
 * The result tells whether its sums were finite, which matters only where devices rest that
 * could check them. */
static enum lk_status collect_own(struct lk_team *team, bool *is_whole)
{
    struct lk_worker *worker = lk_team_only(team);
    const double start = lk_seconds();
    *is_whole = lk_worker_is_at_work(worker); /* else a call has found it lost */
    if (!*is_whole)
        return LK_OK;
    team->clock.sent_at = lk_team_seconds(team); /* before, nobody waited for it */
    lk_team_send_end(team, worker, false);
    LK_TRY(await_arrivals(team, LK_ARRIVAL_BUCKETS + team->buckets, is_whole));
    if (!*is_whole)
        return LK_OK;
    worker->delivery.came_at = start;
    team->reduce_seconds = 1e-3 * worker->delivery.result.reduce_ms;
    if (lk_team_resting(team) > 0 && !team->judgement.has_diverged)
        team->judgement.is_not_finite = !isfinite(worker->delivery.result.loss);
    *is_whole = !team->judgement.is_not_finite;
    return LK_OK;
}

enum lk_status lk_team_collect(struct lk_team *team, void *metrics, bool *is_whole)
{
    enum lk_status status = LK_OK;
    if (team->phase == LK_TEAM_ALONE)
        return collect_own(team, is_whole);
    const int arrivals = LK_ARRIVAL_BUCKETS + team->buckets;
    const int checked = team->job.ranks ? 0 : arrivals - 1;
    *is_whole = true;
    team->reduce_seconds = 0;
    for (int a = 0; a < arrivals && *is_whole; a++) {
        LK_TRY(await_arrivals(team, a + 1, is_whole));
        if (*is_whole && a == checked)
            *is_whole = has_crossed_right(team);
        if (!*is_whole)
            return LK_OK;
        pthread_mutex_unlock(&team->mutex);
        status = take_arrival(team, a, metrics, is_whole);
        pthread_mutex_lock(&team->mutex);
        LK_TRY(status);
    }
    if (!*is_whole || !team->job.ranks)
        return LK_OK;
    pthread_mutex_unlock(&team->mutex);
    status = lk_team_ranks_receive(team, metrics, is_whole);
    pthread_mutex_lock(&team->mutex);
    return status;
}
