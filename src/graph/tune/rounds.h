/* Times work on a device in rounds that follow one another without a pause: threads that wake
 * up for each round may share a core of the host until its scheduler moves them apart, some
 * milliseconds later, and the work would seem to take twice as long. Floor 5. */
#ifndef LK_GRAPH_TUNE_ROUNDS_H
#define LK_GRAPH_TUNE_ROUNDS_H

#include "device/device.h"

enum { LK_MOST_ROUNDS = 5 };

struct lk_rounds {
    struct lk_device *device;
    enum lk_status (*enqueue)(void *context); /* the work, once: a turn */
    void *context;
    struct lk_timestamp *marks[LK_MOST_ROUNDS + 1]; /* where rounds begin and end */
};

/* lk_rounds_clear() in any case. fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_rounds_create(struct lk_device *device,
                                              enum lk_status (*enqueue)(void *context),
                                              void *context, struct lk_rounds *rounds);
void lk_rounds_clear(struct lk_rounds *rounds);

/* Runs `count` rounds, at most LK_MOST_ROUNDS, of `turns` turns each, and waits.
 * seconds[count]: a turn of each round. *all: seconds by the host's clock, of which the rounds
 * get equal parts if the driver's times cannot be right. fails: as the work and the device; it
 * has nothing left to do then, too */
LK_MUST_CHECK enum lk_status lk_rounds_run(struct lk_rounds *rounds, int count, int turns,
                                           double *seconds, double *all);

/* What a turn of each round took by marks[count + 1], in seconds, or by `all`. */
void lk_rounds_divide(const double *marks, int count, int turns, double all, double *seconds);

#endif
