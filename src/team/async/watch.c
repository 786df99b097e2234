/* What the trainer's thread does in asynchronous training while it waits: it looks after the
 * devices. */
#include "team/async/internal.h"

#include "base/fail.h"
#include <math.h>
#include <string.h>

/* Seconds from one look at the devices to the next, if none has to be looked at sooner. */
static const double look_seconds = 1;

/* Wakes all devices that have nothing to do; the threads of others look at the queue by
 * themselves. */
void lk_async_wake(struct lk_team *team)
{
    const struct lk_command command = {.kind = LK_COMMAND_WORK, .run = lk_async_work};
    for (int i = 0; i < team->count; i++)
        if (team->workers[i]->state == LK_WORKER_READY) {
            lk_worker_change(team->workers[i], LK_WORKER_WORK, NULL);
            lk_worker_send(team->workers[i], &command);
        }
    pthread_cond_broadcast(&team->changed);
}

/* The time from which a device that is still at work counts as hanging; INFINITY where it
 * waits for others. */
static double due_at(const struct lk_team *team, int position)
{
    const struct lk_async_member *member = &team->async->members[position];
    const bool is_new = !member->has_computed || !member->has_applied;
    return member->since > 0 ? member->since + lk_team_limit(team, is_new) : INFINITY;
}

/* Takes out devices that have failed or hang, and puts the groups that they were computing
 * back into the queue. */
static void find_lost(struct lk_team *team)
{
    const double now = lk_team_seconds(team);
    for (int i = 0; i < team->count; i++) {
        struct lk_worker *worker = team->workers[i];
        struct lk_async_member *member = &team->async->members[i];
        if (lk_worker_is_at_work(worker))
            (void)lk_team_take_out(worker, now > due_at(team, i));
        if (worker->state == LK_WORKER_LOST && member->has_group) {
            team->counts.repeated_steps++;
            lk_async_return(team->async, i);
            pthread_cond_broadcast(&team->changed);
        }
    }
}

bool lk_async_is_idle(const struct lk_team *team)
{
    for (int i = 0; i < team->count; i++)
        if (team->workers[i]->state == LK_WORKER_WORKING)
            return false;
    return true;
}

enum lk_status lk_async_check_replicas(struct lk_team *team)
{
    struct lk_async *async = team->async;
    const int64_t updates = async->staleness.updates;
    bool is_right;
    if (async->is_unchecked && (team->config.check_every > 0 || async->is_pausing)) {
        team->sums.has_last = true;
        memcpy(team->sums.last, lk_async_update(async, updates)->sums, sizeof team->sums.last);
        team->queue.committed = async->oldest + async->begun - 1;
        pthread_mutex_unlock(&team->mutex);
        const enum lk_status status = lk_team_check_replicas(team, &is_right);
        pthread_mutex_lock(&team->mutex);
        LK_TRY(status);
    }
    async->is_unchecked = async->is_pausing = false;
    for (int i = 0; i < team->count; i++) {
        async->members[i].applied = updates;
        async->members[i].is_wrong = false;
    }
    return LK_OK;
}

/* The time of the next look: when a device would count as hanging, at the latest after
 * look_seconds. */
static double next_look(struct lk_team *team)
{
    double at = lk_team_seconds(team) + look_seconds;
    for (int i = 0; i < team->count; i++)
        if (lk_worker_is_at_work(team->workers[i]) && due_at(team, i) < at)
            at = due_at(team, i);
    return at;
}

/* fails: as a device for a reason that is not its own, such as an unreadable sample */
static enum lk_status find_errors(const struct lk_team *team)
{
    for (int i = 0; i < team->count; i++) {
        const struct lk_worker *worker = team->workers[i];
        if (worker->state == LK_WORKER_STOPPED)
            return lk_fail(worker->report.status, "%s", worker->report.text);
    }
    return LK_OK;
}

/* Waits until `is_so`, and keeps the devices at work on what is in the queue. */
static enum lk_status watch(struct lk_team *team, bool (*is_so)(const struct lk_team *))
{
    struct lk_async *async = team->async;
    for (;;) {
        find_lost(team);
        LK_TRY(find_errors(team));
        if (is_so(team))
            return LK_OK;
        if (lk_team_left(team) == 0)
            return lk_team_none_left(team);
        if (lk_async_is_idle(team) && async->is_pausing)
            LK_TRY(lk_async_check_replicas(team));
        if (async->queued > 0 && !async->is_pausing)
            lk_async_wake(team);
        (void)!lk_team_wait(team, next_look(team));
    }
}

/* As watch(), and stops all devices where it fails, since nothing that they do is wanted any
 * more. */
enum lk_status lk_async_await(struct lk_team *team, bool (*is_so)(const struct lk_team *))
{
    const enum lk_status status = watch(team, is_so);
    if (status != LK_OK)
        lk_async_stop(team);
    return status;
}
