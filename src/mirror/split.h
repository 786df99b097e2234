/* Decides how many of a step's shards each device computes. Device 0 gets the first shards,
 * device 1 those after them, and so on. Floor 4. A device is only a number; knows no clock. */
#ifndef LK_MIRROR_SPLIT_H
#define LK_MIRROR_SPLIT_H

#include "mirror/tree.h"
#include <lockstep/status.h>
#include <stdbool.h>

enum { LK_MOST_SPLIT_DEVICES = LK_MOST_SHARDS, LK_SPLIT_WINDOW = 15 };

enum lk_split_kind { LK_SPLIT_MEASURED, LK_SPLIT_EQUAL, LK_SPLIT_WEIGHTS };

struct lk_split_policy {
    enum lk_split_kind kind;
    /* of each device; 1 unless kind is LK_SPLIT_WEIGHTS */
    double weights[LK_MOST_SPLIT_DEVICES];
    bool keeps_all; /* all devices work, even if one alone were faster */
};

/* text: "measured", "all" (measured, and keeps_all), "equal", or a weight for each device,
 * "2:1:0.5"; weights are 0 to 1e6, not all 0. fails: LK_E_ARGUMENT */
LK_MUST_CHECK enum lk_status lk_split_parse(const char *text, int devices,
                                            struct lk_split_policy *policy);

/* Computes how many shards each device gets so that the last one to finish finishes as early as
 * possible; where several ways do, earlier devices get more. rates: shards a second, 0: the
 * device gets none. fails: LK_E_ARGUMENT, also where all rates are 0 */
LK_MUST_CHECK enum lk_status lk_split_share(int shards, int devices, const double *rates,
                                            int *counts);

/* The last LK_SPLIT_WINDOW values of a measurement. */
struct lk_split_times {
    double seconds[LK_SPLIT_WINDOW]; /* a ring buffer */
    int measured;                    /* how many values were ever put into it */
};

/* A trial: for some steps the split differs by one shard, which either goes to a device that
 * has none, to see how fast that is by now, or from the slowest device to another one. */
struct lk_split_trial {
    enum { LK_SPLIT_NO_TRIAL, LK_SPLIT_IDLE_TRIAL, LK_SPLIT_SHARD_TRIAL } kind;
    int before[LK_MOST_SPLIT_DEVICES]; /* the split before the trial, to go back to */
    double before_seconds;             /* the median time of its steps */
    int wait; /* steps to wait after a change before a shard is moved on trial */
};

/* A split that follows the devices' speed. Callers read `counts` alone. */
struct lk_split {
    struct lk_split_policy policy;
    int shards, devices;
    int counts[LK_MOST_SPLIT_DEVICES];
    bool is_lost[LK_MOST_SPLIT_DEVICES];
    struct lk_split_times shard[LK_MOST_SPLIT_DEVICES]; /* each device's time for a shard */
    struct lk_split_times step;            /* the slowest device's time, with these counts */
    int idle_steps[LK_MOST_SPLIT_DEVICES]; /* steps, and their seconds, since the device last */
    double idle_seconds[LK_MOST_SPLIT_DEVICES]; /* had a shard */
    int hold;                                   /* steps until the split may change again */
    double evidence; /* what another split would have saved in the last steps, as a sum of
                      * fractions of a step; 0 again when it would have saved nothing */
    int steady;      /* steps since the last change or trial */
    struct lk_split_trial trial;
};

/* The first split: by the policy's weights, which are equal where speeds are to be measured.
 * fails: LK_E_ARGUMENT */
LK_MUST_CHECK enum lk_status lk_split_init(struct lk_split *split,
                                           const struct lk_split_policy *policy, int shards,
                                           int devices);

/* Learns from a finished step. seconds: the time that each device computed, without waiting; 0
 * or less: not known. Returns whether `counts` changed: to a split that the medians of the last
 * steps predict to be at least 5 % faster, or for a trial. A trial of one shard less on the
 * slowest device is needed since the medians assume that all shards of a device cost the same,
 * though the first ones may cost more. */
bool lk_split_step(struct lk_split *split, const double *seconds);

/* Removes a device that has failed: the others get its shards. fails: LK_E_NO_DEVICE where no
 * other is left; the split stays as it was */
LK_MUST_CHECK enum lk_status lk_split_remove(struct lk_split *split, int device);

/* The seconds of a step that the best split would save, by the medians of the last steps. */
double lk_split_gain(const struct lk_split *split);

/* The device's shards a second, by the medians of the last steps; 0: it was removed or never
 * measured. */
double lk_split_rate(const struct lk_split *split, int device);

#endif
