/* How many of a step's shards each device computes: runs of shards in the order of devices.
 * Floor 3. Knows no device but by its number, and no clock. */
#ifndef LK_MIRROR_SPLIT_H
#define LK_MIRROR_SPLIT_H

#include <lockstep/status.h>
#include <stdbool.h>

enum { LK_MOST_SHARERS = 64, LK_SPLIT_WINDOW = 15 };

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
 * devices more. rates: shards a second, 0: takes none; most: what each can take at once, NULL:
 * all. fails: LK_E_ARGUMENT, also where the devices cannot take all shards */
LK_MUST_CHECK enum lk_status lk_split_share(int shards, int devices, const double *rates,
                                            const int *most, int *counts);

/* A split that follows the devices' speed; read `counts`, leave the rest alone. */
struct lk_split {
    struct lk_split_policy policy;
    int shards, devices;
    int counts[LK_MOST_SHARERS];
    int most[LK_MOST_SHARERS];
    bool is_lost[LK_MOST_SHARERS];
    double shard_seconds[LK_MOST_SHARERS][LK_SPLIT_WINDOW]; /* of the last steps, a ring */
    int measured[LK_MOST_SHARERS];                          /* values put into it so far */
    int idle_steps[LK_MOST_SHARERS];                        /* since it last had a shard, */
    double idle_seconds[LK_MOST_SHARERS];
    int hold;                    /* steps until the split may change */
    int before[LK_MOST_SHARERS]; /* while is_trying: the split to go back to */
    bool is_trying;
};

/* By the weights; equal parts to begin with where they are to be measured. most as above.
 * fails: LK_E_ARGUMENT */
LK_MUST_CHECK enum lk_status lk_split_init(struct lk_split *split,
                                           const struct lk_split_policy *policy, int shards,
                                           int devices, const int *most);

/* Takes in a step: the time each device computed, waiting left out; a time that is not above 0
 * is none. Returns whether counts changed: to a split that the medians of the last steps
 * predict to be faster by 5 % or more, or for a few steps, to see how fast an idle device is by
 * now. */
bool lk_split_step(struct lk_split *split, const double *seconds);

/* Gives the device's shards to the others, now and for good. fails: LK_E_NO_DEVICE where they
 * cannot take them; the split stays as it was */
LK_MUST_CHECK enum lk_status lk_split_lose(struct lk_split *split, int device);

/* Seconds a step that the best split would save, by the medians of the last steps; 0: none. */
double lk_split_gain(const struct lk_split *split);

/* Shards a second, by the medians of the last steps; 0: lost, or not measured yet. */
double lk_split_rate(const struct lk_split *split, int device);

#endif
