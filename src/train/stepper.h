/* One training step on one device: forward, backward, sums over shards, update. Floor 6. */
#ifndef LK_TRAIN_STEPPER_H
#define LK_TRAIN_STEPPER_H

#include "graph/replica.h"
#include "optim/optimizer.h"

struct lk_stepper;

struct lk_stepper_config {
    struct lk_device *device;
    const struct lk_node *images, *labels, *loss;
    int64_t batch;
    int shards;
    enum lk_dtype real;
    uint64_t seed;
    const char *optimizer, *optimizer_options; /* "adam", "beta_1=0.9" */
};

/* Means of a finished step, and where the device's time went. */
struct lk_step_result {
    double loss, accuracy;
    double transfer_ms, compute_ms, reduce_ms; /* upload; kernels; shard sums and update */
};

/* Plans and picks kernels. fails: as lk_replica_create() and lk_optimizer_create() */
LK_MUST_CHECK enum lk_status lk_stepper_create(const struct lk_stepper_config *config,
                                               struct lk_stepper **stepper);

/* Builds the kernels, allocates, sets the weights from the seed. */
LK_MUST_CHECK enum lk_status lk_stepper_build(struct lk_stepper *stepper);
void lk_stepper_destroy(struct lk_stepper *stepper);

struct lk_replica *lk_stepper_replica(struct lk_stepper *stepper);
struct lk_optimizer *lk_stepper_optimizer(struct lk_stepper *stepper);

/* Host memory of slot 0 or 1 for a batch: uint8 [batch][h][w][c], int32 [batch]. May be filled
 * once lk_stepper_wait() has returned for the step that used the slot before. */
uint8_t *lk_stepper_images(struct lk_stepper *stepper, int slot);
int32_t *lk_stepper_labels(struct lk_stepper *stepper, int slot);

/* Enqueues step number `step` (1 for the first) on the slot's first `samples` samples. */
LK_MUST_CHECK enum lk_status lk_stepper_enqueue(struct lk_stepper *stepper, int slot,
                                                int64_t samples, double lr, int64_t step);

/* Waits for the step that was enqueued with the slot. fails: LK_E_DEVICE */
LK_MUST_CHECK enum lk_status lk_stepper_wait(struct lk_stepper *stepper, int slot,
                                             struct lk_step_result *result);

#endif
