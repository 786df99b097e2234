/* How many of a step's shards each device computes: runs of shards in the order of devices.
 * Floor 4. Knows no device but by its number, and no clock. */
#ifndef LK_MIRROR_SPLIT_H
#define LK_MIRROR_SPLIT_H

#include "mirror/tree.h"
#include <lockstep/status.h>
#include <stdbool.h>

enum { LK_MOST_SHARERS = LK_MOST_SHARDS, LK_SPLIT_WINDOW = 15 };

enum lk_split_kind { LK_SPLIT_MEASURED, LK_SPLIT_EQUAL, LK_SPLIT_WEIGHTS };

struct lk_split_policy {
    enum lk_split_kind kind;
    double weights[LK_MOST_SHARERS]; /* of each device; 1 but for LK_SPLIT_WEIGHTS */
    bool keeps_all;                  /* though one device alone may be faster */
};

/* text: "measured", "all" (measured, and keeps_all), "equal", or a weight for each device,
 * "2:1:0.5"; weights are 0 to 1e6, not all 0. fails: LK_E_ARGUMENT */
LK_MUST_CHECK enum lk_status lk_split_parse(const char *text, int devices,
                                            struct lk_split_policy *policy);

/* The counts for which the slowest device is done first, of those the ones that give earlier
 * devices more. rates: shards a second, 0: takes none. fails: LK_E_ARGUMENT, also where no
 * device takes any */
LK_MUST_CHECK enum lk_status lk_split_share(int shards, int devices, const double *rates,
                                            int *counts);

/* The last values of something, oldest first to go. */
struct lk_split_times {
    double seconds[LK_SPLIT_WINDOW]; /* a ring */
    int measured;                    /* values put into it so far */
};

/* A split on trial: of which a device without shards has one, or which differs by one shard. */
struct lk_split_trial {
    enum { LK_SPLIT_NO_TRIAL, LK_SPLIT_IDLE_TRIAL, LK_SPLIT_SHARD_TRIAL } kind;
    int before[LK_MOST_SHARERS]; /* the split to go back to, */
    double before_seconds;       /* and the median of its steps */
    int wait;                    /* steps from a change to the trial of a shard */
};

/* A split that follows the devices' speed; read `counts`, leave the rest alone. */
struct lk_split {
    struct lk_split_policy policy;
    int shards, devices;
    int counts[LK_MOST_SHARERS];
    bool is_lost[LK_MOST_SHARERS];
    struct lk_split_times shard[LK_MOST_SHARERS]; /* of each device */
    struct lk_split_times step;                   /* of the slowest device, with these counts */
    int idle_steps[LK_MOST_SHARERS];              /* since it last had a shard, */
    double idle_seconds[LK_MOST_SHARERS];
    int hold;        /* steps until the split may change */
    double evidence; /* the shares of steps that another split would have saved, in a row */
    int steady;      /* steps since the last change or trial */
    struct lk_split_trial trial;
};

/* By the weights; equal parts to begin with where they are to be measured.
 * fails: LK_E_ARGUMENT */
LK_MUST_CHECK enum lk_status lk_split_init(struct lk_split *split,
                                           const struct lk_split_policy *policy, int shards,
                                           int devices);

/* Takes in a step: the time each device computed, waiting left out; a time that is not above 0
 * is none. Returns whether counts changed: to a split that the medians of the last steps
 * predict to be faster by 5 % or more; or for some steps, to see how fast an idle device is by
 * now, or whether one shard less on the slowest device is better, as the medians cannot tell
 * where the first shards of a device cost more than others. */
bool lk_split_step(struct lk_split *split, const double *seconds);

/* Gives the device's shards to the others, now and for good. fails: LK_E_NO_DEVICE where it is
 * the last; the split stays as it was */
LK_MUST_CHECK enum lk_status lk_split_lose(struct lk_split *split, int device);

/* Seconds a step that the best split would save, by the medians of the last steps; 0: none. */
double lk_split_gain(const struct lk_split *split);

/* Shards a second, by the medians of the last steps; 0: lost, or not measured yet. */
double lk_split_rate(const struct lk_split *split, int device);

#endif
