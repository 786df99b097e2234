/* How long a device of a group has worked in a step: the stretches of its queue between which
 * it may have waited for what had to cross. Floor 5. */
#ifndef LK_GRAPH_STRETCHES_H
#define LK_GRAPH_STRETCHES_H

#include "device/device.h"

/* {0} and a device is an empty list. */
struct lk_stretches {
    struct lk_device *device;
    struct lk_timestamp **marks; /* [2 room]: the begin and the end of each */
    int count, room;
};

/* Puts marks around what is enqueued between the two calls. fails: LK_E_MEMORY, LK_E_DEVICE */
LK_MUST_CHECK enum lk_status lk_stretch_begin(struct lk_stretches *stretches);
LK_MUST_CHECK enum lk_status lk_stretch_end(struct lk_stretches *stretches);
void lk_stretches_clear(struct lk_stretches *stretches);

/* Seconds at work, and from the first begin to the last end, of the stretches that the device
 * is done with; 0 where it tells no times. */
struct lk_stretched {
    double busy, span;
};
struct lk_stretched lk_stretches_sum(const struct lk_stretches *stretches);

#endif
