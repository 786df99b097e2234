/* Work-arounds for faults of PoCL, the OpenCL implementation for CPUs. Floor 1. Private to
 * src/device. */
#ifndef LK_DEVICE_POCL_H
#define LK_DEVICE_POCL_H

#include "device/opencl.h"

bool lk_pocl_is(const char *platform);

/* A context enters a group of at most two and leaves it when it is closed. Programs of
 * different groups must have different build options, which lk_pocl_options() gives ("" for
 * group 0). */
int lk_pocl_enter(void);
void lk_pocl_leave(int group);
const char *lk_pocl_options(int group, char *text, size_t bytes);

/* More build options of a unity build, "" or with a blank in front, with which it takes less
 * time. A version of PoCL that does not know them fails the build. */
const char *lk_pocl_unity_options(const struct lk_device_info *info);

/* Whether PoCL compiles a kernel for good on a thread of its own when it first runs, and keeps
 * it in a cache on disk where other processes find it. */
bool lk_pocl_compiles_late(const struct lk_device_info *info);

/* clFinish(); then waits, for at most a second, until PoCL's threads have released the queue's
 * last command. */
void lk_pocl_finish(cl_command_queue queue);

/* Asks the system for huge pages for a new buffer that is large enough to hold some; a failure
 * is ignored. Waits. */
void lk_pocl_advise(cl_command_queue queue, cl_mem mem, size_t bytes);

/* clEnqueueFillBuffer() of a large buffer on `queue`, by two threads: the other half runs on
 * `other`. */
cl_int lk_pocl_enqueue_fill(cl_command_queue queue, cl_command_queue other, cl_mem mem,
                            uint8_t byte, size_t bytes);

#endif
