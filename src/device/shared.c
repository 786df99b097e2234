#include "device/device.h"
#include "device/opencl.h"

#include "base/fail.h"
#include <stdlib.h>
#include <string.h>

struct lk_shared {
    struct lk_device *device;
    struct lk_buffer *buffer;
    struct lk_staging *copy; /* NULL: the host maps the buffer itself */
    enum lk_shared_writer writer;
    bool host_has_it;
    void *memory;   /* while the host has it */
    size_t mapped;  /* bytes */
    cl_event event; /* of the hand-over to the host; NULL: none on its way */
};

/* For tests: LOCKSTEP_SHARED=copy does with memory that is shared as with memory that is not.
 */
static bool is_mapped(const struct lk_device *device)
{
    const char *how = getenv("LOCKSTEP_SHARED");
    return device->info.shares_memory && !(how && strcmp(how, "copy") == 0);
}

enum lk_status lk_shared_create(struct lk_device *device, size_t bytes,
                                enum lk_shared_writer writer, struct lk_shared **shared)
{
    const bool maps = is_mapped(device);
    struct lk_shared *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("shared memory", sizeof *made);
    *made = (struct lk_shared){.device = device, .writer = writer};
    enum lk_status status = lk_buffer_create_with(
        device, bytes, CL_MEM_READ_WRITE | (maps ? CL_MEM_ALLOC_HOST_PTR : 0), &made->buffer);
    if (status == LK_OK && !maps)
        status = lk_staging_create(device, bytes, &made->copy);
    if (status != LK_OK) {
        lk_shared_destroy(made);
        return status;
    }
    *shared = made;
    return LK_OK;
}

static void forget_event(struct lk_shared *shared)
{
    if (shared->event)
        clReleaseEvent(shared->event);
    shared->event = NULL;
}

void lk_shared_destroy(struct lk_shared *shared)
{
    if (!shared)
        return;
    if (shared->host_has_it && !shared->copy) {
        void *memory;
        if (lk_shared_wait(shared, &memory) == LK_OK)
            (void)!lk_shared_enqueue_to_device(shared, shared->mapped);
        clFinish(shared->device->transfer);
    }
    forget_event(shared);
    lk_staging_destroy(shared->copy);
    lk_buffer_destroy(shared->buffer);
    free(shared);
}

struct lk_buffer *lk_shared_buffer(struct lk_shared *shared)
{
    return shared->buffer;
}

/* An event of the compute queue's work so far, sent on its way. */
static cl_int mark_compute(struct lk_device *device, cl_event *event)
{
    const cl_int error = clEnqueueMarkerWithWaitList(device->queue, 0, NULL, event);
    return error == CL_SUCCESS ? clFlush(device->queue) : error;
}

static cl_int take(struct lk_shared *shared, size_t bytes, cl_event after)
{
    const struct lk_device *device = shared->device;
    cl_int error = CL_SUCCESS;
    if (!shared->copy) {
        shared->memory = clEnqueueMapBuffer(
            device->transfer, shared->buffer->mem, CL_FALSE,
            shared->writer == LK_DEVICE_WRITES ? CL_MAP_READ : CL_MAP_WRITE_INVALIDATE_REGION,
            0, bytes, 1, &after, &shared->event, &error);
        shared->mapped = bytes;
    } else {
        shared->memory = lk_staging_memory(shared->copy);
        if (shared->writer == LK_DEVICE_WRITES)
            error = clEnqueueReadBuffer(device->transfer, shared->buffer->mem, CL_FALSE, 0,
                                        bytes, shared->memory, 1, &after, &shared->event);
        else if (clRetainEvent(after) == CL_SUCCESS) /* it comes after the last write */
            shared->event = after;
    }
    if (error != CL_SUCCESS)
        return error;
    lk_trace_share(shared->device, device->transfer, shared->copy ? "read" : "map", bytes,
                   shared->event);
    return clFlush(device->transfer);
}

enum lk_status lk_shared_enqueue_to_host(struct lk_shared *shared, size_t bytes)
{
    cl_event after = NULL;
    if (bytes == 0 || bytes > shared->buffer->bytes)
        return lk_fail(LK_E_ARGUMENT, "%zu bytes of %zu to the host", bytes,
                       shared->buffer->bytes);
    if (shared->host_has_it)
        return LK_OK;
    cl_int error = mark_compute(shared->device, &after);
    if (error != CL_SUCCESS) {
        if (after)
            clReleaseEvent(after);
        return lk_opencl_fail(error, "clEnqueueMarkerWithWaitList");
    }
    error = take(shared, bytes, after);
    clReleaseEvent(after);
    if (error != CL_SUCCESS)
        return lk_opencl_fail(error,
                              shared->copy ? "clEnqueueReadBuffer" : "clEnqueueMapBuffer");
    shared->host_has_it = true;
    return LK_OK;
}

enum lk_status lk_shared_wait(struct lk_shared *shared, void **memory)
{
    if (!shared->host_has_it)
        return lk_fail(LK_E_ARGUMENT, "the device has this memory, not the host");
    if (shared->event) {
        const cl_int error = lk_opencl_wait(shared->event);
        lk_device_pass(shared->device);
        if (error != CL_SUCCESS)
            return lk_opencl_fail(error, "clWaitForEvents");
        forget_event(shared);
    }
    *memory = shared->memory;
    return LK_OK;
}

static cl_int give(struct lk_shared *shared, size_t bytes, cl_event *given)
{
    const struct lk_device *device = shared->device;
    cl_int error = CL_SUCCESS;
    if (!shared->copy)
        error = clEnqueueUnmapMemObject(device->transfer, shared->buffer->mem, shared->memory,
                                        0, NULL, given);
    else if (shared->writer == LK_HOST_WRITES)
        error = clEnqueueWriteBuffer(device->transfer, shared->buffer->mem, CL_FALSE, 0, bytes,
                                     shared->memory, 0, NULL, given);
    if (error != CL_SUCCESS)
        return error;
    lk_trace_share(shared->device, device->transfer, shared->copy ? "write" : "unmap", bytes,
                   *given);
    return clFlush(device->transfer);
}

enum lk_status lk_shared_enqueue_to_device(struct lk_shared *shared, size_t bytes)
{
    cl_event given = NULL;
    if (!shared->host_has_it)
        return LK_OK;
    if (bytes > shared->buffer->bytes)
        return lk_fail(LK_E_ARGUMENT, "%zu bytes of %zu to the device", bytes,
                       shared->buffer->bytes);
    cl_int error = give(shared, bytes, &given);
    if (error == CL_SUCCESS && given)
        error = clEnqueueBarrierWithWaitList(shared->device->queue, 1, &given, NULL);
    if (given)
        clReleaseEvent(given);
    if (error != CL_SUCCESS)
        return lk_opencl_fail(error, "handing memory to the device");
    forget_event(shared);
    shared->host_has_it = false;
    return LK_OK;
}
