/* Trials, in the course of training, of whether one device alone is faster than all
 * together. */
#include "team/lockstep/lockstep.h"

#include "base/log.h"
#include "base/median.h"

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
    /* The device is even faster alone than measured here, since its sums need not go to the
     * host and back. */
    trial->won += one_seconds < 1.05 * trial->all_seconds;
    trial->rounds++;
    trial->is_one_faster = 2 * trial->won > LK_TRIAL_ROUNDS;
    const bool is_over =
        trial->is_one_faster || 2 * (trial->rounds - trial->won) > LK_TRIAL_ROUNDS;
    if (!is_over)
        lk_team_enter(team, LK_TEAM_TRIAL_ALL);
    else if (!trial->is_one_faster)
        lk_team_enter(team, LK_TEAM_SHARED);
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

/* Counts a step of a trial: a few steps by all devices, then as many by the fastest. No bit
 * depends on who computes. Where most of a step by all is the way to the host and back, what
 * the fastest device alone needs is estimated from its own speed. */
static void try_one(struct lk_team *team, double seconds)
{
    struct lk_trial *trial = &team->trial;
    trial->seconds[trial->steps++] = seconds;
    if (trial->steps < LK_TRIAL_STEPS)
        return;
    const double found = lk_median(trial->seconds + 2, LK_TRIAL_STEPS - 2);
    trial->steps = 0;
    if (team->phase == LK_TEAM_TRIAL_ONE) {
        end_round(team, found);
        return;
    }
    trial->all_seconds = found - lk_split_gain(&team->split);
    trial->fastest = find_fastest(team);
    lk_team_enter(team, LK_TEAM_TRIAL_ONE);
    const double alone = team->config.shards / lk_split_rate(&team->split, trial->fastest);
    if (alone < 0.7 * trial->all_seconds)
        end_round(team, alone);
}

/* Begins the trial again after the split has changed, since the times of different splits
 * cannot be compared. Later small changes do not count. */
static void restart(struct lk_trial *trial)
{
    trial->steps = 0;
    if (trial->settled <= LK_SETTLING_STEPS)
        trial->settled = 0;
}

static bool is_tried(const struct lk_team *team)
{
    return team->phase == LK_TEAM_TRIAL_ALL || team->phase == LK_TEAM_TRIAL_ONE;
}

void lk_team_try_step(struct lk_team *team, double seconds, bool has_changed)
{
    const bool is_vain = team->split.policy.keeps_all || lk_team_left(team) < 2 ||
                         team->config.pieces > 1 || team->config.places > 1 ||
                         team->job.ranks || !team->recall.describe;
    if (is_tried(team) && is_vain)
        lk_team_enter(team, LK_TEAM_SHARED);
    if (has_changed)
        restart(&team->trial);
    if (is_tried(team) && ++team->trial.settled > LK_SETTLING_STEPS)
        try_one(team, seconds);
}
