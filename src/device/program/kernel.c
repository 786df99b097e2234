/* Creates kernels and enqueues them with checked arguments. */
#include "device/program/kernel.h"

#include "base/fail.h"
#include "device/opencl.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum lk_status lk_kernel_create(struct lk_device *device, const struct lk_kernel_spec *spec,
                                struct lk_kernel **kernel)
{
    struct lk_program *program;
    LK_TRY(lk_program_find(device, spec, &program));
    struct lk_kernel *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("a kernel", sizeof *made);
    made->device = device;
    made->program = program;
    made->real_bytes = spec->real_bytes;
    snprintf(made->name, sizeof made->name, "%s", spec->name);
    pthread_mutex_lock(&device->mutex);
    made->next_pending = device->pending;
    device->pending = made;
    pthread_mutex_unlock(&device->mutex);
    *kernel = made;
    return LK_OK;
}

void lk_kernel_destroy(struct lk_kernel *kernel)
{
    if (!kernel)
        return;
    pthread_mutex_lock(&kernel->device->mutex);
    for (struct lk_kernel **at = &kernel->device->pending; *at; at = &(*at)->next_pending)
        if (*at == kernel) {
            *at = kernel->next_pending;
            break;
        }
    pthread_mutex_unlock(&kernel->device->mutex);
    if (kernel->kernel)
        clReleaseKernel(kernel->kernel);
    free(kernel);
}

enum { MOST_NUMBERS = 32 }; /* of a struct */

static bool is_int(int64_t number)
{
    return number >= INT_MIN && number <= INT_MAX;
}

/* The first number of an argument that is no int; NULL: there is none. */
static const int64_t *too_large(const struct lk_arg *arg)
{
    if (arg->kind == LK_ARG_INT)
        return is_int(arg->number) ? NULL : &arg->number;
    for (int64_t i = 0; arg->kind == LK_ARG_STRUCT && i < arg->number; i++)
        if (!is_int(arg->data[i]))
            return &arg->data[i];
    return NULL;
}

/* Its numbers lie in a kernel as ints do in an array. */
static cl_int set_struct(const struct lk_kernel *kernel, cl_uint at, const struct lk_arg *arg)
{
    cl_int numbers[MOST_NUMBERS];
    if (arg->number > MOST_NUMBERS)
        return CL_INVALID_ARG_SIZE;
    for (int64_t i = 0; i < arg->number; i++)
        numbers[i] = (cl_int)arg->data[i];
    return clSetKernelArg(kernel->kernel, at, (size_t)arg->number * sizeof *numbers, numbers);
}

static cl_int set_arg(const struct lk_kernel *kernel, int index, const struct lk_arg *arg)
{
    const cl_uint at = (cl_uint)index;
    const cl_int number = (cl_int)arg->number;
    const float single = (float)arg->real;
    switch (arg->kind) {
    case LK_ARG_BUFFER:
        return clSetKernelArg(kernel->kernel, at, sizeof(cl_mem),
                              arg->buffer ? &arg->buffer->mem : NULL);
    case LK_ARG_INT:
        return clSetKernelArg(kernel->kernel, at, sizeof number, &number);
    case LK_ARG_REAL:
        if (kernel->real_bytes == 8)
            return clSetKernelArg(kernel->kernel, at, sizeof arg->real, &arg->real);
        return clSetKernelArg(kernel->kernel, at, sizeof single, &single);
    case LK_ARG_LOCAL:
        return clSetKernelArg(kernel->kernel, at, (size_t)arg->number, NULL);
    case LK_ARG_STRUCT:
        return set_struct(kernel, at, arg);
    }
    return CL_INVALID_VALUE;
}

enum lk_status lk_kernel_enqueue(struct lk_kernel *kernel, struct lk_grid grid,
                                 const struct lk_arg *args, int count)
{
    size_t global[3], local[3] = {(size_t)grid.items, 1, 1};
    bool is_taken;
    if (!kernel->kernel)
        return lk_fail(LK_E_ARGUMENT, "kernel '%s' is not built yet", kernel->name);
    if ((cl_uint)count != kernel->arg_count)
        return lk_fail(LK_E_ARGUMENT, "kernel '%s' takes %u arguments, found %d", kernel->name,
                       kernel->arg_count, count);
    for (int d = 0; d < 3; d++) {
        if (grid.groups[d] == 0)
            return LK_OK;
        global[d] = (size_t)grid.groups[d] * local[d];
    }
    for (int i = 0; i < count; i++) {
        const int64_t *large = too_large(&args[i]);
        if (large)
            return lk_fail(LK_E_ARGUMENT, "kernel '%s': argument %d is too large: %lld",
                           kernel->name, i, (long long)*large);
    }
    LK_TRY(lk_chain_add(kernel, &grid, args, count, &is_taken));
    if (is_taken)
        return LK_OK;
    struct lk_device *device = kernel->device;
    cl_event event = NULL;
    char what[160];
    for (int i = 0; i < count; i++) {
        const cl_int error = set_arg(kernel, i, &args[i]);
        if (error == CL_SUCCESS)
            continue;
        snprintf(what, sizeof what, "kernel '%s', argument %d", kernel->name, i);
        return lk_device_fail(device, error, what);
    }
    const cl_int error = clEnqueueNDRangeKernel(device->queue, kernel->kernel, 3, NULL, global,
                                                local, 0, NULL, lk_trace_place(device, &event));
    lk_device_block_if_abandoned(device);
    lk_trace_add(device, device->queue, kernel->name, 0, event);
    if (error == CL_SUCCESS)
        return LK_OK;
    snprintf(what, sizeof what, "kernel '%s' in groups of %d", kernel->name, grid.items);
    return lk_device_fail(device, error, what);
}
