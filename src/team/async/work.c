/* What a device's thread does in asynchronous training: it applies the log's updates and takes
 * groups until there is nothing left to do. */
#include "team/async/internal.h"

#include "base/fail.h"
#include <string.h>

/* --- applying updates --------------------------------------------------------------------- */

/* Whether the replica received its last update as the log has it; waits until that is known. */
static enum lk_status check_last(struct lk_worker *worker, bool *is_right)
{
    const struct lk_async_member *member = lk_async_member(worker);
    *is_right = true;
    worker->delivery.checks = NULL;
    if (!worker->has_updated)
        return LK_OK;
    LK_TRY(lk_exchange_checks(lk_stepper_exchange(worker->stepper), &worker->delivery.checks));
    for (int b = 0; b < worker->team->buckets; b++)
        *is_right &= worker->delivery.checks[b] == member->sums[b];
    return LK_OK;
}

static enum lk_status apply(struct lk_worker *worker, int64_t number)
{
    const struct lk_async_update *update = lk_async_update(worker->team->async, number);
    struct lk_exchange *exchange = lk_stepper_exchange(worker->stepper);
    const size_t real = lk_dtype_bytes(worker->team->config.real);
    for (int b = 0; b < worker->team->buckets; b++) {
        const size_t first = (size_t)lk_exchange_reals_before(exchange, b) * real;
        void *memory;
        LK_TRY(lk_exchange_result(exchange, b, &memory));
        memcpy(memory, (const char *)update->gradient + first,
               (size_t)lk_exchange_reals(exchange, b) * real);
    }
    memcpy(lk_async_member(worker)->sums, update->sums, sizeof update->sums);
    worker->has_updated = true;
    return lk_stepper_update(worker->stepper, update->samples, update->lr, number, false);
}

/* Gives the replica its next update, unless it received the last one wrong. The mutex is
 * held, but not while the device works; likewise in the functions below. */
static enum lk_status catch_up(struct lk_worker *worker)
{
    struct lk_team *team = worker->team;
    struct lk_async_member *member = lk_async_member(worker);
    bool is_right = true;
    member->since = lk_team_seconds(team);
    pthread_mutex_unlock(&team->mutex);
    enum lk_status status = check_last(worker, &is_right);
    if (status == LK_OK && is_right)
        status = apply(worker, member->applied + 1);
    pthread_mutex_lock(&team->mutex);
    if (!lk_worker_is_at_work(worker) || status != LK_OK)
        return status;
    member->since = 0;
    member->has_applied = true;
    if (is_right) {
        member->applied++;
    } else {
        member->is_wrong = true;
        team->async->is_pausing = true;
    }
    pthread_cond_broadcast(&team->changed);
    return LK_OK;
}

/* --- working ------------------------------------------------------------------------------ */

/* Whether no further update will come before another step is begun. */
static bool is_drained(const struct lk_team *team)
{
    const struct lk_async *async = team->async;
    for (int i = 0; i < team->count; i++)
        if (async->members[i].has_group)
            return false;
    return async->queued == 0 || async->is_pausing;
}

/* Fetches the last update's checksums and that of the weights, by which the replicas are
 * compared. Only here: to read all weights after each update would cost more than the update
 * itself where a table is large and an update touches few of its rows. */
static enum lk_status fetch_checks(struct lk_worker *worker)
{
    struct lk_team *team = worker->team;
    struct lk_async_member *member = lk_async_member(worker);
    bool is_right = true;
    member->since = lk_team_seconds(team);
    pthread_mutex_unlock(&team->mutex);
    enum lk_status status = LK_OK;
    if (worker->has_updated)
        status = lk_exchange_weigh(lk_stepper_exchange(worker->stepper));
    if (status == LK_OK)
        status = check_last(worker, &is_right);
    pthread_mutex_lock(&team->mutex);
    if (!lk_worker_is_at_work(worker) || status != LK_OK)
        return status;
    member->since = 0;
    member->is_wrong |= !is_right;
    team->async->is_pausing |= !is_right;
    return LK_OK;
}

/* Whether nothing is left to do: all updates are applied and none will come. A replica that
 * received something wrong has nothing to do either, until another's state is copied to it. */
static bool may_leave(struct lk_worker *worker)
{
    const struct lk_async *async = worker->team->async;
    const struct lk_async_member *member = lk_async_member(worker);
    return member->is_wrong ||
           (member->applied == async->staleness.updates && is_drained(worker->team));
}

/* One round: applies the updates that are in the log by now, then takes a group. Updates
 * that come meanwhile have to wait, or a slow device would never begin a group. */
static enum lk_status go_round(struct lk_worker *worker)
{
    struct lk_team *team = worker->team;
    struct lk_async_member *member = lk_async_member(worker);
    const int64_t updates = team->async->staleness.updates;
    while (member->applied < updates && !member->is_wrong && lk_worker_is_at_work(worker))
        LK_TRY(catch_up(worker));
    if (!lk_worker_is_at_work(worker))
        return LK_OK;
    if (!member->is_wrong && lk_async_dequeue_group(worker))
        return lk_async_do_group(worker);
    if (may_leave(worker)) {
        LK_TRY(fetch_checks(worker));
        if (lk_worker_is_at_work(worker) && may_leave(worker))
            lk_worker_change(worker, LK_WORKER_DONE, NULL);
    } else if (member->applied == team->async->staleness.updates) {
        pthread_cond_wait(&team->changed, &team->mutex);
    }
    return LK_OK;
}

enum lk_status lk_async_work(struct lk_worker *worker, const struct lk_command *command)
{
    (void)command;
    enum lk_status status = LK_OK;
    pthread_mutex_lock(&worker->team->mutex);
    while (status == LK_OK && worker->state == LK_WORKER_WORKING &&
           !worker->team->async->is_stopped)
        status = go_round(worker);
    pthread_mutex_unlock(&worker->team->mutex);
    return status;
}
