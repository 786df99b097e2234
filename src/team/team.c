/* What is asked of a team and set in it between steps. */
#include "team/team.h"

#include "base/fail.h"
#include "team/async/async.h"
#include "team/lockstep/lockstep.h"

void lk_team_set_batches(struct lk_team *team, struct lk_batches *batches)
{
    team->batches = batches;
}

void lk_team_set_steps(struct lk_team *team,
                       void (*describe)(void *context, int64_t number,
                                        struct lk_team_step *step),
                       void *context)
{
    team->recall.describe = describe;
    team->recall.context = context;
}

static enum lk_status add_profile(void *context, struct lk_worker *worker)
{
    for (int i = 0; i < worker->places; i++)
        LK_TRY(
            lk_profile_add(context, worker->group[i], worker->position * worker->places + i));
    return LK_OK;
}

enum lk_status lk_team_set_profile(struct lk_team *team, struct lk_profile *profile)
{
    team->profile = profile;
    return profile ? lk_team_call_each(team, add_profile, profile, false) : LK_OK;
}

struct lk_team_counts lk_team_counts(const struct lk_team *team)
{
    return team->counts;
}

const struct lk_staleness *lk_team_staleness(const struct lk_team *team)
{
    return team->async ? lk_async_staleness(team->async) : NULL;
}

int lk_team_updates_each(const struct lk_team *team)
{
    return team->async ? lk_async_groups(team->async) : 1;
}

enum lk_status lk_team_set_updates(struct lk_team *team, int64_t updates)
{
    return team->async ? lk_async_set_updates(team, updates) : LK_OK;
}

enum lk_status lk_team_call(struct lk_team *team,
                            enum lk_status (*call)(void *, struct lk_worker *), void *context)
{
    const enum lk_status status = lk_team_call_first(team, call, context);
    if (!lk_is_device_failure(status) || lk_team_resting(team) == 0 ||
        team->phase != LK_TEAM_ALONE)
        return status;
    lk_error_clear();
    LK_TRY(lk_team_call_back(team, NULL));
    return lk_team_call_first(team, call, context);
}

/* The checksum of the weights is made here: most updates come without it. */
static enum lk_status read_checks(void *context, struct lk_worker *worker)
{
    struct lk_exchange *exchange = lk_stepper_exchange(worker->stepper);
    (void)context;
    worker->delivery.checks = NULL;
    if (!worker->has_updated)
        return LK_OK;
    LK_TRY(lk_exchange_checks(exchange, &worker->delivery.checks));
    if (worker->team->config.check_every == 0)
        return LK_OK;
    LK_TRY(lk_exchange_weigh(exchange));
    return lk_exchange_checks(exchange, &worker->delivery.checks);
}

enum lk_status lk_team_verify_replicas(struct lk_team *team)
{
    bool is_right = true;
    if (team->phase == LK_TEAM_ALONE) {
        LK_TRY(lk_team_keep_state(team));
        return lk_team_try_again(team);
    }
    if (team->async || !team->sums.has_last || lk_team_left(team) < 2)
        return LK_OK;
    LK_TRY(lk_team_call_each(team, read_checks, NULL, true));
    return lk_team_check_replicas(team, &is_right);
}

/* --- steps ------------------------------------------------------------------------------ */

enum lk_status lk_team_wants(struct lk_team *team, bool *wants)
{
    if (!team->async) {
        *wants = team->queue.begun < LK_COUNT(team->queue.steps);
        return LK_OK;
    }
    pthread_mutex_lock(&team->mutex);
    const enum lk_status status = lk_async_wants(team, wants);
    pthread_mutex_unlock(&team->mutex);
    return status;
}

enum lk_status lk_team_begin(struct lk_team *team, const struct lk_team_step *step)
{
    pthread_mutex_lock(&team->mutex);
    const enum lk_status status =
        team->async ? lk_async_begin(team, step) : lk_lockstep_begin(team, step);
    pthread_mutex_unlock(&team->mutex);
    return status;
}

enum lk_status lk_team_end(struct lk_team *team, bool wants_stop, struct lk_team_result *result)
{
    if (!team->async && team->queue.begun == 0)
        return lk_fail(LK_E_ARGUMENT, "no step was begun");
    team->job.wants_stop = wants_stop;
    team->job.must_stop = wants_stop;
    pthread_mutex_lock(&team->mutex);
    const enum lk_status status =
        team->async ? lk_async_end(team, result) : lk_lockstep_end(team, result);
    pthread_mutex_unlock(&team->mutex);
    if (status == LK_OK)
        result->must_stop = team->job.must_stop;
    return status;
}
