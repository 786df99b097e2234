/* Calls on the threads of a team's devices: the trainer's thread waits for them. */
#include "team/workers/internal.h"

#include "base/fail.h"

/* How long a call may take, in multiples of the hang limit: it may build kernels. */
enum { LONG_LIMITS = 20 };

/* Queues a call; the mutex is held. A device that has failed does not carry it out. */
static void send_call(struct lk_worker *worker,
                      enum lk_status (*call)(void *, struct lk_worker *), void *context)
{
    const struct lk_command command = {
        .kind = LK_COMMAND_CALL, .call = call, .context = context};
    lk_worker_change(worker, LK_WORKER_CALL, NULL);
    if (worker->state == LK_WORKER_FAILED)
        return;
    worker->report.status = LK_OK;
    lk_worker_send(worker, &command);
}

/* Waits for the call's end; the mutex is held. A device that is in trouble is lost. */
static enum lk_status await_call(struct lk_team *team, struct lk_worker *worker)
{
    const struct lk_worker_report *report = &worker->report;
    const double limit = LONG_LIMITS * team->clock.hang_seconds;
    double until = lk_team_seconds(team) + limit;
    int64_t heartbeats = report->heartbeats;
    while (worker->state == LK_WORKER_CALLED && lk_team_wait(team, until)) {
        if (report->heartbeats != heartbeats)
            until = lk_team_seconds(team) + limit;
        heartbeats = report->heartbeats;
    }
    if (worker->state == LK_WORKER_CALLED) {
        lk_worker_change(worker, LK_WORKER_LOSE, "it does not answer");
        return LK_E_DEVICE;
    }
    if (lk_is_device_failure(report->status))
        lk_worker_change(worker, LK_WORKER_LOSE, report->text);
    return report->status;
}

/* Of a lone group only why: its devices may be left. */
static enum lk_status none_left(const struct lk_team *team, const struct lk_worker *worker)
{
    const char *left = worker->places < 2 ? "no device is left: "
                       : team->count > 1  ? "no group is left: "
                                          : "";
    return lk_fail(worker->report.status ? worker->report.status : LK_E_DEVICE, "%s%s", left,
                   worker->report.text[0] ? worker->report.text : "it does not answer");
}

enum lk_status lk_team_call_first(struct lk_team *team,
                                  enum lk_status (*call)(void *, struct lk_worker *),
                                  void *context)
{
    enum lk_status status = LK_E_DEVICE;
    struct lk_worker *worker = NULL;
    pthread_mutex_lock(&team->mutex);
    for (int i = 0; i < team->count; i++) {
        if (!lk_worker_is_at_work(team->workers[i]))
            continue;
        worker = team->workers[i];
        send_call(worker, call, context);
        status = await_call(team, worker);
        if (!lk_is_device_failure(status))
            break;
    }
    pthread_mutex_unlock(&team->mutex);
    if (status == LK_OK)
        return LK_OK;
    if (!worker || lk_is_device_failure(status))
        return none_left(team, worker ? worker : team->workers[0]);
    return lk_fail(status, "%s", worker->report.text);
}

enum lk_status lk_team_call_one(struct lk_team *team, struct lk_worker *worker,
                                enum lk_status (*call)(void *, struct lk_worker *),
                                void *context)
{
    pthread_mutex_lock(&team->mutex);
    send_call(worker, call, context);
    const enum lk_status status = await_call(team, worker);
    pthread_mutex_unlock(&team->mutex);
    return status == LK_OK
               ? LK_OK
               : lk_fail(status, "device %d: %s", worker->position, worker->report.text);
}

enum lk_status lk_team_call_other(struct lk_team *team, int position,
                                  enum lk_status (*call)(void *, struct lk_worker *),
                                  void *context)
{
    struct lk_worker *worker = team->workers[position];
    if (!lk_worker_is_at_work(worker))
        return LK_OK;
    const enum lk_status status = lk_team_call_one(team, worker, call, context);
    if (!lk_is_device_failure(status))
        return status;
    lk_error_clear();
    return LK_OK;
}

enum lk_status lk_team_call_each(struct lk_team *team,
                                 enum lk_status (*call)(void *, struct lk_worker *),
                                 void *context, bool at_once)
{
    enum lk_status status = LK_OK;
    struct lk_worker *failed = NULL;
    pthread_mutex_lock(&team->mutex);
    for (int i = 0; i < team->count && at_once; i++)
        if (lk_worker_is_at_work(team->workers[i]))
            send_call(team->workers[i], call, context);
    for (int i = 0; i < team->count; i++) {
        struct lk_worker *worker = team->workers[i];
        if (!lk_worker_is_at_work(worker))
            continue;
        if (!at_once)
            send_call(worker, call, context);
        const enum lk_status found = await_call(team, worker);
        if (found != LK_OK && !failed) {
            failed = worker;
            status = found;
        }
    }
    const int left = lk_team_left(team);
    pthread_mutex_unlock(&team->mutex);
    if (status == LK_OK || (lk_is_device_failure(status) && left > 0))
        return LK_OK;
    if (team->count > 1 && lk_is_device_failure(status))
        return none_left(team, failed);
    return lk_fail(status, "%s",
                   failed->report.text[0] ? failed->report.text : "device 0 does not answer");
}
