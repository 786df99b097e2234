/* Training steps on one device: forward, backward, sums over shards, update. Floor 7. A device
 * alone enqueues a whole step at once. One of several devices computes a run of the batch's
 * shards, and updates by sums that the host has added. Knows no thread and no other device. */
#ifndef LK_TEAM_STEPPER_STEPPER_H
#define LK_TEAM_STEPPER_STEPPER_H

#include "optim/optimizer.h"
#include "team/stepper/exchange.h"
#include "team/stepper/feed.h"

struct lk_stepper;

struct lk_stepper_config {
    struct lk_device *device;
    struct lk_device *const *group; /* the devices of a group, the first of which is `device`,
                                     * for a graph that is divided among them */
    int places;                     /* so many; 0: no group */
    int in_flight;                  /* micro-batches that are on their way through a group */
    const struct lk_node *loss;
    const struct lk_feed *feed; /* of inputs; outlives it, may be filled in before steps */
    int64_t batch;              /* of all devices together */
    int shards;
    int most_shards; /* shards computed at a time, where devices share a batch; 0: alone */
    bool keeps_sums; /* not alone, but always the only one: lk_exchange_config */
    const struct lk_transform *transform; /* of uint8 inputs; NULL: they stay as they are */
    enum lk_dtype real;
    struct lk_loss_scale loss_scale; /* of activations that are halves; 0: they are not */
    uint64_t seed;
    const char *optimizer, *optimizer_options; /* "adam", "beta_1=0.9" */
    struct lk_clip clip;                       /* as the optimizer takes both */
    double ema;
    struct lk_choices *choices;       /* as a replica takes them */
    bool lists_rows;                  /* gradients of large tables may be tensor/row_list.h's */
    enum lk_replica_part part;        /* ALL; HEAD: the feed has features for the frozen part */
    enum lk_recompute_mode recompute; /* as a replica takes it */
    bool few_samples;                 /* likewise */
};

/* What its replica, or those of a group, are made by; nothing is planned yet.
 * fails: LK_E_ARGUMENT, the optimizer */
LK_MUST_CHECK enum lk_status lk_stepper_plan(const struct lk_stepper_config *config,
                                             struct lk_replica_config *replica);

/* Plans and picks kernels. fails: as lk_replica_create() and lk_optimizer_create(); as
 * lk_group_create(); LK_E_ARGUMENT what a group cannot: a head alone */
LK_MUST_CHECK enum lk_status lk_stepper_create(const struct lk_stepper_config *config,
                                               struct lk_stepper **stepper);

/* Builds the kernels, allocates, sets the weights from the seed. */
LK_MUST_CHECK enum lk_status lk_stepper_build(struct lk_stepper *stepper);
void lk_stepper_destroy(struct lk_stepper *stepper);

/* The devices of a stepper are 1 or those of a group; each has a replica and an optimizer of
 * the parameters that are not elsewhere. Those of the only one, or the first. */
int lk_stepper_places(const struct lk_stepper *stepper);
struct lk_replica *lk_stepper_replica_at(struct lk_stepper *stepper, int place);
struct lk_optimizer *lk_stepper_optimizer_at(struct lk_stepper *stepper, int place);
struct lk_replica *lk_stepper_replica(struct lk_stepper *stepper);
struct lk_optimizer *lk_stepper_optimizer(struct lk_stepper *stepper);

/* As lk_replica_watch(), of all that compute its steps. */
struct lk_watch;
void lk_stepper_watch(struct lk_stepper *stepper, struct lk_watch *watch);

/* Means of a step: the loss with the penalties of weights, the share of right answers. */
struct lk_step_metrics {
    double loss, accuracy;
};

/* Of the sums of all shards' metrics, [LK_PAD] reals, over so many samples. */
struct lk_step_metrics lk_step_metrics_read(const void *sums, enum lk_dtype real,
                                            int64_t samples);

/* --- alone ----------------------------------------------------------------------------- */

/* Means of a finished step, and where the device's time went. */
struct lk_step_result {
    double loss, accuracy;
    double transfer_ms;           /* the rest of the upload, for which kernels had to wait */
    double compute_ms, reduce_ms; /* forward and backward; sums over shards and update */
    double ended; /* seconds of the device's clock, which counts from anywhere */
};

/* Reads samples of a batch into a slot. fails: as lk_feed_read() */
LK_MUST_CHECK enum lk_status lk_stepper_read(struct lk_stepper *stepper, int slot,
                                             struct lk_batches *batches,
                                             struct lk_batch_range part);

/* Enqueues step number `step` (1 for the first) on the slot's first `samples` samples. */
LK_MUST_CHECK enum lk_status lk_stepper_enqueue(struct lk_stepper *stepper, int slot,
                                                int64_t samples, double lr, int64_t step);

/* Waits for the step that was enqueued with the slot. fails: LK_E_DEVICE */
LK_MUST_CHECK enum lk_status lk_stepper_wait(struct lk_stepper *stepper, int slot,
                                             struct lk_step_result *result);

/* --- one of several -------------------------------------------------------------------- */

/* A share of a step: the shards of `run`, of a batch of `samples` samples. */
struct lk_step_share {
    int64_t step; /* 1 for the first: batch step - 1 */
    int64_t samples;
    struct lk_shard_run run; /* count 0: the device only updates */
};

/* Reads the share's samples, unless it was prefetched, enqueues its micro-batches and hands
 * each bucket to the exchange. Waits if the last upload from a slot is still on its way. */
LK_MUST_CHECK enum lk_status lk_stepper_begin(struct lk_stepper *stepper,
                                              struct lk_batches *batches,
                                              const struct lk_step_share *share);

/* Reads the samples of a share's first micro-batch and uploads them while the device still
 * computes another step, so that lk_stepper_begin() need not. Of a group those of one more
 * micro-batch at each call, as many as are on their way at a time. */
LK_MUST_CHECK enum lk_status lk_stepper_prefetch(struct lk_stepper *stepper,
                                                 struct lk_batches *batches,
                                                 const struct lk_step_share *share);

/* Tells the share that will be begun next, as far as is known; false: none. */
struct lk_next_share {
    bool (*get)(void *context, struct lk_step_share *share);
    void *context;
};

/* Where a share is begun on a group, which takes about as long as the share itself, its samples
 * are prefetched meanwhile. Until it is set there is none. */
void lk_stepper_set_next(struct lk_stepper *stepper, const struct lk_next_share *next);

struct lk_exchange *lk_stepper_exchange(struct lk_stepper *stepper);

/* Updates all parameters by the sums that the exchange has been given; with `weights` their
 * checksum is made. Enqueues. */
LK_MUST_CHECK enum lk_status lk_stepper_update(struct lk_stepper *stepper, int64_t samples,
                                               double lr, int64_t step, bool weights);

/* Copies the sums that lk_stepper_update() is about to take, to be looked at after the step.
 * fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_stepper_keep_gradient(struct lk_stepper *stepper, int64_t step);

/* The gradient of a place's parameter in a step, the last one: sum [param.count] over the
 * samples of the batch, times the scale of the loss. *is_there false: it was not kept, is a row
 * list, or is not trained. A device that is alone has it without keeping it. */
LK_MUST_CHECK enum lk_status lk_stepper_read_gradient(struct lk_stepper *stepper, int64_t step,
                                                      const struct lk_param *param, int place,
                                                      float *sum, bool *is_there);

/* A copy of the training state in host memory, which is made while the next step runs: of each
 * place its parameters and its optimizer's state as they lie on the device. {0}: none. */
struct lk_staging;
struct lk_state_copy {
    struct lk_staging *weights[LK_MOST_PLACES], *state[LK_MOST_PLACES];
};

/* Enqueues the copy behind the last step, with memory that is allocated at the first time;
 * later updates wait for it. fails: LK_E_DEVICE_MEMORY */
LK_MUST_CHECK enum lk_status lk_stepper_enqueue_copy(struct lk_stepper *stepper,
                                                     struct lk_state_copy *copy);
LK_MUST_CHECK enum lk_status lk_state_copy_wait(const struct lk_state_copy *copy);
void lk_state_copy_clear(struct lk_state_copy *copy);

/* As lk_group_check() of the last share; without a group nothing crosses. */
LK_MUST_CHECK enum lk_status lk_stepper_check_crossings(struct lk_stepper *stepper,
                                                        int *wrong_at);

/* What the last share took, known once its buckets have come: reading on the host, the rest of
 * the upload for which kernels had to wait, kernels. */
struct lk_share_times {
    double input_ms, transfer_ms, compute_ms;
    int places; /* of a group; 0: none */
    struct lk_place_times of_place[LK_MOST_PLACES];
};
struct lk_share_times lk_stepper_share_times(const struct lk_stepper *stepper);

#endif
