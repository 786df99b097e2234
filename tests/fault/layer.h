/* The inside of an OpenCL layer: what its wrappers of OpenCL functions share. The ICD loader
 * loads it where OPENCL_LAYERS names it, and every OpenCL call of the process goes through it
 * (CL/cl_layer.h). */
#ifndef TESTS_FAULT_LAYER_H
#define TESTS_FAULT_LAYER_H

#include "fault/faults.h"
#include <CL/cl_layer.h>

extern const struct _cl_icd_dispatch *layer_target; /* what the wrappers call */

/* The wrappers of commands, to be put into the layer's dispatch table. */
void layer_add_commands(struct _cl_icd_dispatch *dispatch);

/* Numbers a context that clCreateContext made (NULL: failed to make) for `device`. */
void layer_add_context(cl_context context, int device);

/* Called first by each wrapper: counts the call, waits or hangs where that is asked for, and
 * returns the error that the wrapper is to return at once. `fault`: what the wrapper itself has
 * to do, an event's or data's fault; NULL: nothing. */
cl_int layer_enter(enum call call, int device, size_t bytes, const struct fault **fault);
cl_int layer_enter_kernel(int device, cl_kernel kernel, const struct fault **fault);

/* Buffers among a kernel's arguments, as they were set last; NULL: none is known. */
void layer_set_arg(cl_kernel kernel, cl_uint index, cl_mem mem);
cl_mem layer_find_arg(cl_kernel kernel, cl_uint index);

/* The device's number of each object; -1 where it has none. */
int layer_device_of_context(cl_context context);
int layer_device_of_queue(cl_command_queue queue);
int layer_device_of_mem(cl_mem mem);
int layer_device_of_program(cl_program program);
int layer_device_of_kernel(cl_kernel kernel);
int layer_device_of_event(cl_event event);

/* Events that report an error instead of their end. Such an event is kept for ever, so that no
 * other can have its place. */
void layer_spoil_event(cl_event event, cl_int code);
cl_int layer_event_code(cl_event event); /* CL_SUCCESS: a good one */

/* The error that all later events of the queue report, since a command without an event of its
 * own failed; CL_SUCCESS: none. */
void layer_spoil_queue(cl_command_queue queue, cl_int code);
cl_int layer_queue_code(cl_command_queue queue);

/* Mapped memory, to be found again when it is unmapped. */
struct map {
    void *memory;
    size_t bytes;
    cl_map_flags flags;
};
void layer_add_map(struct map map);
struct map layer_take_map(const void *memory); /* .memory NULL: not known */
struct map layer_find_map(const void *memory);

#endif
