/* What LOCKSTEP_FAULT asks for: which call of which OpenCL function goes wrong on which device,
 * and how. Devices are numbered as clCreateContext was called. Knows names and numbers, no
 * OpenCL.
 *
 *   call=clEnqueueNDRangeKernel,nth=37,device=1,kind=error,code=-5;call=cl*,kind=delay,ms=5
 *
 * call: a name or a pattern of names (*, ?); nth: from which such call on it strikes, from 1
 * (1); times: how many it strikes, 0: all (1); device: without it, calls of all devices
 * together; kernel: launches of those whose name has this pattern, no others. */
#ifndef TESTS_FAULT_FAULTS_H
#define TESTS_FAULT_FAULTS_H

#include <stdbool.h>
#include <stddef.h>

enum { MOST_DEVICES = 2048, ANY_DEVICE = -1 };

/* The functions that can go wrong. */
#define CALLS(X)                                                                               \
    X(clCreateContext)                                                                         \
    X(clCreateCommandQueue)                                                                    \
    X(clCreateBuffer)                                                                          \
    X(clCreateSubBuffer)                                                                       \
    X(clCreateProgramWithSource)                                                               \
    X(clCreateProgramWithBinary)                                                               \
    X(clBuildProgram)                                                                          \
    X(clCreateKernel)                                                                          \
    X(clSetKernelArg)                                                                          \
    X(clEnqueueNDRangeKernel)                                                                  \
    X(clEnqueueReadBuffer)                                                                     \
    X(clEnqueueWriteBuffer)                                                                    \
    X(clEnqueueCopyBuffer)                                                                     \
    X(clEnqueueFillBuffer)                                                                     \
    X(clEnqueueMapBuffer)                                                                      \
    X(clEnqueueUnmapMemObject)                                                                 \
    X(clEnqueueMarkerWithWaitList)                                                             \
    X(clEnqueueBarrierWithWaitList)                                                            \
    X(clFlush)                                                                                 \
    X(clFinish)                                                                                \
    X(clWaitForEvents)                                                                         \
    X(clGetEventInfo)                                                                          \
    X(clGetEventProfilingInfo)

enum call {
#define CALL(name) CALL_##name,
    CALLS(CALL)
#undef CALL
        CALL_COUNT
};

enum fault_kind {
    FAULT_ERROR,       /* the call does nothing and returns `code` */
    FAULT_HANG,        /* the call never returns */
    FAULT_HANG_EVENT,  /* the command, and all behind it in its queue, never end */
    FAULT_EVENT_ERROR, /* the command runs; its event, or all later ones, report `code` */
    FAULT_CORRUPT,     /* one bit of what is transferred changes; of a launch, a quarter of
                          the buffer in argument `arg` becomes ones when the kernel has run */
    FAULT_NAN,   /* one float of what is transferred becomes NaN; of a launch, all that the
                    buffer in argument `arg` has when the kernel has run */
    FAULT_DELAY, /* the call takes `ms` longer */
};

struct fault {
    char call[64], kernel[64];
    int device, arg;
    long nth, times, seen, struck;
    enum fault_kind kind;
    int code;       /* a CL_ error (-5) */
    bool is_sticky; /* later calls on that device all fail with `code`: it is lost */
    long ms, bit;   /* of a delay (100); of the 32-bit word that changes (30) */
    long bytes;     /* it passes by transfers and buffers of fewer bytes (0) */
};

/* Reads LOCKSTEP_FAULT and LOCKSTEP_FAULT_COUNT; says what is wrong on stderr and ends the
 * program with status 99 where they cannot be read. */
void faults_read(void);

/* Counts the call and returns the fault that strikes it, or NULL; says on stderr that it does
 * so for the first time.
 * `bytes`: what a transfer carries, 0 for other calls. kernel: that is launched, or NULL. Any
 * thread. */
const struct fault *fault_find(enum call call, int device, size_t bytes, const char *kernel);

/* The code that every call on a lost device returns; 0: it is not lost. */
int fault_lost(int device);

#endif
