/* Part "networks" of tests/oclgrind/kernels: a model that computes one time step after the
 * other, each from what the steps before have left on the device. */
#ifndef LK_TESTS_OCLGRIND_GENERATION_H
#define LK_TESTS_OCLGRIND_GENERATION_H

#include "device/device.h"

enum lk_status run_generation(struct lk_device *device);

#endif
