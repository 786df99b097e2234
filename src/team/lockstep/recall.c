/* One device goes on alone where it is faster than all together, and the others rest. Where
 * it fails they are called back: all steps since the state that was kept last are repeated
 * from that state. From time to time a trial with all devices is made again. */
#include "team/lockstep/lockstep.h"

#include "base/fail.h"
#include "base/log.h"

/* Steps until all devices are tried again; the number doubles each time. */
enum { FIRST_WAIT = 1000 };

struct lk_worker *lk_team_only(struct lk_team *team)
{
    int i = 0;
    while (i < team->count - 1 && !lk_worker_is_at_work(team->workers[i]))
        i++;
    return team->workers[i];
}

static void go_on_together(struct lk_team *team)
{
    lk_training_state_clear(&team->recall.kept);
    lk_log(LK_LOG_WARNING, "all devices go on: %s", lk_error_text());
    lk_error_clear();
    pthread_mutex_lock(&team->mutex);
    lk_team_enter(team, LK_TEAM_SHARED);
    pthread_mutex_unlock(&team->mutex);
}

void lk_team_go_alone(struct lk_team *team, struct lk_worker *worker)
{
    struct lk_training_state *kept = &team->recall.kept;
    struct lk_trial *trial = &team->trial;
    enum lk_status status = lk_team_call_one(team, worker, team->acts->read, kept);
    kept->step = team->queue.committed;
    if (status == LK_OK)
        status = lk_team_call_one(team, worker, team->acts->change,
                                  &(struct lk_stepper_change){kept, 0});
    if (status != LK_OK) {
        go_on_together(team);
        return;
    }
    trial->wait = trial->wait ? 2 * trial->wait : FIRST_WAIT;
    trial->again_at = team->queue.committed + trial->wait;
    pthread_mutex_lock(&team->mutex);
    lk_team_enter(team, LK_TEAM_ALONE);
    for (int i = 0; i < team->count; i++) {
        struct lk_worker *other = team->workers[i];
        if (other != worker && lk_worker_is_at_work(other))
            lk_worker_change(other, LK_WORKER_REST, other->report.text);
    }
    pthread_mutex_unlock(&team->mutex);
}

enum lk_status lk_team_keep_state(struct lk_team *team)
{
    struct lk_training_state *kept = &team->recall.kept, taken = {0};
    if (lk_team_resting(team) == 0 || kept->step == team->queue.committed)
        return LK_OK;
    if (lk_team_left(team) == 0) /* lost in a call */
        return lk_team_call_back(team, NULL);
    const enum lk_status status =
        lk_team_call_one(team, lk_team_only(team), team->acts->read, &taken);
    if (status != LK_OK) {
        lk_training_state_clear(&taken);
        lk_error_clear();
        return lk_is_device_failure(status) ? lk_team_call_back(team, NULL) : status;
    }
    lk_training_state_clear(kept);
    *kept = taken;
    kept->step = team->queue.committed;
    return LK_OK;
}

/* Brings the resting devices back to work from the state that was kept; one that cannot come
 * is lost. The device in doubt rests instead: the others go on without it. */
static enum lk_status wake(struct lk_team *team, enum lk_team_phase phase,
                           struct lk_worker *doubted)
{
    bool comes[LK_MOST_TEAM];
    pthread_mutex_lock(&team->mutex);
    lk_team_enter(team, phase);
    team->sums.has_last = false;
    for (int i = 0; i < team->count; i++) {
        comes[i] = team->workers[i]->state == LK_WORKER_RESTING;
        if (comes[i])
            lk_worker_change(team->workers[i], LK_WORKER_CALL_BACK, NULL);
    }
    if (doubted)
        lk_worker_change(doubted, LK_WORKER_REST, doubted->report.text);
    pthread_mutex_unlock(&team->mutex);
    for (int i = 0; i < team->count; i++)
        if (comes[i]) {
            (void)!lk_team_call_one(team, team->workers[i], team->acts->write,
                                    &team->recall.kept);
            lk_error_clear();
        }
    lk_training_state_clear(&team->recall.kept);
    return lk_team_left(team) > 0 ? LK_OK : lk_team_none_left(team);
}

enum lk_status lk_team_call_back(struct lk_team *team, struct lk_worker *doubted)
{
    const int64_t kept = team->recall.kept.step, done = team->queue.committed;
    const int resting = lk_team_resting(team);
    lk_log(LK_LOG_WARNING, "%d idle device%s called back: %lld steps are computed again",
           resting, resting == 1 ? " is" : "s are", (long long)(done - kept + !!doubted));
    LK_TRY(wake(team, LK_TEAM_CALLING_BACK, doubted));
    team->counts.repeated_steps += done - kept;
    return lk_lockstep_redo(team, kept + 1, done);
}

enum lk_status lk_team_try_again(struct lk_team *team)
{
    if (team->phase != LK_TEAM_ALONE || lk_team_resting(team) == 0 ||
        team->queue.committed < team->trial.again_at)
        return LK_OK;
    struct lk_worker *worker = lk_team_only(team);
    struct lk_stepper_change change = {&team->recall.kept, worker->most_shards};
    const enum lk_status status = lk_team_call_one(team, worker, team->acts->change, &change);
    if (lk_is_device_failure(status)) {
        lk_error_clear();
        return lk_team_call_back(team, NULL);
    }
    team->trial = (struct lk_trial){.wait = team->trial.wait,
                                    .again_at = team->queue.committed + team->trial.wait};
    if (status != LK_OK) {
        lk_error_clear();
        return LK_OK;
    }
    team->clock.has_worked = false; /* kernels may have to be compiled */
    team->clock.first_seconds = team->clock.step_seconds = team->clock.fastest_seconds = 0;
    return wake(team, LK_TEAM_TRIAL_ALL, NULL);
}
