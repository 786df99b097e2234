/* Memory that device and host use in turns: mapped where they share memory, else copied. */
#include "device/opencl.h"
#include "device/staging.h"

#include "base/fail.h"
#include <stdlib.h>
#include <string.h>

struct lk_transfer_buffer {
    struct lk_device *device;
    struct lk_buffer *buffer;
    struct lk_staging *copy; /* NULL: the host maps the buffer itself */
    enum lk_buffer_writer writer;
    bool goes_first; /* LK_DEVICE_SENDS, on a CPU */
    bool is_shared;  /* the host's own as well: turns take no command but a marker */
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

/* PoCL's map gives the buffer's own memory, and kernels see at once what is written there. */
static enum lk_status share(struct lk_transfer_buffer *transfer, size_t bytes)
{
    cl_int error = CL_SUCCESS;
    transfer->memory =
        clEnqueueMapBuffer(transfer->device->upload, transfer->buffer->mem, CL_TRUE,
                           CL_MAP_WRITE, 0, bytes, 0, NULL, NULL, &error);
    lk_device_block_if_abandoned(transfer->device);
    transfer->is_shared = error == CL_SUCCESS;
    return error == CL_SUCCESS ? LK_OK
                               : lk_device_fail(transfer->device, error, "clEnqueueMapBuffer");
}

enum lk_status lk_transfer_buffer_create(struct lk_device *device, size_t bytes,
                                         enum lk_buffer_writer writer,
                                         struct lk_transfer_buffer **transfer)
{
    const bool shares = is_mapped(device) && writer == LK_HOST_SHARES && device->is_pocl &&
                        device->info.device_class == LK_CLASS_CPU;
    const bool maps = shares || (is_mapped(device) && writer < LK_HOST_UPLOADS);
    struct lk_transfer_buffer *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("a transfer buffer", sizeof *made);
    *made = (struct lk_transfer_buffer){
        .device = device,
        .writer = writer == LK_DEVICE_SENDS ? LK_DEVICE_WRITES : writer,
        .goes_first = writer == LK_DEVICE_SENDS && device->info.device_class == LK_CLASS_CPU};
    enum lk_status status = lk_buffer_create_with(
        device, bytes, CL_MEM_READ_WRITE | (maps ? CL_MEM_ALLOC_HOST_PTR : 0), &made->buffer);
    if (status == LK_OK && !maps)
        status = lk_staging_create(device, bytes, &made->copy);
    if (status == LK_OK && shares)
        status = share(made, bytes);
    if (status != LK_OK) {
        lk_transfer_buffer_destroy(made);
        return status;
    }
    *transfer = made;
    return LK_OK;
}

/* Transfers to the device have a queue of their own: in one queue with those to the host an
 * upload would wait behind a gradient that is not computed yet. */
static cl_command_queue queue_of(const struct lk_transfer_buffer *transfer)
{
    const struct lk_device *device = transfer->device;
    return transfer->writer == LK_DEVICE_WRITES ? device->transfer : device->upload;
}

static void forget(cl_event *event)
{
    if (*event)
        clReleaseEvent(*event);
    *event = NULL;
}

/* Whether the last transfer to the device succeeded; it has ended long before this is called.
 */
static enum lk_status check_given(const struct lk_transfer_buffer *transfer)
{
    cl_int state = CL_COMPLETE;
    const cl_int error =
        transfer->given ? clGetEventInfo(transfer->given, CL_EVENT_COMMAND_EXECUTION_STATUS,
                                         sizeof state, &state, NULL)
                        : CL_SUCCESS;
    if (error != CL_SUCCESS || state < 0)
        return lk_device_fail(transfer->device, error != CL_SUCCESS ? error : state,
                              "handing memory over");
    return LK_OK;
}

void lk_transfer_buffer_destroy(struct lk_transfer_buffer *transfer)
{
    if (!transfer)
        return;
    if (transfer->is_shared) {
        clEnqueueUnmapMemObject(queue_of(transfer), transfer->buffer->mem, transfer->memory, 0,
                                NULL, NULL);
        clFinish(queue_of(transfer));
    } else if (transfer->host_has_it && !transfer->copy) {
        void *memory;
        if (lk_transfer_buffer_wait(transfer, &memory) == LK_OK)
            (void)!lk_transfer_buffer_enqueue_to_device(transfer, transfer->mapped);
        clFinish(queue_of(transfer));
    }
    forget(&transfer->event);
    forget(&transfer->given);
    lk_staging_destroy(transfer->copy);
    lk_buffer_destroy(transfer->buffer);
    free(transfer);
}

struct lk_buffer *lk_transfer_buffer_on_device(struct lk_transfer_buffer *transfer)
{
    return transfer->buffer;
}

static cl_int take(struct lk_transfer_buffer *transfer, size_t bytes, cl_event after)
{
    const cl_command_queue queue = queue_of(transfer);
    cl_int error = CL_SUCCESS;
    if (transfer->is_shared) {
        if (clRetainEvent(after) == CL_SUCCESS)
            transfer->event = after;
    } else if (!transfer->copy) {
        transfer->memory = clEnqueueMapBuffer(
            queue, transfer->buffer->mem, CL_FALSE,
            transfer->writer == LK_DEVICE_WRITES ? CL_MAP_READ : CL_MAP_WRITE_INVALIDATE_REGION,
            0, bytes, 1, &after, &transfer->event, &error);
        transfer->mapped = bytes;
    } else {
        transfer->memory = lk_staging_memory(transfer->copy);
        if (transfer->writer == LK_DEVICE_WRITES)
            error = clEnqueueReadBuffer(queue, transfer->buffer->mem, CL_FALSE, 0, bytes,
                                        transfer->memory, 1, &after, &transfer->event);
        else if (clRetainEvent(after) == CL_SUCCESS) /* nothing to copy */
            transfer->event = after;
    }
    if (error == CL_SUCCESS && transfer->goes_first)
        error =
            clEnqueueBarrierWithWaitList(transfer->device->queue, 1, &transfer->event, NULL);
    if (error != CL_SUCCESS)
        return error;
    if (transfer->event != after)
        lk_trace_add_retained(transfer->device, queue, transfer->copy ? "read" : "map", bytes,
                              transfer->event);
    return clFlush(queue);
}

enum lk_status lk_transfer_buffer_enqueue_to_host(struct lk_transfer_buffer *transfer,
                                                  size_t bytes)
{
    cl_event after = NULL;
    if (bytes == 0 || bytes > transfer->buffer->bytes)
        return lk_fail(LK_E_ARGUMENT, "%zu bytes of %zu to the host", bytes,
                       transfer->buffer->bytes);
    if (transfer->host_has_it)
        return LK_OK;
    cl_int error = lk_device_mark(transfer->device, &after);
    if (error != CL_SUCCESS) {
        if (after)
            clReleaseEvent(after);
        return lk_device_fail(transfer->device, error, "clEnqueueMarkerWithWaitList");
    }
    error = take(transfer, bytes, after);
    clReleaseEvent(after);
    if (error != CL_SUCCESS)
        return lk_device_fail(transfer->device, error,
                              transfer->copy ? "clEnqueueReadBuffer" : "clEnqueueMapBuffer");
    transfer->host_has_it = true;
    return LK_OK;
}

bool lk_transfer_buffer_is_there(const struct lk_transfer_buffer *transfer)
{
    cl_int state = CL_COMPLETE;
    lk_device_block_if_abandoned(transfer->device);
    if (!transfer->event)
        return true;
    return clGetEventInfo(transfer->event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state,
                          &state, NULL) != CL_SUCCESS ||
           state <= CL_COMPLETE;
}

enum lk_status lk_transfer_buffer_wait(struct lk_transfer_buffer *transfer, void **memory)
{
    if (!transfer->host_has_it)
        return lk_fail(LK_E_ARGUMENT, "the device has this memory, not the host");
    if (transfer->event) {
        const cl_int error = lk_opencl_wait(transfer->event);
        lk_device_block_if_abandoned(transfer->device);
        if (error != CL_SUCCESS)
            return lk_device_fail(transfer->device, error, "clWaitForEvents");
        forget(&transfer->event);
    }
    LK_TRY(check_given(transfer));
    forget(&transfer->given);
    *memory = transfer->memory;
    return LK_OK;
}

/* Transfers the memory to the device, after the kernels that read its old contents. */
static cl_int give(struct lk_transfer_buffer *transfer, size_t bytes)
{
    const cl_command_queue queue = queue_of(transfer);
    const cl_uint waits = transfer->event != NULL;
    const cl_event *after = waits ? &transfer->event : NULL;
    cl_int error = CL_SUCCESS;
    forget(&transfer->given);
    if (transfer->is_shared)
        return CL_SUCCESS;
    if (!transfer->copy)
        error = clEnqueueUnmapMemObject(queue, transfer->buffer->mem, transfer->memory, waits,
                                        after, &transfer->given);
    else if (transfer->writer != LK_DEVICE_WRITES && bytes > 0)
        error = clEnqueueWriteBuffer(queue, transfer->buffer->mem, CL_FALSE, 0, bytes,
                                     transfer->memory, waits, after, &transfer->given);
    if (error != CL_SUCCESS)
        return error;
    lk_trace_add_retained(transfer->device, queue, transfer->copy ? "write" : "unmap", bytes,
                          transfer->given);
    return clFlush(queue);
}

enum lk_status lk_transfer_buffer_enqueue_to_device(struct lk_transfer_buffer *transfer,
                                                    size_t bytes)
{
    if (!transfer->host_has_it)
        return LK_OK;
    if (bytes > transfer->buffer->bytes)
        return lk_fail(LK_E_ARGUMENT, "%zu bytes of %zu to the device", bytes,
                       transfer->buffer->bytes);
    cl_int error = give(transfer, bytes);
    if (error == CL_SUCCESS && transfer->given)
        error =
            clEnqueueBarrierWithWaitList(transfer->device->queue, 1, &transfer->given, NULL);
    if (error != CL_SUCCESS)
        return lk_device_fail(transfer->device, error, "handing memory to the device");
    forget(&transfer->event);
    transfer->host_has_it = false;
    return LK_OK;
}
