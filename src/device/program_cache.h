/* Built programs on disk, for platforms that keep none themselves. Floor 1. */
#ifndef LK_DEVICE_PROGRAM_CACHE_H
#define LK_DEVICE_PROGRAM_CACHE_H

#include "device/kernel.h"

/* Whether this platform's binaries are ours to keep; LOCKSTEP_PROGRAM_CACHE=1 or 0 decides. */
bool lk_cache_is_wanted(const struct lk_device *device);

/* The program built from a kept binary; NULL where there is none or it does not fit. */
cl_program lk_cache_load(struct lk_device *device, const struct lk_program *program);

/* Keeps the program's binary where the platform does not; best effort, silent. */
void lk_cache_save(struct lk_device *device, const struct lk_program *program);

#endif
