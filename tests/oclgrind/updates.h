/* Updates of tracked parameters, those with factors, limits and averages, and lazy ones. Part
 * of the program that Oclgrind runs. */
#ifndef TESTS_OCLGRIND_UPDATES_H
#define TESTS_OCLGRIND_UPDATES_H

#include "device/device.h"
#include <lockstep/tensor.h>

typedef enum lk_status (*filler)(const struct lk_buffer *buffer, enum lk_dtype dtype);

/* fill: puts numbers into a buffer. fails: as optimizers do */
enum lk_status run_updates(struct lk_device *device, filler fill);

#endif
