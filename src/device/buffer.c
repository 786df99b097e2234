/* Device memory: buffers, views into them, and copies that wait. */
#include "device/device.h"
#include "device/expect.h"
#include "device/opencl.h"
#include "device/pocl.h"
#include "device/regions.h"
#include "device/reserve.h"

#include "base/fail.h"
#include "base/log.h"
#include <stdlib.h>
#include <string.h>

static void count_bytes(struct lk_device *device, size_t added, size_t removed)
{
    pthread_mutex_lock(&device->mutex);
    device->bytes += added;
    device->bytes -= removed;
    if (device->bytes > device->peak_bytes)
        device->peak_bytes = device->bytes;
    pthread_mutex_unlock(&device->mutex);
}

/* Makes the buffer's struct: a copy of `like` with the memory object `mem`, which it then owns.
 */
static enum lk_status wrap(const struct lk_buffer *like, cl_mem mem, struct lk_buffer **buffer)
{
    struct lk_buffer *made = calloc(1, sizeof *made);
    if (!made) {
        clReleaseMemObject(mem);
        return lk_fail_memory("a buffer", sizeof *made);
    }
    *made = *like;
    made->mem = mem;
    count_bytes(made->device, made->bytes, 0);
    *buffer = made;
    return LK_OK;
}

static bool is_host_memory(const struct lk_device *device)
{
    return device->is_pocl && device->info.device_class == LK_CLASS_CPU;
}

/* From the reserve where there is one with room. */
static cl_mem allocate(struct lk_device *device, size_t bytes, cl_mem_flags flags, size_t *used,
                       cl_int *error)
{
    cl_mem mem = flags == CL_MEM_READ_WRITE
                     ? lk_reserve_cut(device->reserve, device->context, bytes, used)
                     : NULL;
    if (mem) {
        *error = CL_SUCCESS;
        return mem;
    }
    *used = bytes;
    mem = clCreateBuffer(device->context, flags, bytes ? bytes : 1, NULL, error);
    if (mem && is_host_memory(device))
        lk_pocl_advise(device->upload, mem, bytes); /* not behind fills of other buffers */
    return mem;
}

/* Drivers say that a device has too little memory by each of these. */
static bool is_shortage(cl_int error)
{
    return error == CL_MEM_OBJECT_ALLOCATION_FAILURE || error == CL_OUT_OF_RESOURCES ||
           error == CL_OUT_OF_HOST_MEMORY || error == CL_INVALID_BUFFER_SIZE;
}

/* Many drivers, PoCL among them, allow more memory than the device has and fail at the first
 * use, or swap; so allocations beyond the device's memory are refused here. */
enum lk_status lk_buffer_create_with(struct lk_device *device, size_t bytes, cl_mem_flags flags,
                                     struct lk_buffer **buffer)
{
    const struct lk_device_info *info = &device->info;
    const size_t held = lk_device_bytes(device);
    if (bytes > info->allocation_bytes)
        return lk_fail(LK_E_DEVICE_MEMORY, "%zu bytes wanted at once, %s allows %zu", bytes,
                       info->name, info->allocation_bytes);
    cl_int error = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    cl_mem mem = NULL;
    size_t used = 0;
    if (held <= info->memory_bytes && bytes <= info->memory_bytes - held)
        mem = allocate(device, bytes, flags, &used, &error);
    lk_device_block_if_abandoned(device);
    if (error != CL_SUCCESS && !is_shortage(error))
        return lk_device_fail(device, error, "clCreateBuffer");
    if (error != CL_SUCCESS)
        return lk_fail(LK_E_DEVICE_MEMORY,
                       "%zu bytes of device memory: %s (%zu allocated, %s has %zu)", bytes,
                       lk_opencl_name(error), held, info->name, info->memory_bytes);
    const struct lk_buffer like = {.device = device, .bytes = bytes, .used = used};
    return wrap(&like, mem, buffer);
}

enum lk_status lk_buffer_create(struct lk_device *device, size_t bytes,
                                struct lk_buffer **buffer)
{
    return lk_buffer_create_with(device, bytes, CL_MEM_READ_WRITE, buffer);
}

static enum lk_status fill(struct lk_buffer *buffer, uint8_t byte, size_t bytes)
{
    enum { LARGE = 64 << 20 };
    if (bytes == 0)
        return LK_OK;
    struct lk_device *device = buffer->device;
    LK_TRY(lk_chain_flush(device));
    cl_event event = NULL, *place = lk_trace_place(device, &event);
    if (bytes >= LARGE && device->is_pocl && !place) {
        const cl_int failed =
            lk_pocl_enqueue_fill(device->queue, device->transfer, buffer->mem, byte, bytes);
        lk_device_block_if_abandoned(device);
        return failed == CL_SUCCESS ? LK_OK
                                    : lk_device_fail(device, failed, "clEnqueueFillBuffer");
    }
    const cl_int error = clEnqueueFillBuffer(device->queue, buffer->mem, &byte, sizeof byte, 0,
                                             bytes, 0, NULL, place);
    lk_device_block_if_abandoned(device);
    lk_trace_add(device, device->queue, "fill", bytes, event);
    return error == CL_SUCCESS ? LK_OK : lk_device_fail(device, error, "clEnqueueFillBuffer");
}

enum lk_status lk_buffer_create_zeros(struct lk_device *device, size_t bytes,
                                      struct lk_buffer **buffer)
{
    struct lk_buffer *made = NULL;
    LK_TRY(lk_buffer_create(device, bytes, &made));
    const enum lk_status status = fill(made, 0, made->used < bytes ? made->used : bytes);
    if (status == LK_OK)
        *buffer = made;
    else
        lk_buffer_destroy(made);
    return status;
}

/* What is small is brought in as quickly by its first use. */
void lk_device_expect(struct lk_device *device, size_t bytes)
{
    enum { LEAST = 128 << 20 };
    if (is_host_memory(device) && !device->reserve && bytes >= LEAST &&
        bytes <= device->info.memory_bytes)
        device->reserve = lk_reserve_create(bytes);
}

static enum lk_status check_range(const struct lk_buffer *buffer, size_t offset, size_t bytes)
{
    if (offset <= buffer->bytes && bytes <= buffer->bytes - offset)
        return LK_OK;
    return lk_fail(LK_E_ARGUMENT, "%zu bytes from byte %zu on of a buffer of %zu", bytes,
                   offset, buffer->bytes);
}

enum lk_status lk_buffer_view(struct lk_buffer *parent, size_t offset, size_t bytes,
                              struct lk_buffer **view)
{
    const size_t align = parent->device->info.align_bytes;
    if (offset % align)
        return lk_fail(LK_E_ARGUMENT,
                       "a view from byte %zu on of a buffer: a multiple of %zu is expected",
                       offset, align);
    LK_TRY(check_range(parent, offset, bytes));
    struct lk_buffer *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("a view", sizeof *made);
    *made = (struct lk_buffer){.device = parent->device,
                               .bytes = bytes,
                               .whole = parent->whole ? parent->whole : parent,
                               .offset = parent->offset + offset};
    cl_int error;
    made->region = lk_region_take(made->whole, made->offset, bytes, &error);
    if (!made->region) {
        free(made);
        return lk_device_fail(parent->device, error, "clCreateSubBuffer");
    }
    made->mem = lk_region_memory(made->region);
    *view = made;
    return LK_OK;
}

void lk_buffer_destroy(struct lk_buffer *buffer)
{
    if (!buffer)
        return;
    if (buffer->region) {
        lk_region_release(buffer->region);
    } else {
        count_bytes(buffer->device, 0, buffer->bytes);
        lk_regions_leave(buffer);
        clReleaseMemObject(buffer->mem);
    }
    free(buffer);
}

size_t lk_buffer_bytes(const struct lk_buffer *buffer)
{
    return buffer->bytes;
}

enum lk_status lk_buffer_write(struct lk_buffer *buffer, size_t offset, size_t bytes,
                               const void *from)
{
    LK_TRY(check_range(buffer, offset, bytes));
    if (bytes == 0)
        return LK_OK;
    struct lk_device *device = buffer->device;
    LK_TRY(lk_chain_flush(device));
    cl_event event = NULL;
    const cl_int error =
        clEnqueueWriteBuffer(device->queue, buffer->mem, CL_TRUE, offset, bytes, from, 0, NULL,
                             lk_trace_place(device, &event));
    lk_device_block_if_abandoned(device);
    lk_trace_add(device, device->queue, "write", bytes, event);
    return error == CL_SUCCESS ? LK_OK : lk_device_fail(device, error, "clEnqueueWriteBuffer");
}

enum lk_status lk_buffer_read(const struct lk_buffer *buffer, size_t offset, size_t bytes,
                              void *to)
{
    LK_TRY(check_range(buffer, offset, bytes));
    if (bytes == 0)
        return LK_OK;
    struct lk_device *device = buffer->device;
    LK_TRY(lk_chain_flush(device));
    cl_event event = NULL;
    const cl_int error = clEnqueueReadBuffer(device->queue, buffer->mem, CL_TRUE, offset, bytes,
                                             to, 0, NULL, lk_trace_place(device, &event));
    lk_device_block_if_abandoned(device);
    lk_trace_add(device, device->queue, "read", bytes, event);
    return error == CL_SUCCESS ? LK_OK : lk_device_fail(device, error, "clEnqueueReadBuffer");
}

enum { BLOCK_READ_BACK = 1 << 20 };

static enum lk_status compare(const struct lk_buffer *buffer, size_t offset, size_t bytes,
                              const char *wanted, char *block, bool *is_there)
{
    *is_there = true;
    for (size_t at = 0; at < bytes && *is_there; at += BLOCK_READ_BACK) {
        const size_t part = bytes - at < BLOCK_READ_BACK ? bytes - at : BLOCK_READ_BACK;
        LK_TRY(lk_buffer_read(buffer, offset + at, part, block));
        *is_there = memcmp(block, wanted + at, part) == 0;
    }
    return LK_OK;
}

enum lk_status lk_buffer_write_surely(struct lk_buffer *buffer, size_t offset, size_t bytes,
                                      const void *from)
{
    enum { TRIES = 2 };
    const size_t most = bytes < BLOCK_READ_BACK ? bytes : BLOCK_READ_BACK;
    char *block = malloc(most + 1);
    if (!block)
        return lk_fail_memory("what is read back", most);
    enum lk_status status = LK_OK;
    bool is_there = false;
    for (int i = 0; i < TRIES && status == LK_OK && !is_there; i++) {
        status = lk_buffer_write(buffer, offset, bytes, from);
        if (status == LK_OK)
            status = compare(buffer, offset, bytes, from, block, &is_there);
        if (status == LK_OK && !is_there && i + 1 < TRIES)
            lk_log(LK_LOG_WARNING,
                   "%zu bytes written to a device were changed on the way: "
                   "they are written again",
                   bytes);
    }
    free(block);
    if (status == LK_OK && !is_there)
        lk_device_blame(buffer->device);
    return status != LK_OK || is_there
               ? status
               : lk_fail(LK_E_DEVICE,
                         "%zu bytes written to it were changed on the way %d times", bytes,
                         TRIES);
}

enum lk_status lk_buffer_enqueue_fill(struct lk_buffer *buffer, uint8_t byte)
{
    return fill(buffer, byte, buffer->bytes);
}

enum lk_status lk_buffer_enqueue_copy(const struct lk_buffer *from, struct lk_buffer *to,
                                      size_t bytes)
{
    LK_TRY(check_range(from, 0, bytes));
    LK_TRY(check_range(to, 0, bytes));
    if (bytes == 0)
        return LK_OK;
    struct lk_device *device = from->device;
    LK_TRY(lk_chain_flush(device));
    cl_event event = NULL;
    const cl_int error = clEnqueueCopyBuffer(device->queue, from->mem, to->mem, 0, 0, bytes, 0,
                                             NULL, lk_trace_place(device, &event));
    lk_device_block_if_abandoned(device);
    lk_trace_add(device, device->queue, "copy", bytes, event);
    return error == CL_SUCCESS ? LK_OK : lk_device_fail(device, error, "clEnqueueCopyBuffer");
}
