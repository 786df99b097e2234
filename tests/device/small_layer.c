/* An OpenCL layer: the devices are small ones, as small.h has it. They say so when asked, and
 * refuse a launch that wants more. The ICD loader loads it where OPENCL_LAYERS names it
 * (CL/cl_layer.h). */
#include "device/layer_info.h"
#include "device/small.h"

#include <CL/cl_layer.h>
#include <stdio.h>
#include <string.h>

const char layer_name[] = "a small device for Lockstep's tests";

static const struct _cl_icd_dispatch *target;

static cl_int CL_API_CALL get_device_info(cl_device_id id, cl_device_info what, size_t bytes,
                                          void *value, size_t *need)
{
    static const size_t items[] = {GROUP_ITEMS, GROUP_ITEMS, GROUP_ITEMS};
    const cl_ulong local = LOCAL_BYTES;
    const void *from = what == CL_DEVICE_LOCAL_MEM_SIZE ? (const void *)&local : items;
    size_t size = sizeof local;
    if (what == CL_DEVICE_MAX_WORK_GROUP_SIZE)
        size = sizeof *items;
    else if (what == CL_DEVICE_MAX_WORK_ITEM_SIZES)
        size = sizeof items;
    else if (what != CL_DEVICE_LOCAL_MEM_SIZE)
        return target->clGetDeviceInfo(id, what, bytes, value, need);
    if (value && bytes < size)
        return CL_INVALID_VALUE;
    if (value)
        memcpy(value, from, size);
    if (need)
        *need = size;
    return CL_SUCCESS;
}

static cl_int refuse(cl_kernel kernel, const char *what, size_t found, cl_int error)
{
    char name[128] = "";
    target->clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name, name, NULL);
    fprintf(stderr, "small device: kernel '%s' wants %zu %s\n", name, found, what);
    return error;
}

static cl_int CL_API_CALL enqueue_kernel(cl_command_queue queue, cl_kernel kernel,
                                         cl_uint dimensions, const size_t *offset,
                                         const size_t *global, const size_t *local,
                                         cl_uint waits, const cl_event *list, cl_event *event)
{
    cl_device_id id = NULL;
    cl_ulong bytes = 0;
    size_t items = 1;
    for (cl_uint d = 0; local && d < dimensions; d++)
        items *= local[d];
    cl_int error = target->clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof id, &id, NULL);
    if (error == CL_SUCCESS)
        error = target->clGetKernelWorkGroupInfo(kernel, id, CL_KERNEL_LOCAL_MEM_SIZE,
                                                 sizeof bytes, &bytes, NULL);
    if (error != CL_SUCCESS)
        return error;
    if (items > GROUP_ITEMS)
        return refuse(kernel, "work-items a group", items, CL_INVALID_WORK_GROUP_SIZE);
    if (bytes > LOCAL_BYTES)
        return refuse(kernel, "bytes of local memory", (size_t)bytes, CL_OUT_OF_RESOURCES);
    return target->clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local,
                                          waits, list, event);
}

/* What the layer's table leaves empty, the loader fills from the target's. */
CL_API_ENTRY cl_int CL_API_CALL clInitLayer(cl_uint count, const cl_icd_dispatch *below,
                                            cl_uint *layer_count, const cl_icd_dispatch **layer)
{
    static cl_icd_dispatch dispatch;
    if (!below || !layer_count || !layer || count < sizeof dispatch / sizeof(void *))
        return CL_INVALID_VALUE;
    target = below;
    dispatch.clGetDeviceInfo = get_device_info;
    dispatch.clEnqueueNDRangeKernel = enqueue_kernel;
    *layer_count = sizeof dispatch / sizeof(void *);
    *layer = &dispatch;
    return CL_SUCCESS;
}
