/* What the numbers of a struct are that a kernel takes by value: see LK_STRUCT() of
 * device/device.h. Floor 1. C and OpenCL C read it, and the structs that are made of it. In C
 * they are counts like any other; only what a kernel gets has to be small. */
#ifndef LK_DEVICE_ARGS_H
#define LK_DEVICE_ARGS_H

/* A platform defines the first; a compiler that is used without one defines only the second. */
#if defined(__OPENCL_VERSION__) || defined(__OPENCL_C_VERSION__)
typedef int lk_int;
#else
#include <stdint.h>
typedef int64_t lk_int;
#endif

#endif
