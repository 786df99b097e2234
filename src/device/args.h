/* What the numbers of a struct are that a kernel takes by value: see LK_STRUCT() of
 * device/device.h. Floor 1. C and OpenCL C read it, and the structs that are made of it. */
#ifndef LK_DEVICE_ARGS_H
#define LK_DEVICE_ARGS_H

#ifdef __OPENCL_VERSION__
typedef int lk_int;
#else
#include <stdint.h>
typedef int64_t
    lk_int; /* a count, as everywhere in C: only what a kernel gets has to be small */
#endif

#endif
