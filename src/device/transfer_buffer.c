/* Memory that device and host use in turns: mapped where they share memory, else copied. */
#include "device/device.h"
#include "device/opencl.h"

#include "base/fail.h"
#include <stdlib.h>
#include <string.h>

struct lk_transfer_buffer {
    struct lk_device *device;
    struct lk_buffer *buffer;
    struct lk_staging *copy; /* NULL: the host maps the buffer itself */
    enum lk_transfer_buffer_writer writer;
    bool host_has_it;
    void *memory;   /* valid in the host's turn */
    size_t mapped;  /* bytes */
    cl_event event; /* of the transfer to the host; NULL: none is running */
    cl_event given; /* of the last transfer to the device; NULL: none, or it was checked */
};

/* Whether the memory is mapped, not copied. LOCKSTEP_SHARED=copy, for tests, copies it also
 * where the device shares the host's memory. */
static bool is_mapped(const struct lk_device *device)
{
    const char *how = getenv("LOCKSTEP_SHARED");
    return device->info.shares_memory && !(how && strcmp(how, "copy") == 0);
}

enum lk_status lk_transfer_buffer_create(struct lk_device *device, size_t bytes,
                                         enum lk_transfer_buffer_writer writer,
                                         struct lk_transfer_buffer **shared)
{
    const bool maps = is_mapped(device) && writer != LK_HOST_UPLOADS;
    struct lk_transfer_buffer *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("shared memory", sizeof *made);
    *made = (struct lk_transfer_buffer){.device = device, .writer = writer};
    enum lk_status status = lk_buffer_create_with(
        device, bytes, CL_MEM_READ_WRITE | (maps ? CL_MEM_ALLOC_HOST_PTR : 0), &made->buffer);
    if (status == LK_OK && !maps)
        status = lk_staging_create(device, bytes, &made->copy);
    if (status != LK_OK) {
        lk_transfer_buffer_destroy(made);
        return status;
    }
    *shared = made;
    return LK_OK;
}

/* Transfers to the device have a queue of their own: in one queue with those to the host an
 * upload would wait behind a gradient that is not computed yet. */
static cl_command_queue queue_of(const struct lk_transfer_buffer *shared)
{
    const struct lk_device *device = shared->device;
    return shared->writer == LK_DEVICE_WRITES ? device->transfer : device->upload;
}

static void forget(cl_event *event)
{
    if (*event)
        clReleaseEvent(*event);
    *event = NULL;
}

/* Whether the last transfer to the device succeeded; it has ended long before this is called.
 */
static enum lk_status check_given(const struct lk_transfer_buffer *shared)
{
    cl_int state = CL_COMPLETE;
    const cl_int error = shared->given
                             ? clGetEventInfo(shared->given, CL_EVENT_COMMAND_EXECUTION_STATUS,
                                              sizeof state, &state, NULL)
                             : CL_SUCCESS;
    if (error != CL_SUCCESS || state < 0)
        return lk_opencl_fail(error != CL_SUCCESS ? error : state, "handing memory over");
    return LK_OK;
}

void lk_transfer_buffer_destroy(struct lk_transfer_buffer *shared)
{
    if (!shared)
        return;
    if (shared->host_has_it && !shared->copy) {
        void *memory;
        if (lk_transfer_buffer_wait(shared, &memory) == LK_OK)
            (void)!lk_transfer_buffer_enqueue_to_device(shared, shared->mapped);
        clFinish(queue_of(shared));
    }
    forget(&shared->event);
    forget(&shared->given);
    lk_staging_destroy(shared->copy);
    lk_buffer_destroy(shared->buffer);
    free(shared);
}

struct lk_buffer *lk_transfer_buffer_on_device(struct lk_transfer_buffer *shared)
{
    return shared->buffer;
}

/* An event that completes when all kernels enqueued so far have run; flushes the queue. */
static cl_int mark_compute(struct lk_device *device, cl_event *event)
{
    const cl_int error = clEnqueueMarkerWithWaitList(device->queue, 0, NULL, event);
    return error == CL_SUCCESS ? clFlush(device->queue) : error;
}

static cl_int take(struct lk_transfer_buffer *shared, size_t bytes, cl_event after)
{
    const cl_command_queue queue = queue_of(shared);
    cl_int error = CL_SUCCESS;
    if (!shared->copy) {
        shared->memory = clEnqueueMapBuffer(
            queue, shared->buffer->mem, CL_FALSE,
            shared->writer == LK_DEVICE_WRITES ? CL_MAP_READ : CL_MAP_WRITE_INVALIDATE_REGION,
            0, bytes, 1, &after, &shared->event, &error);
        shared->mapped = bytes;
    } else {
        shared->memory = lk_staging_memory(shared->copy);
        if (shared->writer == LK_DEVICE_WRITES)
            error = clEnqueueReadBuffer(queue, shared->buffer->mem, CL_FALSE, 0, bytes,
                                        shared->memory, 1, &after, &shared->event);
        else if (clRetainEvent(after) == CL_SUCCESS) /* nothing to copy */
            shared->event = after;
    }
    if (error != CL_SUCCESS)
        return error;
    if (shared->event != after)
        lk_trace_add_retained(shared->device, queue, shared->copy ? "read" : "map", bytes,
                              shared->event);
    return clFlush(queue);
}

enum lk_status lk_transfer_buffer_enqueue_to_host(struct lk_transfer_buffer *shared,
                                                  size_t bytes)
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

enum lk_status lk_transfer_buffer_wait(struct lk_transfer_buffer *shared, void **memory)
{
    if (!shared->host_has_it)
        return lk_fail(LK_E_ARGUMENT, "the device has this memory, not the host");
    if (shared->event) {
        const cl_int error = lk_opencl_wait(shared->event);
        lk_device_block_if_abandoned(shared->device);
        if (error != CL_SUCCESS)
            return lk_opencl_fail(error, "clWaitForEvents");
        forget(&shared->event);
    }
    LK_TRY(check_given(shared));
    forget(&shared->given);
    *memory = shared->memory;
    return LK_OK;
}

/* Transfers the memory to the device, after the kernels that read its old contents. */
static cl_int give(struct lk_transfer_buffer *shared, size_t bytes)
{
    const cl_command_queue queue = queue_of(shared);
    const cl_uint waits = shared->event != NULL;
    const cl_event *after = waits ? &shared->event : NULL;
    cl_int error = CL_SUCCESS;
    forget(&shared->given);
    if (!shared->copy)
        error = clEnqueueUnmapMemObject(queue, shared->buffer->mem, shared->memory, waits,
                                        after, &shared->given);
    else if (shared->writer != LK_DEVICE_WRITES && bytes > 0)
        error = clEnqueueWriteBuffer(queue, shared->buffer->mem, CL_FALSE, 0, bytes,
                                     shared->memory, waits, after, &shared->given);
    if (error != CL_SUCCESS)
        return error;
    lk_trace_add_retained(shared->device, queue, shared->copy ? "write" : "unmap", bytes,
                          shared->given);
    return clFlush(queue);
}

enum lk_status lk_transfer_buffer_enqueue_to_device(struct lk_transfer_buffer *shared,
                                                    size_t bytes)
{
    if (!shared->host_has_it)
        return LK_OK;
    if (bytes > shared->buffer->bytes)
        return lk_fail(LK_E_ARGUMENT, "%zu bytes of %zu to the device", bytes,
                       shared->buffer->bytes);
    cl_int error = give(shared, bytes);
    if (error == CL_SUCCESS && shared->given)
        error = clEnqueueBarrierWithWaitList(shared->device->queue, 1, &shared->given, NULL);
    if (error != CL_SUCCESS)
        return lk_opencl_fail(error, "handing memory to the device");
    forget(&shared->event);
    shared->host_has_it = false;
    return LK_OK;
}
