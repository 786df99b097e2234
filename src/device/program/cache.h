/* Compiled programs on disk, for platforms that do not cache them themselves. Floor 1. */
#ifndef LK_DEVICE_PROGRAM_CACHE_H
#define LK_DEVICE_PROGRAM_CACHE_H

#include "device/program/kernel.h"

/* Whether this platform's programs are cached here: where the platform does not do it, unless
 * LOCKSTEP_PROGRAM_CACHE=1 or 0 says otherwise. */
bool lk_cache_is_wanted(const struct lk_device *device);

/* The program made of its cached binary; NULL: there is none, or the driver refuses it. */
cl_program lk_cache_load(struct lk_device *device, const struct lk_program *program);

/* Writes the program's binary to the cache; failures are ignored, since it can be built again.
 */
void lk_cache_save(struct lk_device *device, const struct lk_program *program);

#endif
