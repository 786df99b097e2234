/* Sums over the lanes of a batch tile by shuffles within sub-groups, where a device has them.
 * Floor 1. Private to src/device. */
#ifndef LK_DEVICE_SUBGROUPS_H
#define LK_DEVICE_SUBGROUPS_H

#include "device/opencl.h"

/* Tries the shuffles of the device's extensions and takes the first that build and give the
 * same bits as sums through local memory; info.subgroups names the extension. Takes none on
 * CPUs unless $LOCKSTEP_SUBGROUPS is 1, nor anywhere if it is 0. Waits. */
void lk_subgroups_choose(struct lk_device *device);

/* Tries one set of options of cl/lib/sum.cl and keeps it if its bits are right. Returns whether
 * they are. */
bool lk_subgroups_try(struct lk_device *device, const char *options);

#endif
