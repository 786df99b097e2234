/* Which device computes which shards. */
#include "team/lockstep/ranks.h"

#include "base/fail.h"
#include "base/log.h"
#include "base/median.h"

enum lk_status lk_team_init_deal(struct lk_team *team)
{
    struct lk_split_policy policy;
    LK_TRY(lk_split_parse(team->config.split, team->all, &policy));
    return lk_split_init(&team->split, &policy, team->config.shards, team->all);
}

struct lk_shard_run lk_team_run(const struct lk_team *team)
{
    struct lk_shard_run run = {0};
    for (int i = 0; i < team->first; i++)
        run.first += team->split.counts[i];
    for (int i = 0; i < team->count; i++)
        run.count += team->split.counts[team->first + i];
    return run;
}

/* While a device of this rank is lost, which other ranks do not know before the step is over,
 * or in doubt, its shards go to the others. */
static void deal_anew(struct lk_team *team, int shards, int *counts)
{
    double rates[LK_MOST_TEAM];
    bool is_any = false;
    for (int i = 0; i < team->count; i++) {
        const struct lk_worker *worker = team->workers[i];
        const bool is_out = worker->is_lost || worker->is_doubted;
        const double rate = lk_split_rate(&team->split, team->first + i);
        rates[i] = is_out ? 0 : rate > 0 ? rate : 1;
        is_any |= is_out && counts[i] > 0;
    }
    if (is_any && lk_split_share(shards, team->count, rates, counts) != LK_OK)
        lk_error_clear(); /* all are in doubt: each computes its own again */
}

void lk_team_deal(struct lk_team *team)
{
    int counts[LK_MOST_TEAM];
    struct lk_shard_run run = lk_team_run(team);
    if (team->trial.phase == LK_TRIAL_ONE && team->workers[team->trial.fastest]->is_lost)
        team->trial.phase = LK_TRIAL_OVER;
    for (int i = 0; i < team->count; i++) {
        counts[i] = team->split.counts[team->first + i];
        if (team->trial.phase == LK_TRIAL_ONE)
            counts[i] = i == team->trial.fastest ? run.count : 0;
    }
    deal_anew(team, run.count, counts);
    for (int i = 0; i < team->count; i++) {
        team->workers[i]->run = (struct lk_shard_run){run.first, counts[i]};
        run.first += counts[i];
    }
}

/* --- whether one device is faster than all ---------------------------------------------- */

static int find_fastest(const struct lk_team *team)
{
    int fastest = 0;
    for (int i = 1; i < team->count; i++)
        if (lk_split_rate(&team->split, i) > lk_split_rate(&team->split, fastest))
            fastest = i;
    return fastest;
}

static void end_round(struct lk_team *team, double one_seconds)
{
    struct lk_trial *trial = &team->trial;
    /* On its own it will also save the way over the host. */
    trial->won += one_seconds < 1.05 * trial->all_seconds;
    trial->rounds++;
    trial->is_one_faster = 2 * trial->won > LK_TRIAL_ROUNDS;
    const bool is_over =
        trial->is_one_faster || 2 * (trial->rounds - trial->won) > LK_TRIAL_ROUNDS;
    trial->phase = is_over ? LK_TRIAL_OVER : LK_TRIAL_ALL;
    if (is_over && !trial->is_one_faster && trial->wait > 0)
        lk_log(LK_LOG_WARNING, "all %d devices go on together again: that is faster by now",
               lk_team_left(team));
    if (trial->is_one_faster && trial->wait > 0)
        lk_log(LK_LOG_INFO, "device %d alone is still the fastest", trial->fastest);
    if (trial->is_one_faster && trial->wait == 0)
        lk_log(LK_LOG_WARNING,
               "device %d alone is as fast as %d devices together or faster (%.2f ms a step "
               "against %.2f): it goes on alone; --split all keeps them",
               trial->fastest, lk_team_left(team), 1e3 * one_seconds, 1e3 * trial->all_seconds);
}

/* A few steps by all, then as many by the fastest: no bit depends on who computes. Where a step
 * by all is mostly the way over the host, the fastest's own speed says enough. */
static void try_one(struct lk_team *team, double seconds)
{
    struct lk_trial *trial = &team->trial;
    trial->seconds[trial->steps++] = seconds;
    if (trial->steps < LK_TRIAL_STEPS)
        return;
    const double found = lk_median(trial->seconds + 2, LK_TRIAL_STEPS - 2);
    trial->steps = 0;
    if (trial->phase == LK_TRIAL_ONE) {
        end_round(team, found);
        return;
    }
    trial->all_seconds = found - lk_split_gain(&team->split);
    trial->fastest = find_fastest(team);
    trial->phase = LK_TRIAL_ONE;
    const double alone = team->config.shards / lk_split_rate(&team->split, trial->fastest);
    if (alone < 0.7 * trial->all_seconds)
        end_round(team, alone);
}

/* Steps of different splits do not compare. Shares that fit once may move by a little later,
 * which is not waited for. */
static void restart(struct lk_trial *trial)
{
    trial->steps = 0;
    if (trial->settled <= LK_SETTLING_STEPS)
        trial->settled = 0;
}

/* Takes out of the split what was lost in this step. False: nothing was. */
static bool lose(struct lk_team *team, const struct lk_team_result *result)
{
    bool is_any = false;
    for (int i = 0; i < team->all; i++) {
        if (result->devices[i].is_left || team->split.is_lost[i])
            continue;
        is_any = true;
        if (lk_split_lose(&team->split, i) != LK_OK)
            lk_error_clear(); /* it was the last */
    }
    return is_any;
}

static bool follow(struct lk_team *team, const struct lk_team_result *result)
{
    double seconds[LK_MOST_SHARERS];
    if (lose(team, result))
        return true;
    for (int i = 0; i < team->all; i++) {
        const struct lk_device_times *d = &result->devices[i];
        seconds[i] = d->share > 0 ? 1e-3 * (d->compute_ms + d->transfer_ms) : 0;
    }
    return team->trial.phase != LK_TRIAL_ONE && lk_split_step(&team->split, seconds);
}

enum lk_status lk_team_measure(struct lk_team *team, const struct lk_team_result *result,
                               double step_seconds)
{
    const bool has_changed = follow(team, result);
    team->counts.dealt += has_changed;
    if (team->split.policy.keeps_all || lk_team_left(team) < 2 || team->ranks ||
        !team->describe)
        team->trial.phase = LK_TRIAL_OVER;
    if (has_changed)
        restart(&team->trial);
    if (team->trial.phase != LK_TRIAL_OVER && ++team->trial.settled > LK_SETTLING_STEPS)
        try_one(team, step_seconds);
    return has_changed && team->ranks ? lk_team_ranks_share(team) : LK_OK;
}
