/* Parts "networks" and "endings" of tests/oclgrind/kernels: images in plane tiles, on CPUs. */
#ifndef LK_TESTS_OCLGRIND_PLANES_H
#define LK_TESTS_OCLGRIND_PLANES_H

#include "device/device.h"

/* On GPUs the network is computed in batch tiles. */
enum lk_status run_planes(struct lk_device *device);

/* Part "endings": the same network by products of GPUs, which leave it to another kernel what
 * convolutions have taken over. */
enum lk_status run_endings(struct lk_device *device);

#endif
