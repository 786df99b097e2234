/* Times work on a device in rounds that follow one another without a pause: threads that wake
 * up for each round may share a core of the host until its scheduler moves them apart, some
 * milliseconds later, and the work would seem to take twice as long. Floor 5. */
#ifndef LK_GRAPH_TUNE_ROUNDS_H
#define LK_GRAPH_TUNE_ROUNDS_H

#include "device/device.h"

enum { LK_MOST_ROUNDS = 5 };

struct lk_rounds {
    struct lk_device *device;
    struct lk_timestamp *marks[LK_MOST_ROUNDS + 1]; /* where rounds begin and end */
};

/* lk_rounds_clear() in any case. fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_rounds_create(struct lk_device *device,
                                              struct lk_rounds *rounds);
void lk_rounds_clear(struct lk_rounds *rounds);

/* `count` rounds, in each of which the work is enqueued so many times. fails: as `enqueue` */
LK_MUST_CHECK enum lk_status lk_rounds_enqueue(struct lk_rounds *rounds, int count, int turns,
                                               enum lk_status (*enqueue)(void *context),
                                               void *context);

/* What a turn of each round took, in seconds, once the device is done; `all`: all of them, for
 * drivers without times. */
void lk_rounds_read(const struct lk_rounds *rounds, int count, int turns, double all,
                    double *seconds);

#endif
