/* Parses the text of a split policy, and divides shards by given rates. */
#include "mirror/split.h"

#include "base/fail.h"
#include "base/number.h"
#include "mirror/tree.h"
#include <math.h>
#include <string.h>

static const double MOST_WEIGHT = 1e6;

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
            return lk_fail(LK_E_ARGUMENT,
                           "split '%s': expected %d weight%s with ':' between them, one for "
                           "each device or "
                           "group of devices; found '%s' after the one of device %d",
                           text, devices, devices > 1 ? "s" : "", end, i);
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
    if (devices < 1 || devices > LK_MOST_SPLIT_DEVICES)
        return lk_fail(LK_E_ARGUMENT, "split: %d devices; expected 1 to %d", devices,
                       LK_MOST_SPLIT_DEVICES);
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

static enum lk_status check_share(int shards, int devices, const double *rates)
{
    bool is_any = false;
    if (shards < 1 || shards > LK_MOST_SHARDS)
        return lk_fail(LK_E_ARGUMENT, "split: %d shards; expected 1 to %d", shards,
                       LK_MOST_SHARDS);
    if (devices < 1 || devices > LK_MOST_SPLIT_DEVICES)
        return lk_fail(LK_E_ARGUMENT, "split: %d devices; expected 1 to %d", devices,
                       LK_MOST_SPLIT_DEVICES);
    for (int i = 0; i < devices; i++) {
        if (!(rates[i] >= 0 && rates[i] < INFINITY))
            return lk_fail(LK_E_ARGUMENT, "split: device %d computes %g shards a second", i,
                           rates[i]);
        is_any |= rates[i] > 0;
    }
    if (is_any)
        return LK_OK;
    return lk_fail(LK_E_ARGUMENT, "split: %d shards, and no device that takes any", shards);
}

enum lk_status lk_split_share(int shards, int devices, const double *rates, int *counts)
{
    LK_TRY(check_share(shards, devices, rates));
    for (int i = 0; i < devices; i++)
        counts[i] = 0;
    for (int s = 0; s < shards; s++) {
        int first = -1;
        double soonest = INFINITY;
        for (int i = 0; i < devices; i++) {
            const double done = rates[i] > 0 ? (counts[i] + 1) / rates[i] : INFINITY;
            if (first < 0 ? rates[i] > 0 : done < soonest) {
                first = i;
                soonest = done;
            }
        }
        counts[first]++;
    }
    return LK_OK;
}
