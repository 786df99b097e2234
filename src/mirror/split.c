#include "mirror/split.h"

#include "base/fail.h"
#include "base/number.h"
#include "mirror/tree.h"
#include <math.h>
#include <string.h>

/* After a change, HOLD steps fill more than half of the window, so that the medians are those
 * of the new split. A device without shards is tried for TRIAL steps after IDLE steps at least,
 * and not before what this is expected to cost is COST of the time since. */
enum { HOLD = 8, TRIAL = 3, IDLE = 256 };
static const double GAIN = 1.05, COST = 0.01, MOST_WEIGHT = 1e6;

/* --- the policy's text -------------------------------------------------------------------- */

static enum lk_status parse_weights(const char *text, int devices, double *weights)
{
    const char *at = text;
    double all = 0;
    for (int i = 0; i < devices; i++) {
        char *end;
        const double weight = lk_number_read(at, &end);
        if (end == at || !(weight >= 0 && weight <= MOST_WEIGHT))
            return lk_fail(
                LK_E_ARGUMENT,
                "split '%s': expected measured, all, equal, or a weight from 0 to 1000000 "
                "for each of %d devices, as in 2:1; found '%s'",
                text, devices, at);
        if (*end != (i + 1 < devices ? ':' : '\0'))
            return lk_fail(
                LK_E_ARGUMENT,
                "split '%s': expected %d weights with ':' between them, one for each "
                "device; found '%s' after the one of device %d",
                text, devices, end, i);
        weights[i] = weight;
        all += weight;
        at = end + 1;
    }
    if (all > 0)
        return LK_OK;
    return lk_fail(LK_E_ARGUMENT, "split '%s': all weights are 0, nothing would be computed",
                   text);
}

enum lk_status lk_split_parse(const char *text, int devices, struct lk_split_policy *policy)
{
    struct lk_split_policy parsed = {.kind = LK_SPLIT_WEIGHTS};
    if (devices < 1 || devices > LK_MOST_SHARERS)
        return lk_fail(LK_E_ARGUMENT, "split: %d devices; expected 1 to %d", devices,
                       LK_MOST_SHARERS);
    for (int i = 0; i < devices; i++)
        parsed.weights[i] = 1;
    parsed.keeps_all = strcmp(text, "measured") != 0;
    if (!parsed.keeps_all || strcmp(text, "all") == 0)
        parsed.kind = LK_SPLIT_MEASURED;
    else if (strcmp(text, "equal") == 0)
        parsed.kind = LK_SPLIT_EQUAL;
    else
        LK_TRY(parse_weights(text, devices, parsed.weights));
    *policy = parsed;
    return LK_OK;
}

/* --- shares ------------------------------------------------------------------------------- */

static int within(int most, int shards)
{
    return most < 0 ? 0 : most < shards ? most : shards;
}

static enum lk_status check_share(int shards, int devices, const double *rates, const int *most)
{
    if (shards < 1 || shards > LK_MOST_SHARDS)
        return lk_fail(LK_E_ARGUMENT, "split: %d shards; expected 1 to %d", shards,
                       LK_MOST_SHARDS);
    if (devices < 1 || devices > LK_MOST_SHARERS)
        return lk_fail(LK_E_ARGUMENT, "split: %d devices; expected 1 to %d", devices,
                       LK_MOST_SHARERS);
    int room = 0;
    for (int i = 0; i < devices; i++) {
        if (!(rates[i] >= 0 && rates[i] < INFINITY))
            return lk_fail(LK_E_ARGUMENT, "split: device %d computes %g shards a second", i,
                           rates[i]);
        if (rates[i] > 0)
            room += most ? within(most[i], shards) : shards;
    }
    if (room < shards)
        return lk_fail(LK_E_ARGUMENT, "split: %d shards; the devices can take %d", shards,
                       room);
    return LK_OK;
}

enum lk_status lk_split_share(int shards, int devices, const double *rates, const int *most,
                              int *counts)
{
    LK_TRY(check_share(shards, devices, rates, most));
    for (int i = 0; i < devices; i++)
        counts[i] = 0;
    for (int s = 0; s < shards; s++) {
        int first = -1;
        double soonest = INFINITY;
        for (int i = 0; i < devices; i++) {
            if (rates[i] == 0 || (most && counts[i] >= most[i]))
                continue;
            const double done = (counts[i] + 1) / rates[i];
            if (first < 0 || done < soonest) {
                first = i;
                soonest = done;
            }
        }
        counts[first]++;
    }
    return LK_OK;
}

/* --- following the speed ------------------------------------------------------------------ */

enum lk_status lk_split_init(struct lk_split *split, const struct lk_split_policy *policy,
                             int shards, int devices, const int *most)
{
    struct lk_split made = {
        .policy = *policy, .shards = shards, .devices = devices, .hold = HOLD};
    LK_TRY(lk_split_share(shards, devices, policy->weights, most, made.counts));
    for (int i = 0; i < devices; i++)
        made.most[i] = most ? within(most[i], shards) : shards;
    *split = made;
    return LK_OK;
}

/* The value that `quarters` quarters of the others are not above: 2 gives the median. */
static double quartile(const double *values, int count, int quarters)
{
    double sorted[LK_SPLIT_WINDOW];
    for (int i = 0; i < count; i++) {
        int at = i;
        for (; at > 0 && sorted[at - 1] > values[i]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = values[i];
    }
    return sorted[count * quarters / 4];
}

static double rate_of(const struct lk_split *split, int device, int quarters)
{
    const int measured = split->measured[device];
    if (measured == 0 || split->is_lost[device])
        return 0;
    return 1 / quartile(split->shard_seconds[device],
                        measured < LK_SPLIT_WINDOW ? measured : LK_SPLIT_WINDOW, quarters);
}

double lk_split_rate(const struct lk_split *split, int device)
{
    return rate_of(split, device, 2);
}

/* Of all devices; one that was never measured counts as the fastest one. */
static bool find_rates(const struct lk_split *split, double *rates, int quarters)
{
    double fastest = 0;
    for (int i = 0; i < split->devices; i++) {
        rates[i] = rate_of(split, i, quarters);
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

static void take_in(struct lk_split *split, const double *seconds)
{
    double longest = 0;
    for (int i = 0; i < split->devices; i++) {
        if (split->counts[i] == 0 || !(seconds[i] > 0 && seconds[i] < INFINITY))
            continue;
        split->shard_seconds[i][split->measured[i]++ % LK_SPLIT_WINDOW] =
            seconds[i] / split->counts[i];
        if (split->measured[i] == 2 * LK_SPLIT_WINDOW)
            split->measured[i] = LK_SPLIT_WINDOW;
        longest = seconds[i] > longest ? seconds[i] : longest;
    }
    for (int i = 0; i < split->devices; i++) {
        const bool idle = split->counts[i] == 0;
        split->idle_steps[i] = idle ? split->idle_steps[i] + 1 : 0;
        split->idle_seconds[i] = idle ? split->idle_seconds[i] + longest : 0;
    }
}

static bool set_counts(struct lk_split *split, const int *counts)
{
    const size_t bytes = (size_t)split->devices * sizeof *counts;
    if (memcmp(split->counts, counts, bytes) == 0)
        return false;
    memcpy(split->counts, counts, bytes);
    split->hold = HOLD;
    return true;
}

/* The device to be tried; -1: none. */
static int find_idle(const struct lk_split *split, const double *rates)
{
    const double now = seconds_of(split, split->counts, rates);
    int longest = -1;
    for (int i = 0; i < split->devices; i++) {
        if (split->counts[i] > 0 || split->is_lost[i] || split->most[i] < 1)
            continue;
        const double cost = TRIAL * (1 / rates[i] - now);
        const bool is_due =
            split->idle_steps[i] >= IDLE && cost <= COST * split->idle_seconds[i];
        if ((is_due || split->measured[i] == 0) &&
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
    int slowest = -1;
    for (int i = 0; i < split->devices; i++)
        if (split->counts[i] > 0 &&
            (slowest < 0 ||
             split->counts[i] / rates[i] > split->counts[slowest] / rates[slowest]))
            slowest = i;
    memcpy(split->before, split->counts, sizeof split->before);
    split->counts[slowest]--;
    split->counts[idle] = 1;
    split->measured[idle] = 0;
    split->is_trying = true;
    split->hold = TRIAL;
    return true;
}

bool lk_split_step(struct lk_split *split, const double *seconds)
{
    double rates[LK_MOST_SHARERS], careful[LK_MOST_SHARERS];
    int next[LK_MOST_SHARERS];
    take_in(split, seconds);
    if (split->hold > 0)
        split->hold--;
    if (split->policy.kind != LK_SPLIT_MEASURED || split->hold > 0 ||
        !find_rates(split, rates, 2))
        return false;
    const bool was_trying = split->is_trying;
    const int *now = was_trying ? split->before : split->counts;
    split->is_trying = false;
    /* The new split has to be better by more than the times vary. */
    if (lk_split_share(split->shards, split->devices, rates, split->most, next) == LK_OK &&
        find_rates(split, careful, 3) &&
        seconds_of(split, next, careful) * GAIN <= seconds_of(split, now, rates))
        return set_counts(split, next);
    return was_trying ? set_counts(split, split->before) : try_idle(split, rates);
}

double lk_split_gain(const struct lk_split *split)
{
    double rates[LK_MOST_SHARERS];
    int best[LK_MOST_SHARERS];
    if (split->policy.kind != LK_SPLIT_MEASURED || !find_rates(split, rates, 2))
        return 0;
    if (lk_split_share(split->shards, split->devices, rates, split->most, best) != LK_OK) {
        lk_error_clear();
        return 0;
    }
    const double gain =
        seconds_of(split, split->counts, rates) - seconds_of(split, best, rates);
    return gain > 0 ? gain : 0;
}

/* Shards that the devices with a rate can take. */
static int room_of(const struct lk_split *split, const double *rates)
{
    int room = 0;
    for (int i = 0; i < split->devices; i++)
        room += rates[i] > 0 ? split->most[i] : 0;
    return room;
}

enum lk_status lk_split_lose(struct lk_split *split, int device)
{
    double rates[LK_MOST_SHARERS];
    int next[LK_MOST_SHARERS], room;
    struct lk_split after = *split;
    after.is_lost[device] = true;
    if (split->policy.kind != LK_SPLIT_MEASURED || !find_rates(&after, rates, 2))
        for (int i = 0; i < split->devices; i++)
            rates[i] = after.is_lost[i] ? 0 : split->policy.weights[i];
    room = room_of(split, rates);
    if (room == 0) { /* all that had a weight are lost: the others stand in, in equal parts */
        for (int i = 0; i < split->devices; i++)
            rates[i] = after.is_lost[i] ? 0 : 1;
        room = room_of(split, rates);
    }
    if (room < split->shards)
        return lk_fail(LK_E_NO_DEVICE,
                       "device %d is lost, and the others can take %d of %d shards", device,
                       room, split->shards);
    LK_TRY(lk_split_share(split->shards, split->devices, rates, split->most, next));
    after.is_trying = false;
    set_counts(&after, next);
    *split = after;
    return LK_OK;
}
