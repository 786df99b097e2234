/* How long a team waits, and calls on the threads of its devices. */
#include "team/workers/parts.h"

#include "base/fail.h"
#include "base/log.h"
#include <math.h>
#include <time.h>

/* Limits of patience, in multiples of the hang limit: a call may build kernels, and a first
 * step compiles what the driver has put off. */
enum { LONG_LIMITS = 20, MEDIAN_STEPS = 10 };

/* Seconds between two looks at the devices; that many more were no watching. */
static const double look_seconds = 1, lapse_seconds = 2;

/* --- who is left ------------------------------------------------------------------------ */

int lk_team_devices(const struct lk_team *team)
{
    return team->count;
}

int lk_team_left(const struct lk_team *team)
{
    int left = 0;
    for (int i = 0; i < team->count; i++)
        left += !team->workers[i]->is_lost;
    return left;
}

const struct lk_worker *lk_team_worker(const struct lk_team *team, int position)
{
    return team->workers[position];
}

const struct lk_worker *lk_team_lead(const struct lk_team *team)
{
    for (int i = 0; i < team->count; i++)
        if (!team->workers[i]->is_lost)
            return team->workers[i];
    return team->workers[0];
}

static bool is_idle(const struct lk_worker *worker)
{
    return worker->is_lost && worker->is_idle;
}

int lk_team_idle(const struct lk_team *team)
{
    int idle = 0;
    for (int i = 0; i < team->count; i++)
        idle += is_idle(team->workers[i]);
    return idle;
}

enum lk_status lk_team_none_left(const struct lk_team *team)
{
    for (int i = 0; i < team->count; i++)
        if (team->workers[i]->text[0])
            return lk_fail(LK_E_DEVICE, "no device is left: device %d: %s", i,
                           team->workers[i]->text);
    return lk_fail(LK_E_DEVICE, "no device is left: they do not answer");
}

/* --- waiting ---------------------------------------------------------------------------- */

double lk_team_seconds(struct lk_team *team)
{
    const double now = lk_seconds(), lapse = now - team->looked_at;
    if (team->looked_at > 0 && lapse > lapse_seconds)
        team->lapsed += lapse;
    team->looked_at = now;
    return now - team->lapsed;
}

bool lk_team_wait(struct lk_team *team, double until)
{
    const double left = until - lk_team_seconds(team);
    const double to = lk_seconds() + (left < look_seconds ? left : look_seconds);
    const struct timespec at = {(time_t)floor(to), (long)(1e9 * (to - floor(to)))};
    const bool has_changed = pthread_cond_timedwait(&team->changed, &team->mutex, &at) == 0;
    return lk_team_seconds(team) < until || has_changed;
}

void lk_team_note_step(struct lk_team *team, double seconds)
{
    team->step_seconds =
        seconds > team->step_seconds ? seconds : 0.9 * team->step_seconds + 0.1 * seconds;
}

double lk_team_limit(const struct lk_team *team, bool is_new)
{
    const int times = team->trial.phase == LK_TRIAL_ONE ? team->count : 1;
    const double usual = MEDIAN_STEPS * times * team->step_seconds;
    if (is_new || team->step_seconds == 0)
        return LONG_LIMITS * team->hang_seconds;
    return usual > team->hang_seconds ? usual : team->hang_seconds;
}

void lk_team_lose(struct lk_team *team, struct lk_worker *worker, const char *text)
{
    if (worker->is_lost)
        return;
    worker->is_lost = true;
    if (worker->device)
        lk_device_abandon(worker->device);
    if (!team->async)
        team->step_seconds = 0; /* the others have more to do, which may be new to them */
    team->counts.lost++;
    const int left = lk_team_left(team) + lk_team_idle(team);
    lk_log(LK_LOG_WARNING, "device %d (%s) is lost: %s; %d device%s left", worker->position,
           worker->device ? lk_device_info(worker->device)->name : "not opened", text, left,
           left == 1 ? " is" : "s are");
}

/* Orders a call; the mutex is held. A device that has failed does not carry it out. */
static void order_call(struct lk_worker *worker,
                       enum lk_status (*call)(void *, struct lk_worker *), void *context)
{
    const struct lk_order order = {.kind = LK_ORDER_CALL, .call = call, .context = context};
    worker->has_returned = false;
    if (worker->has_failed)
        return;
    worker->status = LK_OK;
    lk_worker_order(worker, &order);
}

/* Waits for the call's end; the mutex is held. A device that is in trouble is lost. */
static enum lk_status await_call(struct lk_team *team, struct lk_worker *worker)
{
    const double limit = LONG_LIMITS * team->hang_seconds;
    double until = lk_team_seconds(team) + limit;
    int64_t beats = worker->beats;
    while (!worker->has_returned && !worker->has_failed && lk_team_wait(team, until)) {
        if (worker->beats != beats)
            until = lk_team_seconds(team) + limit;
        beats = worker->beats;
    }
    if (!worker->has_returned && !worker->has_failed) {
        lk_team_lose(team, worker, "it does not answer");
        return LK_E_DEVICE;
    }
    if (lk_is_device_trouble(worker->status))
        lk_team_lose(team, worker, worker->text);
    return worker->status;
}

static enum lk_status none_left(const struct lk_worker *worker)
{
    return lk_fail(worker->status ? worker->status : LK_E_DEVICE, "no device is left: %s",
                   worker->text[0] ? worker->text : "it does not answer");
}

enum lk_status lk_team_call_first(struct lk_team *team,
                                  enum lk_status (*call)(void *, struct lk_worker *),
                                  void *context)
{
    enum lk_status status = LK_E_DEVICE;
    struct lk_worker *worker = NULL;
    pthread_mutex_lock(&team->mutex);
    for (int i = 0; i < team->count; i++) {
        if (team->workers[i]->is_lost)
            continue;
        worker = team->workers[i];
        order_call(worker, call, context);
        status = await_call(team, worker);
        if (!lk_is_device_trouble(status))
            break;
    }
    pthread_mutex_unlock(&team->mutex);
    if (status == LK_OK)
        return LK_OK;
    if (!worker || lk_is_device_trouble(status))
        return none_left(worker ? worker : team->workers[0]);
    return lk_fail(status, "%s", worker->text);
}

enum lk_status lk_team_call_one(struct lk_team *team, struct lk_worker *worker,
                                enum lk_status (*call)(void *, struct lk_worker *),
                                void *context)
{
    pthread_mutex_lock(&team->mutex);
    order_call(worker, call, context);
    const enum lk_status status = await_call(team, worker);
    pthread_mutex_unlock(&team->mutex);
    return status == LK_OK ? LK_OK
                           : lk_fail(status, "device %d: %s", worker->position, worker->text);
}

enum lk_status lk_team_call_other(struct lk_team *team, int position,
                                  enum lk_status (*call)(void *, struct lk_worker *),
                                  void *context)
{
    struct lk_worker *worker = team->workers[position];
    if (worker->is_lost)
        return LK_OK;
    const enum lk_status status = lk_team_call_one(team, worker, call, context);
    if (!lk_is_device_trouble(status))
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
        if (!team->workers[i]->is_lost)
            order_call(team->workers[i], call, context);
    for (int i = 0; i < team->count; i++) {
        struct lk_worker *worker = team->workers[i];
        if (worker->is_lost)
            continue;
        if (!at_once)
            order_call(worker, call, context);
        const enum lk_status found = await_call(team, worker);
        if (found != LK_OK && !failed) {
            failed = worker;
            status = found;
        }
    }
    const int left = lk_team_left(team);
    pthread_mutex_unlock(&team->mutex);
    if (status == LK_OK || (lk_is_device_trouble(status) && left > 0))
        return LK_OK;
    if (team->count > 1 && lk_is_device_trouble(status))
        return none_left(failed);
    return lk_fail(status, "%s", failed->text[0] ? failed->text : "device 0 does not answer");
}
