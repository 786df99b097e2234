/* Simulates a training step on many devices, bucket by bucket, from times measured on one.
 * Floor 9.
 *
 * After the step's fixed cost all devices begin. Each has its sums of bucket b ready at the
 * time measured for as many shards as it has. Its link carries them as soon as they are ready
 * and the bucket before is through. A host adds a bucket when the sums of all its devices are
 * there and the bucket before is added; then hosts sum it among themselves (reduce-scatter and
 * all-gather: 2 (H - 1) / H of its bytes). When the last bucket is summed, the sums go back
 * over the links, and a device updates by each as it comes. Knows no device, no clock and no
 * model. */
#ifndef LK_BENCH_SCALE_SCALE_H
#define LK_BENCH_SCALE_SCALE_H

#include "graph/replica.h"
#include "mirror/tree.h"
#include <lockstep/bench.h>

/* Times measured on one device, in seconds. */
struct lk_scale_costs {
    int shards; /* of a batch */
    int buckets;
    double bytes[LK_MOST_BUCKETS]; /* of a bucket's sum over any subtree */
    /* ready[n][b]: from the start of a micro-batch of n shards (upload, forward, backward)
     * until bucket b's sums over subtrees are ready; 0: not measured. */
    double ready[LK_MOST_SHARDS + 1][LK_MOST_BUCKETS];
    /* The range of the middle half of the measured times of a micro-batch, in parts of
     * the median. */
    double spread[LK_MOST_SHARDS + 1];
    /* Of such a step, with its update: seconds of the host's cores, of which the device may be
     * some. */
    double cores_time[LK_MOST_SHARDS + 1];
    double update[LK_MOST_BUCKETS];
    double fixed;   /* of a step: the host's work between the last bucket and the next start */
    double add_gbs; /* speed of adding on the host, 1e9 bytes read and written a second */
};

struct lk_scale_links {
    double link_gbs; /* between each device and its host, in each direction */
    int hosts;
    double net_gbs; /* between hosts */
};

/* A moment of the step, and what the time before it was spent on along the critical path:
 * seconds[] adds up to `at`. */
struct lk_scale_moment {
    double at, seconds[LK_SCALE_LIMITS];
};

/* Marks the numbers of shards whose times a simulation with that many devices needs. */
void lk_scale_want(int shards, int devices, bool wanted[LK_MOST_SHARDS + 1]);

/* Simulates a step and returns its end. With more devices than shards some are idle. One device
 * alone does not need its host: it adds its shards' sums and updates by itself. */
struct lk_scale_moment lk_scale_simulate(const struct lk_scale_costs *costs,
                                         const struct lk_scale_links *wires, int devices);

/* What most of the step's time was spent on; "too few shards" where one device less would have
 * been as fast, since there are not enough shards. */
enum lk_scale_limit lk_scale_limit_of(const struct lk_scale_moment *end, int shards,
                                      int devices);

/* The largest spread of the micro-batches of so many devices. */
double lk_scale_spread(const struct lk_scale_costs *costs, int devices);

/* What the first `count` of so many devices take of the host's cores for a step: seconds. */
double lk_scale_cores_time(const struct lk_scale_costs *costs, int devices, int count);

/* What to measure: training on batches of `batch` samples in `shards` shards. */
struct lk_scale_subject {
    const char *model;                  /* a zoo name or a file */
    const struct lk_settings *settings; /* in its place; NULL: none */
    int64_t batch;
    int shards;
    bool wanted[LK_MOST_SHARDS + 1]; /* numbers of shards */
};

/* As training with these settings (NULL: as usual) would have it: whether activations are
 * halves, images lie in plane tiles. */
struct lk_model;
struct lk_loss_scale lk_scale_loss_scale(const struct lk_settings *settings);
bool lk_scale_asks_planes(const struct lk_settings *settings, struct lk_model *model,
                          int64_t batch, int shards);

/* Measures costs: medians of at least 3 steps, for about `seconds`, with each wanted number of
 * shards in turns. Does not set add_gbs. Waits. fails: as training does */
LK_MUST_CHECK enum lk_status lk_scale_measure(struct lk_device *device,
                                              const struct lk_scale_subject *subject,
                                              double seconds, struct lk_scale_costs *costs);

/* What reading a sample takes of the host: the time of its cores, added up; and until it is
 * there where nothing else is at work. Seconds. Both 0: samples wait in memory. */
struct lk_scale_reading {
    double cores_time, alone;
    int cores; /* of the host */
};

/* Reads batches of the settings' data as training would, for some seconds. Without data, or
 * settings, nothing is read. fails: as training does */
LK_MUST_CHECK enum lk_status lk_scale_measure_reading(const struct lk_settings *settings,
                                                      int64_t batch,
                                                      struct lk_scale_reading *reading);

/* What reading takes where it has all cores. */
double lk_scale_read_alone(const struct lk_scale_reading *reading, double samples);

/* A step of `step` seconds whose next samples are read meanwhile. Where devices are the host's
 * own cores, `device_cores` of them, these are busy for `busy` core-seconds, and all of it has
 * to fit into what the cores have; else both are 0. */
double lk_scale_read_beside(const struct lk_scale_reading *reading, double samples, double step,
                            double busy, double device_cores);

#endif
