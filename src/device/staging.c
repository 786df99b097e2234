/* Pinned host memory, and transfers between it and buffers. */
#include "device/staging.h"
#include "device/opencl.h"

#include "base/fail.h"
#include <stdlib.h>

struct lk_staging {
    struct lk_device *device;
    cl_mem mem;
    void *memory;
    size_t bytes;
    cl_event event; /* of the last transfer, NULL: none */
};

enum lk_status lk_staging_create(struct lk_device *device, size_t bytes,
                                 struct lk_staging **staging)
{
    cl_int error;
    struct lk_staging *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("staging", sizeof *made);
    *made = (struct lk_staging){.device = device, .bytes = bytes};
    made->mem = clCreateBuffer(device->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                               bytes ? bytes : 1, NULL, &error);
    if (error == CL_SUCCESS)
        made->memory =
            clEnqueueMapBuffer(device->queue, made->mem, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                               bytes ? bytes : 1, 0, NULL, NULL, &error);
    if (error != CL_SUCCESS) {
        lk_staging_destroy(made);
        return lk_device_fail(device, error, "pinned host memory");
    }
    *staging = made;
    return LK_OK;
}

void lk_staging_destroy(struct lk_staging *staging)
{
    if (!staging)
        return;
    (void)!lk_staging_wait(staging);
    if (staging->memory) {
        clEnqueueUnmapMemObject(staging->device->queue, staging->mem, staging->memory, 0, NULL,
                                NULL);
        clFinish(staging->device->queue);
    }
    if (staging->mem)
        clReleaseMemObject(staging->mem);
    free(staging);
}

void *lk_staging_memory(struct lk_staging *staging)
{
    return staging->memory;
}

/* Keeps the event of a transfer that was enqueued, and flushes its queue. */
static enum lk_status sent(struct lk_staging *staging, cl_command_queue queue, cl_int error,
                           cl_event event, const char *what)
{
    if (error != CL_SUCCESS)
        return lk_device_fail(staging->device, error, what);
    if (staging->event)
        clReleaseEvent(staging->event);
    staging->event = event;
    error = clFlush(queue);
    lk_device_block_if_abandoned(staging->device);
    return error == CL_SUCCESS ? LK_OK : lk_device_fail(staging->device, error, "clFlush");
}

enum lk_status lk_staging_enqueue_write(struct lk_staging *staging, struct lk_buffer *to,
                                        size_t bytes)
{
    cl_event event = NULL;
    if (bytes > staging->bytes || bytes > to->bytes)
        return lk_fail(LK_E_ARGUMENT, "%zu bytes from staging of %zu to a buffer of %zu", bytes,
                       staging->bytes, to->bytes);
    const cl_int error = clEnqueueWriteBuffer(staging->device->queue, to->mem, CL_FALSE, 0,
                                              bytes, staging->memory, 0, NULL, &event);
    lk_trace_add_retained(staging->device, staging->device->queue, "write", bytes, event);
    return sent(staging, staging->device->queue, error, event, "clEnqueueWriteBuffer");
}

enum lk_status lk_staging_enqueue_read(struct lk_staging *staging, const struct lk_buffer *from,
                                       size_t bytes)
{
    cl_event event = NULL;
    if (bytes > staging->bytes || bytes > from->bytes)
        return lk_fail(LK_E_ARGUMENT, "%zu bytes of a buffer of %zu to staging of %zu", bytes,
                       from->bytes, staging->bytes);
    const cl_int error = clEnqueueReadBuffer(staging->device->queue, from->mem, CL_FALSE, 0,
                                             bytes, staging->memory, 0, NULL, &event);
    lk_trace_add_retained(staging->device, staging->device->queue, "read", bytes, event);
    return sent(staging, staging->device->queue, error, event, "clEnqueueReadBuffer");
}

enum lk_status lk_staging_enqueue_copy(struct lk_staging *staging, const struct lk_buffer *from)
{
    const cl_command_queue queue = staging->device->transfer;
    cl_event after = NULL, event = NULL;
    if (from->bytes == 0)
        return LK_OK;
    if (from->bytes > staging->bytes)
        return lk_fail(LK_E_ARGUMENT, "a buffer of %zu bytes to staging of %zu", from->bytes,
                       staging->bytes);
    cl_int error = lk_device_mark(staging->device, &after);
    if (error == CL_SUCCESS)
        error = clEnqueueReadBuffer(queue, from->mem, CL_FALSE, 0, from->bytes, staging->memory,
                                    1, &after, &event);
    if (after)
        clReleaseEvent(after);
    lk_trace_add_retained(staging->device, queue, "read", from->bytes, event);
    return sent(staging, queue, error, event, "clEnqueueReadBuffer");
}

enum lk_status lk_staging_enqueue_barrier(struct lk_staging *staging)
{
    if (!staging->event)
        return LK_OK;
    const cl_int error =
        clEnqueueBarrierWithWaitList(staging->device->queue, 1, &staging->event, NULL);
    return error == CL_SUCCESS
               ? LK_OK
               : lk_device_fail(staging->device, error, "clEnqueueBarrierWithWaitList");
}

enum lk_status lk_staging_wait(struct lk_staging *staging)
{
    if (!staging->event)
        return LK_OK;
    const cl_int error = lk_opencl_wait(staging->event);
    lk_device_block_if_abandoned(staging->device);
    clReleaseEvent(staging->event);
    staging->event = NULL;
    return error == CL_SUCCESS ? LK_OK
                               : lk_device_fail(staging->device, error, "clWaitForEvents");
}
