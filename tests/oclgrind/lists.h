/* Row lists: gradients of tables. Part of the program that Oclgrind runs. */
#ifndef TESTS_OCLGRIND_LISTS_H
#define TESTS_OCLGRIND_LISTS_H

#include "device/device.h"

/* fails: as replicas and optimizers do */
enum lk_status run_lists(struct lk_device *device);

#endif
