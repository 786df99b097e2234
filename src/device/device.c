/* What a device tells of itself, waiting for all its queues, and giving it up. */
#include "device/device.h"

#include "base/fail.h"
#include "device/opencl.h"
#include <stdio.h>
#include <unistd.h>

const struct lk_device_info *lk_device_info(const struct lk_device *device)
{
    return &device->info;
}

void lk_device_set_log_folder(struct lk_device *device, const char *folder)
{
    snprintf(device->log_folder, sizeof device->log_folder, "%s", folder ? folder : "");
}

void lk_device_limit_memory(struct lk_device *device, size_t bytes)
{
    struct lk_device_info *info = &device->info;
    if (info->memory_bytes > bytes)
        info->memory_bytes = bytes;
    if (info->allocation_bytes > bytes)
        info->allocation_bytes = bytes;
}

size_t lk_device_bytes(const struct lk_device *device)
{
    return device->bytes;
}

size_t lk_device_peak_bytes(const struct lk_device *device)
{
    return device->peak_bytes;
}

int *lk_device_matrix(struct lk_device *device)
{
    return &device->matrix;
}

void lk_device_abandon(struct lk_device *device)
{
    atomic_store(&device->is_abandoned, true);
}

void lk_device_take_back(struct lk_device *device)
{
    atomic_store(&device->is_abandoned, false);
}

void lk_device_block_if_abandoned(const struct lk_device *device)
{
    while (atomic_load_explicit(&device->is_abandoned, memory_order_relaxed))
        pause();
}

cl_int lk_device_mark(struct lk_device *device, cl_event *event)
{
    const cl_int error = clEnqueueMarkerWithWaitList(device->queue, 0, NULL, event);
    return error == CL_SUCCESS ? clFlush(device->queue) : error;
}

void lk_device_blame(struct lk_device *device)
{
    atomic_store(&device->has_failed, true);
}

enum lk_status lk_device_fail(struct lk_device *device, cl_int error, const char *what)
{
    const enum lk_status status = lk_opencl_fail(error, what);
    if (status == LK_E_DEVICE)
        lk_device_blame(device);
    return status;
}

bool lk_device_has_failed(const struct lk_device *device)
{
    return atomic_load(&device->has_failed);
}

enum lk_status lk_device_finish(struct lk_device *device)
{
    const cl_command_queue queues[] = {device->queue, device->transfer, device->upload};
    cl_int error = CL_SUCCESS;
    for (int i = 0; i < LK_COUNT(queues); i++) { /* all are waited for even after an error:
                                                  * no command may use memory that is freed
                                                  * below */
        const cl_int found = clFinish(queues[i]);
        error = error == CL_SUCCESS ? found : error;
    }
    lk_device_block_if_abandoned(device);
    return error == CL_SUCCESS ? LK_OK : lk_device_fail(device, error, "clFinish");
}
