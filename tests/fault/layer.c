/* The layer's entrance, and its wrappers of everything but commands. */
#include "fault/layer.h"

#include "device/layer_info.h"
#include <pthread.h>
#include <string.h>

const char layer_name[] = "faults for Lockstep's tests";
const struct _cl_icd_dispatch *layer_target;

static void set(cl_int *to, cl_int error)
{
    if (to)
        *to = error;
}

static cl_context CL_API_CALL
create_context(const cl_context_properties *properties, cl_uint count, const cl_device_id *ids,
               void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *),
               void *data, cl_int *errcode)
{
    static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
    static int devices;
    const struct fault *fault;
    pthread_mutex_lock(&turn);
    const int device = devices++;
    pthread_mutex_unlock(&turn);
    const cl_int error = layer_enter(CALL_clCreateContext, device, 0, &fault);
    set(errcode, error);
    if (error != CL_SUCCESS)
        return NULL;
    cl_context context =
        layer_target->clCreateContext(properties, count, ids, notify, data, errcode);
    layer_add_context(context, device);
    return context;
}

static cl_command_queue CL_API_CALL create_queue(cl_context context, cl_device_id id,
                                                 cl_command_queue_properties properties,
                                                 cl_int *errcode)
{
    const struct fault *fault;
    const cl_int error =
        layer_enter(CALL_clCreateCommandQueue, layer_device_of_context(context), 0, &fault);
    set(errcode, error);
    return error == CL_SUCCESS
               ? layer_target->clCreateCommandQueue(context, id, properties, errcode)
               : NULL;
}

static cl_mem CL_API_CALL create_buffer(cl_context context, cl_mem_flags flags, size_t bytes,
                                        void *host, cl_int *errcode)
{
    const struct fault *fault;
    const cl_int error =
        layer_enter(CALL_clCreateBuffer, layer_device_of_context(context), bytes, &fault);
    set(errcode, error);
    return error == CL_SUCCESS
               ? layer_target->clCreateBuffer(context, flags, bytes, host, errcode)
               : NULL;
}

static cl_mem CL_API_CALL create_sub_buffer(cl_mem mem, cl_mem_flags flags,
                                            cl_buffer_create_type type, const void *region,
                                            cl_int *errcode)
{
    const struct fault *fault;
    const cl_int error =
        layer_enter(CALL_clCreateSubBuffer, layer_device_of_mem(mem), 0, &fault);
    set(errcode, error);
    return error == CL_SUCCESS
               ? layer_target->clCreateSubBuffer(mem, flags, type, region, errcode)
               : NULL;
}

static cl_program CL_API_CALL create_program(cl_context context, cl_uint count,
                                             const char **texts, const size_t *lengths,
                                             cl_int *errcode)
{
    const struct fault *fault;
    const cl_int error = layer_enter(CALL_clCreateProgramWithSource,
                                     layer_device_of_context(context), 0, &fault);
    set(errcode, error);
    return error == CL_SUCCESS ? layer_target->clCreateProgramWithSource(context, count, texts,
                                                                         lengths, errcode)
                               : NULL;
}

static cl_program CL_API_CALL load_program(cl_context context, cl_uint count,
                                           const cl_device_id *ids, const size_t *lengths,
                                           const unsigned char **binaries, cl_int *status,
                                           cl_int *errcode)
{
    const struct fault *fault;
    const cl_int error = layer_enter(CALL_clCreateProgramWithBinary,
                                     layer_device_of_context(context), 0, &fault);
    set(errcode, error);
    return error == CL_SUCCESS ? layer_target->clCreateProgramWithBinary(
                                     context, count, ids, lengths, binaries, status, errcode)
                               : NULL;
}

static cl_int CL_API_CALL build_program(cl_program program, cl_uint count,
                                        const cl_device_id *ids, const char *options,
                                        void(CL_CALLBACK *notify)(cl_program, void *),
                                        void *data)
{
    const struct fault *fault;
    const cl_int error =
        layer_enter(CALL_clBuildProgram, layer_device_of_program(program), 0, &fault);
    return error == CL_SUCCESS
               ? layer_target->clBuildProgram(program, count, ids, options, notify, data)
               : error;
}

static cl_kernel CL_API_CALL create_kernel(cl_program program, const char *name,
                                           cl_int *errcode)
{
    const struct fault *fault;
    const cl_int error =
        layer_enter(CALL_clCreateKernel, layer_device_of_program(program), 0, &fault);
    set(errcode, error);
    return error == CL_SUCCESS ? layer_target->clCreateKernel(program, name, errcode) : NULL;
}

static cl_int CL_API_CALL set_kernel_arg(cl_kernel kernel, cl_uint index, size_t bytes,
                                         const void *value)
{
    const struct fault *fault;
    const cl_int error =
        layer_enter(CALL_clSetKernelArg, layer_device_of_kernel(kernel), 0, &fault);
    if (value && bytes == sizeof(cl_mem))
        layer_set_arg(kernel, index, *(const cl_mem *)value);
    return error == CL_SUCCESS ? layer_target->clSetKernelArg(kernel, index, bytes, value)
                               : error;
}

static cl_int CL_API_CALL flush(cl_command_queue queue)
{
    const struct fault *fault;
    const cl_int error = layer_enter(CALL_clFlush, layer_device_of_queue(queue), 0, &fault);
    return error == CL_SUCCESS ? layer_target->clFlush(queue) : error;
}

static cl_int CL_API_CALL finish(cl_command_queue queue)
{
    const struct fault *fault;
    const cl_int error = layer_enter(CALL_clFinish, layer_device_of_queue(queue), 0, &fault);
    return error == CL_SUCCESS ? layer_target->clFinish(queue) : error;
}

static cl_int CL_API_CALL wait_for_events(cl_uint count, const cl_event *events)
{
    const struct fault *fault;
    const int device = count && events ? layer_device_of_event(events[0]) : -1;
    cl_int error = layer_enter(CALL_clWaitForEvents, device, 0, &fault);
    if (error == CL_SUCCESS)
        error = layer_target->clWaitForEvents(count, events);
    for (cl_uint i = 0; i < count && error == CL_SUCCESS; i++)
        if (layer_event_code(events[i]) != CL_SUCCESS)
            error = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
    return error;
}

static cl_int CL_API_CALL get_event_info(cl_event event, cl_event_info what, size_t bytes,
                                         void *value, size_t *need)
{
    const struct fault *fault;
    cl_int error = layer_enter(CALL_clGetEventInfo, layer_device_of_event(event), 0, &fault);
    if (error == CL_SUCCESS)
        error = layer_target->clGetEventInfo(event, what, bytes, value, need);
    if (error != CL_SUCCESS || what != CL_EVENT_COMMAND_EXECUTION_STATUS || !value)
        return error;
    const cl_int code = layer_event_code(event);
    cl_int status;
    memcpy(&status, value, sizeof status);
    if (status == CL_COMPLETE && code != CL_SUCCESS)
        memcpy(value, &code, sizeof code);
    return CL_SUCCESS;
}

static cl_int CL_API_CALL get_profiling_info(cl_event event, cl_profiling_info what,
                                             size_t bytes, void *value, size_t *need)
{
    const struct fault *fault;
    const cl_int error =
        layer_enter(CALL_clGetEventProfilingInfo, layer_device_of_event(event), 0, &fault);
    if (error != CL_SUCCESS)
        return error;
    if (layer_event_code(event) != CL_SUCCESS)
        return CL_PROFILING_INFO_NOT_AVAILABLE;
    return layer_target->clGetEventProfilingInfo(event, what, bytes, value, need);
}

/* What the layer's table leaves empty, the loader fills from the target's. */
CL_API_ENTRY cl_int CL_API_CALL clInitLayer(cl_uint count, const cl_icd_dispatch *target,
                                            cl_uint *layer_count, const cl_icd_dispatch **layer)
{
    static cl_icd_dispatch dispatch;
    if (!target || !layer_count || !layer || count < sizeof dispatch / sizeof(void *))
        return CL_INVALID_VALUE;
    faults_read();
    layer_target = target;
    dispatch.clCreateContext = create_context;
    dispatch.clCreateCommandQueue = create_queue;
    dispatch.clCreateBuffer = create_buffer;
    dispatch.clCreateSubBuffer = create_sub_buffer;
    dispatch.clCreateProgramWithSource = create_program;
    dispatch.clCreateProgramWithBinary = load_program;
    dispatch.clBuildProgram = build_program;
    dispatch.clCreateKernel = create_kernel;
    dispatch.clSetKernelArg = set_kernel_arg;
    dispatch.clFlush = flush;
    dispatch.clFinish = finish;
    dispatch.clWaitForEvents = wait_for_events;
    dispatch.clGetEventInfo = get_event_info;
    dispatch.clGetEventProfilingInfo = get_profiling_info;
    layer_add_commands(&dispatch);
    *layer_count = sizeof dispatch / sizeof(void *);
    *layer = &dispatch;
    return CL_SUCCESS;
}
