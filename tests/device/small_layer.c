/* An OpenCL layer: the devices are small ones, as small.h has it. They say so when asked, and
 * refuse a launch that wants more. The ICD loader loads it where OPENCL_LAYERS names it
 * (CL/cl_layer.h). */
#include "device/layer_info.h"
#include "device/small.h"

#include <CL/cl_layer.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
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

/* --- local memory that kernels are given as arguments --------------------------------------
 * PoCL from 5.0 on does not count it in CL_KERNEL_LOCAL_MEM_SIZE. */

struct local_arg {
    cl_kernel kernel;
    cl_uint index;
    size_t bytes;
    struct local_arg *next;
};

static struct local_arg *local_args;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static struct local_arg *find_or_add(cl_kernel kernel, cl_uint index)
{
    struct local_arg *arg = local_args;
    while (arg && (arg->kernel != kernel || arg->index != index))
        arg = arg->next;
    if (arg || !(arg = malloc(sizeof *arg)))
        return arg;
    *arg = (struct local_arg){.kernel = kernel, .index = index, .next = local_args};
    return local_args = arg;
}

/* A buffer that is not there is an argument of NULL, too. It has the size of a handle, and is
 * not counted: a kernel that fills the device's local memory may have some. */
static cl_int CL_API_CALL set_kernel_arg(cl_kernel kernel, cl_uint index, size_t bytes,
                                         const void *value)
{
    const cl_int error = target->clSetKernelArg(kernel, index, bytes, value);
    if (error != CL_SUCCESS || value)
        return error;
    pthread_mutex_lock(&mutex);
    struct local_arg *arg = find_or_add(kernel, index);
    if (arg)
        arg->bytes = bytes == sizeof(cl_mem) ? 0 : bytes;
    pthread_mutex_unlock(&mutex);
    return arg ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY;
}

static cl_int CL_API_CALL release_kernel(cl_kernel kernel)
{
    cl_uint owners = 1;
    target->clGetKernelInfo(kernel, CL_KERNEL_REFERENCE_COUNT, sizeof owners, &owners, NULL);
    pthread_mutex_lock(&mutex);
    for (struct local_arg **at = &local_args; owners == 1 && *at;) {
        struct local_arg *arg = *at;
        if (arg->kernel != kernel) {
            at = &arg->next;
            continue;
        }
        *at = arg->next;
        free(arg);
    }
    pthread_mutex_unlock(&mutex);
    return target->clReleaseKernel(kernel);
}

static size_t given_bytes(cl_kernel kernel)
{
    size_t bytes = 0;
    pthread_mutex_lock(&mutex);
    for (const struct local_arg *arg = local_args; arg; arg = arg->next)
        bytes += arg->kernel == kernel ? arg->bytes : 0;
    pthread_mutex_unlock(&mutex);
    return bytes;
}

/* --- launches ----------------------------------------------------------------------------- */

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
    if (bytes < given_bytes(kernel))
        bytes = given_bytes(kernel);
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
    dispatch.clSetKernelArg = set_kernel_arg;
    dispatch.clReleaseKernel = release_kernel;
    dispatch.clEnqueueNDRangeKernel = enqueue_kernel;
    *layer_count = sizeof dispatch / sizeof(void *);
    *layer = &dispatch;
    return CL_SUCCESS;
}
