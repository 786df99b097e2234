/* Follows the measured speed of devices and changes how many shards each computes. */
#include "mirror/split.h"

#include "base/fail.h"
#include "base/median.h"
#include <math.h>
#include <string.h>

/* After a change the split stays for HOLD steps, more than half of the window, so that the
 * medians are those of the new split. A device without shards is tried for TRIAL steps, at the
 * earliest after IDLE steps, and only when the trial is expected to cost no more than a
 * fraction COST of the time since it last had a shard. */
enum { HOLD = 8, TRIAL = 3, IDLE = 64 };
static const double GAIN = 1.05, COST = 0.01;

/* FIRST_WAIT steps after a change, one shard less on the slowest device is tried for a window
 * of steps. It stays so if the steps were faster by SMALL_GAIN; otherwise the wait doubles. */
enum { FIRST_WAIT = 2 * LK_SPLIT_WINDOW, LAST_WAIT = 2048 };
static const double SMALL_GAIN = 1.03;

/* --- medians ------------------------------------------------------------------------------ */

static void put(struct lk_split_times *times, double seconds)
{
    times->seconds[times->measured++ % LK_SPLIT_WINDOW] = seconds;
    if (times->measured == 2 * LK_SPLIT_WINDOW)
        times->measured = LK_SPLIT_WINDOW;
}

static int count_of(const struct lk_split_times *times)
{
    return times->measured < LK_SPLIT_WINDOW ? times->measured : LK_SPLIT_WINDOW;
}

static double median(const struct lk_split_times *times)
{
    double sorted[LK_SPLIT_WINDOW];
    memcpy(sorted, times->seconds, sizeof sorted);
    return lk_median(sorted, count_of(times));
}

double lk_split_rate(const struct lk_split *split, int device)
{
    const struct lk_split_times *times = &split->shard[device];
    return times->measured == 0 || split->is_lost[device] ? 0 : 1 / median(times);
}

/* Sets the rate of each device; one that was never measured counts as fast as the fastest. */
static bool find_rates(const struct lk_split *split, double *rates)
{
    double fastest = 0;
    for (int i = 0; i < split->devices; i++) {
        rates[i] = lk_split_rate(split, i);
        fastest = rates[i] > fastest ? rates[i] : fastest;
    }
    for (int i = 0; i < split->devices; i++)
        if (!split->is_lost[i] && rates[i] == 0)
            rates[i] = fastest;
    return fastest > 0;
}

static double seconds_of(const struct lk_split *split, const int *counts, const double *rates)
{
    double longest = 0;
    for (int i = 0; i < split->devices; i++) {
        const double seconds = counts[i] > 0 ? counts[i] / rates[i] : 0;
        longest = seconds > longest ? seconds : longest;
    }
    return longest;
}

/* --- steps -------------------------------------------------------------------------------- */

enum lk_status lk_split_init(struct lk_split *split, const struct lk_split_policy *policy,
                             int shards, int devices)
{
    struct lk_split made = {.policy = *policy,
                            .shards = shards,
                            .devices = devices,
                            .hold = HOLD,
                            .trial = {.wait = FIRST_WAIT}};
    LK_TRY(lk_split_share(shards, devices, policy->weights, made.counts));
    *split = made;
    return LK_OK;
}

static void take_in(struct lk_split *split, const double *seconds)
{
    double longest = 0;
    bool is_whole = true;
    for (int i = 0; i < split->devices; i++) {
        if (split->counts[i] == 0)
            continue;
        const bool is_time = seconds[i] > 0 && seconds[i] < INFINITY;
        is_whole &= is_time;
        if (!is_time)
            continue;
        put(&split->shard[i], seconds[i] / split->counts[i]);
        longest = seconds[i] > longest ? seconds[i] : longest;
    }
    if (is_whole)
        put(&split->step, longest);
    for (int i = 0; i < split->devices; i++) {
        const bool idle = split->counts[i] == 0;
        split->idle_steps[i] = idle ? split->idle_steps[i] + 1 : 0;
        split->idle_seconds[i] = idle ? split->idle_seconds[i] + longest : 0;
    }
    split->hold -= split->hold > 0;
    split->steady++;
}

static bool set_counts(struct lk_split *split, const int *counts)
{
    const size_t bytes = (size_t)split->devices * sizeof *counts;
    split->evidence = 0;
    split->steady = 0;
    if (memcmp(split->counts, counts, bytes) == 0)
        return false;
    memcpy(split->counts, counts, bytes);
    split->step.measured = 0;
    split->hold = HOLD;
    return true;
}

static int find_slowest(const struct lk_split *split, const double *rates)
{
    int slowest = -1;
    for (int i = 0; i < split->devices; i++)
        if (split->counts[i] > 0 &&
            (slowest < 0 ||
             split->counts[i] / rates[i] > split->counts[slowest] / rates[slowest]))
            slowest = i;
    return slowest;
}

/* --- trials ------------------------------------------------------------------------------- */

static void begin_trial(struct lk_split *split, int from, int to, int kind)
{
    memcpy(split->trial.before, split->counts, sizeof split->counts);
    split->trial.before_seconds = split->step.measured ? median(&split->step) : INFINITY;
    split->trial.kind = kind;
    split->counts[from]--;
    split->counts[to]++;
    split->step.measured = 0;
    split->hold = kind == LK_SPLIT_IDLE_TRIAL ? TRIAL : LK_SPLIT_WINDOW;
}

/* The device without shards that is to be tried; -1: none. */
static int find_idle(const struct lk_split *split, const double *rates)
{
    const double now = seconds_of(split, split->counts, rates);
    int longest = -1;
    for (int i = 0; i < split->devices; i++) {
        if (split->counts[i] > 0 || split->is_lost[i])
            continue;
        const double cost = TRIAL * (1 / rates[i] - now);
        const bool is_due =
            split->idle_steps[i] >= IDLE && cost <= COST * split->idle_seconds[i];
        if ((is_due || split->shard[i].measured == 0) &&
            (longest < 0 || split->idle_steps[i] > split->idle_steps[longest]))
            longest = i;
    }
    return longest;
}

/* Gives the idle device one shard of the device that computes longest. */
static bool try_idle(struct lk_split *split, const double *rates)
{
    const int idle = find_idle(split, rates);
    if (idle < 0)
        return false;
    begin_trial(split, find_slowest(split, rates), idle, LK_SPLIT_IDLE_TRIAL);
    split->shard[idle].measured = 0;
    return true;
}

/* The device that would finish first if it had one shard more; -1: none. A step may have a
 * fixed cost of about one shard, so n + 1 shards are assumed to take (n + 2) / (n + 1) of the
 * time of n. */
static int find_taker(const struct lk_split *split, const double *rates, int slowest,
                      double *seconds)
{
    int taker = -1;
    for (int i = 0; i < split->devices; i++) {
        const int n = split->counts[i];
        if (i == slowest || n == 0)
            continue;
        const double then = n / rates[i] * (n + 2) / (n + 1);
        if (taker < 0 || then < *seconds) {
            taker = i;
            *seconds = then;
        }
    }
    return taker;
}

/* Begins a trial that moves one shard from the slowest device to another, if that may be
 * faster. */
static bool try_shard(struct lk_split *split, const double *rates)
{
    const int slowest = find_slowest(split, rates);
    double then = 0;
    int next[LK_MOST_SPLIT_DEVICES];
    if (split->steady < split->trial.wait || split->counts[slowest] < 2)
        return false;
    const int taker = find_taker(split, rates, slowest, &then);
    if (taker < 0)
        return false;
    memcpy(next, split->counts, sizeof next);
    next[slowest]--;
    next[taker] = 0;
    const double others = seconds_of(split, next, rates);
    if ((others > then ? others : then) * SMALL_GAIN > seconds_of(split, split->counts, rates))
        return false;
    begin_trial(split, slowest, taker, LK_SPLIT_SHARD_TRIAL);
    return true;
}

/* Ends the trial of a moved shard: keeps the new split, or returns to the one before. Returns
 * whether `counts` changed. */
static bool end_shard_trial(struct lk_split *split)
{
    struct lk_split_trial *trial = &split->trial;
    trial->kind = LK_SPLIT_NO_TRIAL;
    if (split->step.measured && median(&split->step) * SMALL_GAIN <= trial->before_seconds) {
        trial->wait = FIRST_WAIT;
        split->steady = 0;
        return false;
    }
    trial->wait = trial->wait < LAST_WAIT ? 2 * trial->wait : LAST_WAIT;
    return set_counts(split, trial->before);
}

/* --- following the speed ------------------------------------------------------------------ */

/* Whether there is enough evidence to change from `now` to `next`. A small gain has to be
 * predicted for many steps in a row, since a device that other work disturbs for some steps
 * looks like one that became slower. */
static bool is_better(struct lk_split *split, const int *next, const int *now,
                      const double *rates)
{
    const double then = seconds_of(split, next, rates), seconds = seconds_of(split, now, rates);
    if (then * GAIN > seconds) {
        split->evidence = 0;
        return false;
    }
    split->evidence += 1 - then / seconds;
    return split->evidence >= 1 || split->trial.kind == LK_SPLIT_IDLE_TRIAL;
}

bool lk_split_step(struct lk_split *split, const double *seconds)
{
    double rates[LK_MOST_SPLIT_DEVICES];
    int next[LK_MOST_SPLIT_DEVICES];
    take_in(split, seconds);
    if (split->policy.kind != LK_SPLIT_MEASURED || split->hold > 0 || !find_rates(split, rates))
        return false;
    if (split->trial.kind == LK_SPLIT_SHARD_TRIAL)
        return end_shard_trial(split);
    const bool was_idle_trial = split->trial.kind == LK_SPLIT_IDLE_TRIAL;
    const int *now = was_idle_trial ? split->trial.before : split->counts;
    const bool is_wanted =
        lk_split_share(split->shards, split->devices, rates, next) == LK_OK &&
        is_better(split, next, now, rates);
    split->trial.kind = LK_SPLIT_NO_TRIAL;
    if (is_wanted) {
        split->trial.wait = FIRST_WAIT;
        return set_counts(split, next);
    }
    if (was_idle_trial)
        return set_counts(split, split->trial.before);
    return try_idle(split, rates) || try_shard(split, rates);
}

double lk_split_gain(const struct lk_split *split)
{
    double rates[LK_MOST_SPLIT_DEVICES];
    int best[LK_MOST_SPLIT_DEVICES];
    if (split->policy.kind != LK_SPLIT_MEASURED || !find_rates(split, rates))
        return 0;
    if (lk_split_share(split->shards, split->devices, rates, best) != LK_OK) {
        lk_error_clear();
        return 0;
    }
    const double gain =
        seconds_of(split, split->counts, rates) - seconds_of(split, best, rates);
    return gain > 0 ? gain : 0;
}

/* --- loss --------------------------------------------------------------------------------- */

static bool has_any(const struct lk_split *split, const double *rates)
{
    bool is_any = false;
    for (int i = 0; i < split->devices; i++)
        is_any |= rates[i] > 0;
    return is_any;
}

enum lk_status lk_split_remove(struct lk_split *split, int device)
{
    double rates[LK_MOST_SPLIT_DEVICES];
    int next[LK_MOST_SPLIT_DEVICES];
    struct lk_split after = *split;
    after.is_lost[device] = true;
    if (split->policy.kind != LK_SPLIT_MEASURED || !find_rates(&after, rates))
        for (int i = 0; i < split->devices; i++)
            rates[i] = after.is_lost[i] ? 0 : split->policy.weights[i];
    if (!has_any(split, rates)) /* all devices with a weight are lost: the others take their
                                 * place */
        for (int i = 0; i < split->devices; i++)
            rates[i] = after.is_lost[i] ? 0 : 1;
    if (!has_any(split, rates))
        return lk_fail(LK_E_NO_DEVICE, "device %d is lost, and no other is left for its shards",
                       device);
    LK_TRY(lk_split_share(split->shards, split->devices, rates, next));
    after.trial.kind = LK_SPLIT_NO_TRIAL;
    set_counts(&after, next);
    *split = after;
    return LK_OK;
}
