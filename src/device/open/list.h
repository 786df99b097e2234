/* Lists of devices as users write them: "0,1", "0/2", "gpu", "0+1,2+3". Floor 1. Private to
 * src/device. */
#ifndef LK_DEVICE_OPEN_LIST_H
#define LK_DEVICE_OPEN_LIST_H

#include "device/opencl.h"

/* Device number `index`, or sub-device number `sub` of `subs` equal ones that it is divided
 * into. */
struct lk_device_entry {
    int index, sub, subs;
};

/* All devices of this machine, ids[known], and those that a list names, entries[count], in its
 * order. */
struct lk_device_list {
    cl_device_id ids[LK_MOST_DEVICES];
    int known, count;
    int each; /* devices in each group, where the list has groups ("+"); else 0 */
    struct lk_device_entry entries[LK_MOST_DEVICES];
};

/* NULL or "": $LOCKSTEP_DEVICE, else the first GPU, else the first device.
 * fails: LK_E_ARGUMENT, LK_E_NO_DEVICE */
LK_MUST_CHECK enum lk_status lk_device_list_parse(const char *spec,
                                                  struct lk_device_list *list);

#endif
