/* The trainer's side of asynchronous training: puts steps into the queue and ends them. */
#include "team/async/internal.h"

#include "base/fail.h"

enum lk_status lk_async_begin(struct lk_team *team, const struct lk_team_step *step)
{
    struct lk_async *async = team->async;
    if (async->begun == LK_MOST_BEGUN)
        return lk_fail(LK_E_ARGUMENT, "step %lld is begun before step %lld is ended",
                       (long long)step->step, (long long)async->oldest);
    if (async->begun++ == 0)
        async->oldest = step->step;
    lk_async_queue_step(team, step);
    if (!async->is_pausing)
        lk_async_wake(team);
    return LK_OK;
}

static bool is_oldest_done(const struct lk_team *team)
{
    const struct lk_async_step *step = lk_async_step(team->async, team->async->oldest);
    return step->applied == step->groups;
}

/* Another step is wanted when the devices would soon run out of groups. */
static bool wants_step(const struct lk_team *team)
{
    const struct lk_async *async = team->async;
    return async->begun < LK_MOST_BEGUN && async->queued < team->count;
}

static bool wants_something(const struct lk_team *team)
{
    return is_oldest_done(team) || wants_step(team);
}

enum lk_status lk_async_wants(struct lk_team *team, bool *wants)
{
    if (team->async->begun == 0) {
        *wants = true;
        return LK_OK;
    }
    LK_TRY(lk_async_await(team, wants_something));
    *wants = wants_step(team);
    return LK_OK;
}

static void fill_result(const struct lk_team *team, struct lk_team_result *result)
{
    const struct lk_async_step *step = lk_async_step(team->async, team->async->oldest);
    const double samples = (double)step->step.samples;
    *result = (struct lk_team_result){.loss = step->loss / samples + step->penalty,
                                      .accuracy = step->correct / samples,
                                      .tries = step->tries,
                                      .device_count = team->count};
    for (int i = 0; i < team->count; i++) {
        struct lk_device_times *times = &result->devices[i];
        *times = step->devices[i];
        times->is_left = lk_worker_is_at_work(team->workers[i]) || times->samples > 0;
        times->share = (double)times->samples / samples;
        times->samples_per_s = lk_team_rate(times);
    }
}

enum lk_status lk_async_end(struct lk_team *team, struct lk_team_result *result)
{
    struct lk_async *async = team->async;
    if (async->begun == 0)
        return lk_fail(LK_E_ARGUMENT, "no step was begun");
    LK_TRY(lk_async_await(team, is_oldest_done));
    if (async->begun == 1) {
        LK_TRY(lk_async_await(team, lk_async_is_idle));
        LK_TRY(lk_async_check_replicas(team));
        if (lk_team_left(team) == 0)
            return lk_team_none_left(team);
    }
    fill_result(team, result);
    async->oldest++;
    async->begun--;
    return LK_OK;
}
