/* Decides which device computes which shards. */
#include "team/lockstep/ranks.h"

#include "base/fail.h"

enum lk_status lk_team_init_split(struct lk_team *team)
{
    struct lk_split_policy policy;
    LK_TRY(lk_split_parse(team->config.split, team->job.all, &policy));
    return lk_split_init(&team->split, &policy, team->config.shards, team->job.all);
}

struct lk_shard_run lk_team_own_shards(const struct lk_team *team)
{
    struct lk_shard_run run = {0};
    for (int i = 0; i < team->job.first; i++)
        run.first += team->split.counts[i];
    for (int i = 0; i < team->count; i++)
        run.count += team->split.counts[team->job.first + i];
    return run;
}

/* Divides this rank's shards anew within a step, without a device that was lost or is in doubt.
 * Other ranks learn of a loss only at the end of the step, so their shards stay as they are. */
static void deal_anew(struct lk_team *team, int shards, int *counts)
{
    double rates[LK_MOST_TEAM];
    bool is_any = false;
    for (int i = 0; i < team->count; i++) {
        const struct lk_worker *worker = team->workers[i];
        const bool is_out = !lk_worker_is_at_work(worker) || worker->evidence.not_finite;
        const double rate = lk_split_rate(&team->split, team->job.first + i);
        rates[i] = is_out ? 0 : rate > 0 ? rate : 1;
        is_any |= is_out && counts[i] > 0;
    }
    if (is_any && lk_split_share(shards, team->count, rates, counts) != LK_OK)
        lk_error_clear(); /* every device is in doubt, so each computes its own shards again */
}

void lk_team_assign_shards(struct lk_team *team)
{
    int counts[LK_MOST_TEAM];
    const int fastest = team->trial.fastest;
    struct lk_shard_run run = lk_team_own_shards(team);
    if (team->phase == LK_TEAM_ALONE) {
        if (lk_team_left(team) > 0)
            lk_team_only(team)->share = run;
        return;
    }
    if (team->phase == LK_TEAM_TRIAL_ONE && !lk_worker_is_at_work(team->workers[fastest]))
        lk_team_enter(team, LK_TEAM_SHARED);
    for (int i = 0; i < team->count; i++) {
        counts[i] = team->split.counts[team->job.first + i];
        if (team->phase == LK_TEAM_TRIAL_ONE)
            counts[i] = i == fastest ? run.count : 0;
    }
    deal_anew(team, run.count, counts);
    for (int i = 0; i < team->count; i++) {
        team->workers[i]->share = (struct lk_shard_run){run.first, counts[i]};
        run.first += counts[i];
    }
}

/* --- what a step has shown --------------------------------------------------------------- */

/* Takes the devices that were lost in this step out of the split. False: there were none. */
static bool lose(struct lk_team *team, const struct lk_team_result *result)
{
    bool is_any = false;
    for (int i = 0; i < team->job.all; i++) {
        if (result->devices[i].is_left || team->split.is_lost[i])
            continue;
        is_any = true;
        if (lk_split_remove(&team->split, i) != LK_OK)
            lk_error_clear(); /* it was the last */
    }
    return is_any;
}

static bool follow(struct lk_team *team, const struct lk_team_result *result)
{
    double seconds[LK_MOST_SPLIT_DEVICES];
    if (lose(team, result))
        return true;
    for (int i = 0; i < team->job.all; i++) {
        const struct lk_device_times *d = &result->devices[i];
        seconds[i] = d->share > 0 ? 1e-3 * (d->compute_ms + d->transfer_ms) : 0;
    }
    return team->phase != LK_TEAM_TRIAL_ONE && lk_split_step(&team->split, seconds);
}

enum lk_status lk_team_measure(struct lk_team *team, const struct lk_team_result *result,
                               double step_seconds)
{
    const bool has_changed = follow(team, result);
    team->counts.dealt += has_changed;
    lk_team_try_step(team, step_seconds, has_changed);
    return has_changed && team->job.ranks ? lk_team_ranks_allocate(team) : LK_OK;
}
