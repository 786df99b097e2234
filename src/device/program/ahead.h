/* Kernels compiled ahead by processes of their own, for PoCL: it compiles a kernel when it
 * first runs, one at a time in a process, into its cache on disk. While a training process goes
 * through its first step, others fill that cache from the other end. Floor 1. */
#ifndef LK_DEVICE_PROGRAM_AHEAD_H
#define LK_DEVICE_PROGRAM_AHEAD_H

#include "device/opencl.h"

/* Starts processes of lk_device_set_compiler() that compile the device's announced kernels, the
 * last first; `options` and `source` are those of the unity build that was just made of them.
 * Does nothing where no program was set, where there is one core, where PoCL is not of the
 * version that this was seen to work with, or while such processes run already. Failures are
 * ignored: a kernel that nobody compiled is compiled when it first runs. */
void lk_ahead_start(const struct lk_device *device, const char *options, const char *source);

/* Ends the processes that were started for the device. */
void lk_ahead_end(const struct lk_device *device);

#endif
