/* Records what a device's queues ran and when, by OpenCL's profiling of commands. Floor 1. A
 * training step is only a number that the caller gives; knows no file. */
#ifndef LK_DEVICE_TRACE_H
#define LK_DEVICE_TRACE_H

#include "device/device.h"

enum lk_trace_queue { LK_TRACE_COMPUTE, LK_TRACE_TRANSFER, LK_TRACE_UPLOAD };

/* A command that has run; seconds are of lk_seconds()'s clock. */
struct lk_traced {
    char name[64]; /* the kernel's, or read, write, fill, copy, map, unmap */
    enum lk_trace_queue queue;
    int64_t step; /* as set by lk_trace_step() when the command was enqueued */
    size_t bytes; /* moved; 0: none, as kernels and maps */
    double queued, start, end;
};

/* Begins a trace with room for `most` commands that lk_trace_collect() has not taken yet. Waits
 * for the device to compare its clock with the host's; no other thread may use the device
 * meanwhile. Nothing is recorded before lk_trace_step(). fails: LK_E_DEVICE, LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_trace_begin(struct lk_device *device, int most);

/* Commands enqueued from now on belong to `step`; 0: they are not recorded. Any thread. Does
 * nothing without a trace. */
void lk_trace_step(struct lk_device *device, int64_t step);

/* Moves up to `most` commands to `to`, in the order in which they were enqueued, up to the
 * first that has not run yet; returns how many. Does not wait. Adds to *dropped the commands
 * that found no room, failed or have no times. Any thread. */
int lk_trace_collect(struct lk_device *device, struct lk_traced *to, int most,
                     int64_t *dropped);

/* Ends the trace and drops what is in it; lk_device_close() does so too. */
void lk_trace_end(struct lk_device *device);

#endif
