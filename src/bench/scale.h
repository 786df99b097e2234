/* A step that devices share, simulated bucket by bucket from what one of them takes. Floor 9.
 *
 * After the step's fixed cost all devices begin. Each has the sums of bucket b ready at the
 * time that was measured for as many shards as it has; its link carries them as soon as they
 * are ready and the bucket before is through. The host adds a bucket when all its devices'
 * sums are there and the bucket before is added; then hosts sum it among themselves
 * (reduce-scatter and allgather: 2 (H - 1) / H of its bytes). When the last bucket is summed,
 * the sums go back over the links, and a device updates each as it comes.
 * Knows no device, no clock and no model. */
#ifndef LK_BENCH_SCALE_H
#define LK_BENCH_SCALE_H

#include "graph/replica.h"
#include "mirror/tree.h"
#include <lockstep/bench.h>

/* What was measured; seconds. */
struct lk_scale_costs {
    int shards; /* of a batch */
    int buckets;
    double bytes[LK_MOST_BUCKETS]; /* of a bucket's sum over any subtree */
    /* From the start of a pass over n shards to bucket b's sums over subtrees: upload,
     * forward and backward; 0: was not measured. */
    double ready[LK_MOST_SHARDS + 1][LK_MOST_BUCKETS];
    double update[LK_MOST_BUCKETS];
    double fixed;   /* a step: the host between the last arrival and the next start */
    double add_gbs; /* bytes read and written */
};

struct lk_scale_wires {
    double link_gbs; /* between each device and its host, either way */
    int hosts;
    double net_gbs; /* between hosts */
};

/* A moment of the step, and on what the time before it went, along the chain of events that
 * led to it: seconds[] adds up to `at`. */
struct lk_scale_moment {
    double at, seconds[LK_SCALE_LIMITS];
};

/* Marks the numbers of shards whose times a simulation with that many devices reads. */
void lk_scale_want(int shards, int devices, bool wanted[LK_MOST_SHARDS + 1]);

/* The end of a step. More devices than shards: the others idle. One alone has no need of its
 * host: it adds up and updates itself. */
struct lk_scale_moment lk_scale_simulate(const struct lk_scale_costs *costs,
                                         const struct lk_scale_wires *wires, int devices);

/* What most of the step's time went to; "too few shards" where a device less would have been as
 * fast for want of shards. */
enum lk_scale_limit lk_scale_limit_of(const struct lk_scale_moment *end, int shards,
                                      int devices);

/* What is measured: batches of `batch` samples in `shards` shards. */
struct lk_scale_subject {
    const char *model; /* a zoo name or a file */
    int64_t batch;
    int shards;
    bool wanted[LK_MOST_SHARDS + 1]; /* numbers of shards */
};

/* Takes steps of every wanted number of shards in turn, about `seconds` each and at least 3:
 * medians. Leaves add_gbs alone. Waits. fails: as training does */
LK_MUST_CHECK enum lk_status lk_scale_measure(struct lk_device *device,
                                              const struct lk_scale_subject *subject,
                                              double seconds, struct lk_scale_costs *costs);

#endif
