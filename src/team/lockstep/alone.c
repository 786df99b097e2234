/* One device that goes on alone since it is faster than all together, and the others, which are
 * called back where it fails: from the state that was kept last, all steps since are done
 * again, so that they are where it was. From time to time all are tried again. */
#include "team/lockstep/lockstep.h"

#include "base/fail.h"
#include "base/log.h"
#include <math.h>

/* Steps until all are tried again; twice as many each time. */
enum { FIRST_WAIT = 1000 };

static bool is_idle(const struct lk_worker *worker)
{
    return worker->is_lost && worker->is_idle;
}

/* --- steps ------------------------------------------------------------------------------ */

static struct lk_worker *only_worker(struct lk_team *team)
{
    int i = 0;
    while (i < team->count - 1 && team->workers[i]->is_lost)
        i++;
    return team->workers[i];
}

void lk_team_order_alone(struct lk_team *team, enum lk_order_kind kind,
                         const struct lk_team_step *step)
{
    const struct lk_order order = {.kind = kind,
                                   .part = {.step = step->step, .samples = step->samples},
                                   .ticket = step->step,
                                   .lr = step->lr};
    lk_worker_order(only_worker(team), &order);
}

static enum lk_status end_own(struct lk_team *team, struct lk_team_result *result)
{
    struct lk_worker *worker = only_worker(team);
    struct lk_device_times *times = &result->devices[worker->position];
    const struct lk_team_step *step = &team->steps[0];
    const double start = lk_team_seconds(team);
    lk_team_order_alone(team, LK_ORDER_FINISH, step);
    while (worker->ticket != step->step && !worker->has_failed && !worker->has_error &&
           !worker->is_lost)
        if (!lk_team_wait(team, start + lk_team_limit(team, false)))
            lk_team_lose(team, worker, "it does not answer");
    if (worker->has_failed)
        lk_team_lose(team, worker, worker->text);
    if (worker->is_lost)
        return lk_team_none_left(team);
    if (worker->has_error)
        return lk_fail(worker->status, "%s", worker->text);
    *result = (struct lk_team_result){.loss = worker->result.loss,
                                      .accuracy = worker->result.accuracy,
                                      .tries = 1,
                                      .device_count = team->count};
    *times = (struct lk_device_times){.is_left = true,
                                      .samples = step->samples,
                                      .share = 1,
                                      .input_ms = worker->times.input_ms,
                                      .transfer_ms = worker->result.transfer_ms,
                                      .compute_ms = worker->result.compute_ms,
                                      .reduce_ms = worker->result.reduce_ms,
                                      .wait_ms = 1e3 * (lk_team_seconds(team) - start)};
    times->samples_per_s = lk_team_rate(times);
    if (team->has_worked)
        team->step_seconds = lk_team_seconds(team) - start;
    team->has_worked = true;
    team->committed = step->step;
    team->steps[0] = team->steps[1];
    team->begun--;
    return LK_OK;
}

/* --- going alone ------------------------------------------------------------------------ */

struct change {
    struct lk_team_state *state; /* that the new stepper gets */
    int most;                    /* shards at a time; 0: alone, it needs no host */
};

/* Where there is no room for a second stepper the device keeps its own, and is not to blame. */
static enum lk_status change_stepper(void *context, struct lk_worker *worker)
{
    const struct change *change = context;
    struct lk_stepper *before = worker->stepper;
    worker->stepper = NULL;
    enum lk_status status = lk_worker_create_stepper(worker, change->most);
    if (status == LK_OK)
        status = lk_stepper_build(worker->stepper);
    if (status == LK_OK)
        status = lk_team_write_state(change->state, worker);
    if (status != LK_OK) {
        lk_stepper_destroy(worker->stepper);
        worker->stepper = before;
        return status == LK_E_DEVICE_MEMORY ? LK_E_MEMORY : status;
    }
    if (worker->team->config.leaves)
        worker->team->config.leaves(worker->team->config.context, worker);
    lk_stepper_destroy(before);
    return LK_OK;
}

void lk_team_go_alone(struct lk_team *team, struct lk_worker *worker)
{
    struct lk_team_state *kept = &team->kept;
    struct lk_trial *trial = &team->trial;
    enum lk_status status = lk_team_call_one(team, worker, lk_team_read_state, kept);
    kept->step = team->committed;
    if (status == LK_OK)
        status = lk_team_call_one(team, worker, change_stepper, &(struct change){kept, 0});
    if (status != LK_OK) {
        lk_team_clear_state(kept);
        lk_log(LK_LOG_WARNING, "all devices go on: %s", lk_error_text());
        lk_error_clear();
        return;
    }
    trial->wait = trial->wait ? 2 * trial->wait : FIRST_WAIT;
    trial->again_at = team->committed + trial->wait;
    pthread_mutex_lock(&team->mutex);
    team->is_alone = true;
    worker->ticket = 0; /* which counts steps from now on */
    for (int i = 0; i < team->count; i++)
        if (team->workers[i] != worker && !team->workers[i]->is_lost)
            team->workers[i]->is_lost = team->workers[i]->is_idle = true;
    pthread_mutex_unlock(&team->mutex);
}

enum lk_status lk_team_keep_state(struct lk_team *team)
{
    struct lk_team_state state = {0};
    struct lk_team_result last;
    enum lk_status status = LK_OK;
    if (lk_team_idle(team) == 0 || team->kept.step == team->committed)
        return LK_OK;
    for (int i = 0; i < team->count; i++)
        if (!team->workers[i]->is_lost)
            status = lk_team_call_one(team, team->workers[i], lk_team_read_state, &state);
    if (status != LK_OK) {
        lk_team_clear_state(&state);
        lk_error_clear();
        return lk_is_device_trouble(status) ? lk_team_call_back(team, &last) : status;
    }
    lk_team_clear_state(&team->kept);
    team->kept = state;
    team->kept.step = team->committed;
    return LK_OK;
}

/* Those that cannot come are lost. */
static enum lk_status wake_idle(struct lk_team *team)
{
    team->is_alone = false;
    team->has_sums = false;
    for (int i = 0; i < team->count; i++) {
        struct lk_worker *worker = team->workers[i];
        if (!is_idle(worker))
            continue;
        worker->is_lost = worker->is_idle = false;
        (void)!lk_team_call_one(team, worker, lk_team_write_state, &team->kept);
        lk_error_clear();
    }
    lk_team_clear_state(&team->kept);
    return lk_team_left(team) > 0 ? LK_OK : lk_team_none_left(team);
}

enum lk_status lk_team_call_back(struct lk_team *team, struct lk_team_result *last)
{
    const int64_t kept = team->kept.step, done = team->committed;
    lk_log(LK_LOG_WARNING, "%d idle device%s called back: %lld steps are computed again",
           lk_team_idle(team), lk_team_idle(team) == 1 ? " is" : "s are",
           (long long)(done - kept));
    LK_TRY(wake_idle(team));
    team->counts.repeated_steps += done - kept;
    return lk_team_redo(team, kept + 1, done, last);
}

enum lk_status lk_team_try_again(struct lk_team *team)
{
    struct lk_team_result last;
    if (!team->is_alone || lk_team_idle(team) == 0 || team->committed < team->trial.again_at)
        return LK_OK;
    struct lk_worker *worker = only_worker(team);
    struct change change = {&team->kept, worker->most_shards};
    const enum lk_status status = lk_team_call_one(team, worker, change_stepper, &change);
    if (lk_is_device_trouble(status)) {
        lk_error_clear();
        return lk_team_call_back(team, &last);
    }
    team->trial = (struct lk_trial){.wait = team->trial.wait,
                                    .again_at = team->committed + team->trial.wait};
    if (status != LK_OK) {
        lk_error_clear();
        return LK_OK;
    }
    team->has_worked = false; /* kernels may have to be compiled */
    team->step_seconds = 0;
    return wake_idle(team);
}

/* --- its steps' ends --------------------------------------------------------------------- */

static enum lk_status call_back(struct lk_team *team, struct lk_team_result *result)
{
    pthread_mutex_unlock(&team->mutex);
    const enum lk_status status = lk_team_call_back(team, result);
    pthread_mutex_lock(&team->mutex);
    return status;
}

/* It is out of order where the others find numbers; else nobody can do anything. */
static enum lk_status doubt_alone(struct lk_team *team, struct lk_team_result *result)
{
    int i = 0;
    while (team->workers[i]->is_lost)
        i++;
    team->workers[i]->is_lost = true;
    LK_TRY(call_back(team, result));
    if (!isfinite(result->loss))
        return LK_OK;
    team->workers[i]->is_lost = false;
    lk_team_lose(team, team->workers[i], "it computes no numbers where others do");
    return LK_OK;
}

/* Where it fails, those that are idle do what it has left undone. */
enum lk_status lk_team_end_alone(struct lk_team *team, struct lk_team_result *result)
{
    const enum lk_status status = end_own(team, result);
    if (lk_team_idle(team) == 0)
        return status;
    if (status == LK_OK && !isfinite(result->loss))
        return doubt_alone(team, result);
    if (status == LK_OK || lk_team_left(team) > 0)
        return status;
    lk_error_clear();
    LK_TRY(call_back(team, result));
    LK_TRY(lk_team_end_shared(team, result));
    result->tries++;
    return LK_OK;
}
