/* Lists of devices: "0,1", "0/2", "gpu". Floor 1; device/ alone. */
#ifndef LK_DEVICE_LIST_H
#define LK_DEVICE_LIST_H

#include "device/opencl.h"

/* Device `index`, or part `part` of `parts` equal ones. */
struct lk_device_entry {
    int index, part, parts;
};

/* All devices that there are, and those that are wanted, in order. */
struct lk_device_list {
    cl_device_id ids[LK_MOST_DEVICES];
    int known, count;
    struct lk_device_entry entries[LK_MOST_DEVICES];
};

/* NULL or "": $LOCKSTEP_DEVICE, else the first GPU, else the first device.
 * fails: LK_E_ARGUMENT, LK_E_NO_DEVICE */
LK_MUST_CHECK enum lk_status lk_device_list_parse(const char *spec,
                                                  struct lk_device_list *list);

#endif
