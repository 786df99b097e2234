/* The inside of a stepper, for the files that make it up. Floor 7. */
#ifndef LK_TEAM_STEPPER_INTERNAL_H
#define LK_TEAM_STEPPER_INTERNAL_H

#include "device/staging.h"
#include "mirror/shards.h"
#include "team/stepper/stepper.h"

/* Points in a step whose times are taken. */
enum { LK_AT_START, LK_AT_LOADED, LK_AT_BACKWARD, LK_AT_END, LK_STEP_TIMESTAMPS };

enum { LK_STEP_METRICS = 32 }; /* three numbers, padded as shard sums want it */

struct lk_stepper_slot {
    struct lk_timestamp *marks[LK_STEP_TIMESTAMPS];
    struct lk_staging *metrics; /* real [32]: sums of loss and of correct answers, penalties */
    int64_t samples;
};

/* One of the devices of a stepper, with the part of the graph that it computes. */
struct lk_stepper_place {
    struct lk_device *device;
    struct lk_replica *replica;
    struct lk_optimizer *optimizer;
};

struct lk_stepper {
    struct lk_stepper_config config;
    struct lk_stepper_place
        places[LK_MOST_PLACES]; /* the first one is all of it but in a group */
    int place_count;
    struct lk_group *group; /* owns the replicas; NULL: one device */
    const struct lk_optimizer_info *infos[LK_MOST_PLACES]; /* of the optimizers of a group */
    bool penalizes;      /* some weights of a group have penalties */
    void *sums;          /* of blocks of all places' parameters; NULL: not wanted yet */
    bool spares_vectors; /* no weight decay for biases and parameters of normalization */
    bool is_lazy;        /* rows of a table without gradient stay as they are */

    /* of a device that is alone */
    struct lk_shard_sum *sum;
    struct lk_buffer *gradient;                /* summed over shards */
    struct lk_buffer *runs[LK_MOST_LISTS + 1]; /* its parts: lk_replica_gradient_run() */
    struct lk_buffer *metrics;
    struct lk_stepper_slot slots[LK_REPLICA_SLOTS];

    /* of one of several devices: slots[0].marks are those of its share */
    struct lk_exchange *exchange;
    int slot; /* that the next micro-batch is loaded from */
    struct lk_step_share fetched;
    float *kept[LK_MOST_PLACES]; /* the gradient of step kept_step, of each place's trained
                                  * parameters; NULL: none was kept */
    int64_t kept_step;           /* 0: none */
    struct lk_next_share next;
    struct lk_state_copy *copied; /* before the next update; NULL: none is on its way */
    int fetched_count; /* of its first micro-batches; without a group 1 at most, in `slot` */
    double fetched_ms, input_ms; /* the times of reading: of what was prefetched, of the last
                                  * share */
};

/* Puts the penalties of the weights, where they have any, to the metrics of the first shard at
 * work, or 0 if that is not the first one of the batch: they count once. */
LK_MUST_CHECK enum lk_status lk_stepper_enqueue_penalties(struct lk_stepper *stepper,
                                                          struct lk_buffer *metrics,
                                                          bool is_first);

/* Lets the updates that are enqueued next wait for the copy of the state, where one is on its
 * way. */
LK_MUST_CHECK enum lk_status lk_stepper_await_copy(struct lk_stepper *stepper);

/* --- of a group ------------------------------------------------------------------------- */

/* As the functions of stepper.h that are named likewise. */
LK_MUST_CHECK enum lk_status lk_stepper_group_create(struct lk_stepper *stepper,
                                                     const struct lk_replica_config *config);
LK_MUST_CHECK enum lk_status lk_stepper_group_begin(struct lk_stepper *stepper,
                                                    struct lk_batches *batches,
                                                    const struct lk_step_share *share,
                                                    int fetched);
LK_MUST_CHECK enum lk_status lk_stepper_group_prefetch(struct lk_stepper *stepper,
                                                       struct lk_batches *batches,
                                                       const struct lk_step_share *share,
                                                       int index);

/* Where the trained parameters of a replica are among those of its group, of which *all has the
 * count; as many entries as it has parameters, at most. Returns how many. */
int lk_stepper_placements(const struct lk_replica *replica, struct lk_param_placement *list,
                          int64_t *all);
bool lk_stepper_penalizes(const struct lk_stepper *stepper);

/* Give every place what only all of them together know: of the gradients that were looked at,
 * their norm and whether they are finite; the penalties of weights; the scale of the loss, as
 * the first one has it. Each does nothing where there is nothing of the kind. Wait. */
LK_MUST_CHECK enum lk_status lk_stepper_share_checks(struct lk_stepper *stepper);
LK_MUST_CHECK enum lk_status lk_stepper_share_penalties(struct lk_stepper *stepper);
LK_MUST_CHECK enum lk_status lk_stepper_share_scale(struct lk_stepper *stepper);

/* The samples of a micro-batch; fewer, or none, at the end of a short batch. */
struct lk_micro_batch lk_stepper_micro_batch(const struct lk_stepper *stepper,
                                             const struct lk_step_share *share,
                                             struct lk_shard_run at_once);

/* Reads the samples of a micro-batch once into slots of one or several replicas, and uploads
 * them. */
LK_MUST_CHECK enum lk_status lk_stepper_fetch(struct lk_stepper *stepper,
                                              const struct lk_feed_target *targets, int count,
                                              struct lk_batches *batches,
                                              const struct lk_step_share *share,
                                              const struct lk_micro_batch *micro_batch);

#endif
