/* Points in a device's queue whose time can be read once the device has passed them. */
#include "device/device.h"
#include "device/opencl.h"

#include "base/fail.h"
#include <stdlib.h>

struct lk_timestamp {
    struct lk_device *device;
    cl_event event;
};

enum lk_status lk_timestamp_create(struct lk_device *device, struct lk_timestamp **mark)
{
    struct lk_timestamp *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("a mark", sizeof *made);
    made->device = device;
    *mark = made;
    return LK_OK;
}

void lk_timestamp_destroy(struct lk_timestamp *mark)
{
    if (!mark)
        return;
    if (mark->event)
        clReleaseEvent(mark->event);
    free(mark);
}

enum lk_status lk_timestamp_enqueue(struct lk_timestamp *mark)
{
    cl_event event = NULL;
    const cl_int error = clEnqueueMarkerWithWaitList(mark->device->queue, 0, NULL, &event);
    lk_device_block_if_abandoned(mark->device);
    if (error != CL_SUCCESS)
        return lk_device_fail(mark->device, error, "clEnqueueMarkerWithWaitList");
    if (mark->event)
        clReleaseEvent(mark->event);
    mark->event = event;
    return LK_OK;
}

double lk_timestamp_seconds(const struct lk_timestamp *mark)
{
    cl_ulong end = 0;
    if (!mark->event || clGetEventProfilingInfo(mark->event, CL_PROFILING_COMMAND_END,
                                                sizeof end, &end, NULL) != CL_SUCCESS)
        return -1;
    return 1e-9 * (double)end;
}
