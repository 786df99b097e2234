/* Sums over the lanes of a batch tile by shuffles within sub-groups, where a device has them.
 * Floor 1. Private to src/device. */
#ifndef LK_DEVICE_SUBGROUPS_H
#define LK_DEVICE_SUBGROUPS_H

#include "device/opencl.h"

/* Lets the device's programs take the first way of those its extensions promise that builds and
 * sums as local memory does, to the bit; info.subgroups names it. Where none does, on
 * CPUs unless $LOCKSTEP_SUBGROUPS is 1, and where it is 0, all stays as it was. Waits. */
void lk_subgroups_choose(struct lk_device *device);

/* Tries options of lib/sum.cl, and keeps them where that is so. */
bool lk_subgroups_try(struct lk_device *device, const char *options);

#endif
