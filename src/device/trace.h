/* What a device's queues ran and when, from OpenCL's profiling of commands. Floor 1. Knows
 * training steps as numbers that the caller gives, and no file. */
#ifndef LK_DEVICE_TRACE_H
#define LK_DEVICE_TRACE_H

#include "device/device.h"

enum lk_trace_queue { LK_TRACE_COMPUTE, LK_TRACE_TRANSFER, LK_TRACE_UPLOAD };

/* A command that has run; seconds are of lk_seconds()'s clock. */
struct lk_traced {
    char name[64]; /* the kernel's, or read, write, fill, copy, map, unmap */
    enum lk_trace_queue queue;
    int64_t step; /* that lk_trace_step() gave when it was enqueued */
    size_t bytes; /* moved; 0: none, as kernels and maps */
    double queued, start, end;
};

/* Makes room for `most` commands that were not taken yet, and compares the clocks of device and
 * host (waits for the device); nothing is kept before lk_trace_step(). No other thread may use
 * the device meanwhile. fails: LK_E_DEVICE, LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_trace_begin(struct lk_device *device, int most);

/* What is enqueued from now on belongs to `step`; 0: is not kept. Any thread. Nothing where
 * lk_trace_begin() was not called. */
void lk_trace_step(struct lk_device *device, int64_t step);

/* Hands over up to `most` commands that have run, in the order in which they were enqueued, up
 * to the first that has not; does not wait. Returns how many. Adds to `dropped` the commands
 * that found no room, failed or have no times. Any thread. */
int lk_trace_take(struct lk_device *device, struct lk_traced *to, int most, int64_t *dropped);

/* Forgets all; lk_device_close() does it too. */
void lk_trace_end(struct lk_device *device);

#endif
