/* Wrappers of the functions that put a command into a queue, with the faults of events and of
 * data. Data is only changed once it is there, so a transfer with such a fault blocks. */
#include "fault/layer.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A command between its two ends. */
struct command {
    cl_command_queue queue;
    const struct fault *fault; /* of its data */
    cl_int code;               /* that its event reports */
};

/* No command behind this one ever runs: the queue is in order. */
static cl_int stall(cl_command_queue queue)
{
    cl_context context = NULL;
    cl_int error = layer_target->clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context,
                                                       &context, NULL);
    cl_event never = NULL;
    if (error == CL_SUCCESS)
        never = layer_target->clCreateUserEvent(context, &error);
    if (error == CL_SUCCESS)
        error = layer_target->clEnqueueBarrierWithWaitList(queue, 1, &never, NULL);
    return error;
}

static cl_int begin_with(struct command *command, const struct fault *fault,
                         cl_command_queue queue, cl_uint waits, const cl_event *list)
{
    *command = (struct command){.queue = queue};
    for (cl_uint i = 0; i < waits; i++)
        if (layer_event_code(list[i]) != CL_SUCCESS)
            command->code = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
    if (fault && fault->kind == FAULT_EVENT_ERROR)
        command->code = fault->code;
    else if (fault && fault->kind == FAULT_HANG_EVENT)
        return stall(queue);
    else
        command->fault = fault;
    return CL_SUCCESS;
}

static cl_int begin(struct command *command, enum call call, cl_command_queue queue,
                    size_t bytes, cl_uint waits, const cl_event *list)
{
    const struct fault *fault;
    const cl_int error = layer_enter(call, layer_device_of_queue(queue), bytes, &fault);
    *command = (struct command){.queue = queue};
    return error == CL_SUCCESS ? begin_with(command, fault, queue, waits, list) : error;
}

/* `event`: the command's; NULL: it was not asked for. Then the queue's later ones report what
 * it has to, as those of a queue that is in order may. */
static cl_int end(const struct command *command, cl_int error, cl_bool blocking,
                  const cl_event *event)
{
    if (error != CL_SUCCESS)
        return error;
    const cl_int before = layer_queue_code(command->queue);
    const cl_int code = command->code != CL_SUCCESS ? command->code : before;
    if (code == CL_SUCCESS)
        return CL_SUCCESS;
    if (event)
        layer_spoil_event(*event, code);
    else if (!blocking && before == CL_SUCCESS)
        layer_spoil_queue(command->queue, code);
    return blocking ? code : CL_SUCCESS;
}

/* Changes the word in the middle, one bit of it or all. */
static void spoil(const struct fault *fault, void *data, size_t bytes)
{
    static const uint32_t nan_bits = 0x7fc00000u;
    unsigned char *at = (unsigned char *)data + bytes / 8 * 4;
    uint32_t word;
    if (bytes < sizeof word) {
        *(unsigned char *)data ^= 1;
        return;
    }
    memcpy(&word, at, sizeof word);
    word = fault->kind == FAULT_NAN ? nan_bits : word ^ UINT32_C(1) << fault->bit;
    memcpy(at, &word, sizeof word);
}

/* What the kernel has written is overwritten behind it: all by NaN, or a quarter by ones. */
static cl_int overwrite(cl_command_queue queue, cl_mem mem, enum fault_kind kind)
{
    static const uint32_t nan_bits = 0x7fc00000u, one_bits = 0x3f800000u;
    const bool is_nan = kind == FAULT_NAN;
    size_t bytes = 0;
    if (!mem || layer_target->clGetMemObjectInfo(mem, CL_MEM_SIZE, sizeof bytes, &bytes,
                                                 NULL) != CL_SUCCESS)
        return CL_INVALID_MEM_OBJECT;
    const size_t words = bytes / sizeof nan_bits / (is_nan ? 1 : 4);
    return layer_target->clEnqueueFillBuffer(queue, mem, is_nan ? &nan_bits : &one_bits,
                                             sizeof nan_bits, 0, words * sizeof nan_bits, 0,
                                             NULL, NULL);
}

static cl_int CL_API_CALL enqueue_kernel(cl_command_queue queue, cl_kernel kernel,
                                         cl_uint dimensions, const size_t *offset,
                                         const size_t *global, const size_t *local,
                                         cl_uint waits, const cl_event *list, cl_event *event)
{
    struct command command = {.queue = queue};
    const struct fault *fault;
    cl_int error = layer_enter_kernel(layer_device_of_queue(queue), kernel, &fault);
    if (error == CL_SUCCESS)
        error = begin_with(&command, fault, queue, waits, list);
    if (error == CL_SUCCESS)
        error = layer_target->clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global,
                                                     local, waits, list, event);
    if (error == CL_SUCCESS && command.fault &&
        (command.fault->kind == FAULT_NAN || command.fault->kind == FAULT_CORRUPT))
        error = overwrite(queue, layer_find_arg(kernel, (cl_uint)command.fault->arg),
                          command.fault->kind);
    return end(&command, error, CL_FALSE, event);
}

static cl_int CL_API_CALL enqueue_read(cl_command_queue queue, cl_mem mem, cl_bool blocking,
                                       size_t offset, size_t bytes, void *to, cl_uint waits,
                                       const cl_event *list, cl_event *event)
{
    struct command command;
    cl_int error = begin(&command, CALL_clEnqueueReadBuffer, queue, bytes, waits, list);
    if (error == CL_SUCCESS)
        error =
            layer_target->clEnqueueReadBuffer(queue, mem, command.fault ? CL_TRUE : blocking,
                                              offset, bytes, to, waits, list, event);
    if (error == CL_SUCCESS && command.fault)
        spoil(command.fault, to, bytes);
    return end(&command, error, blocking, event);
}

static cl_int CL_API_CALL enqueue_write(cl_command_queue queue, cl_mem mem, cl_bool blocking,
                                        size_t offset, size_t bytes, const void *from,
                                        cl_uint waits, const cl_event *list, cl_event *event)
{
    struct command command;
    cl_int error = begin(&command, CALL_clEnqueueWriteBuffer, queue, bytes, waits, list);
    void *copy = error == CL_SUCCESS && command.fault ? malloc(bytes) : NULL;
    if (copy) {
        memcpy(copy, from, bytes);
        spoil(command.fault, copy, bytes);
    }
    if (error == CL_SUCCESS)
        error =
            layer_target->clEnqueueWriteBuffer(queue, mem, copy ? CL_TRUE : blocking, offset,
                                               bytes, copy ? copy : from, waits, list, event);
    free(copy);
    return end(&command, error, blocking, event);
}

static cl_int CL_API_CALL enqueue_copy(cl_command_queue queue, cl_mem from, cl_mem to,
                                       size_t from_offset, size_t to_offset, size_t bytes,
                                       cl_uint waits, const cl_event *list, cl_event *event)
{
    struct command command;
    cl_int error = begin(&command, CALL_clEnqueueCopyBuffer, queue, bytes, waits, list);
    if (error == CL_SUCCESS)
        error = layer_target->clEnqueueCopyBuffer(queue, from, to, from_offset, to_offset,
                                                  bytes, waits, list, event);
    return end(&command, error, CL_FALSE, event);
}

static cl_int CL_API_CALL enqueue_fill(cl_command_queue queue, cl_mem mem, const void *pattern,
                                       size_t pattern_bytes, size_t offset, size_t bytes,
                                       cl_uint waits, const cl_event *list, cl_event *event)
{
    struct command command;
    cl_int error = begin(&command, CALL_clEnqueueFillBuffer, queue, bytes, waits, list);
    if (error == CL_SUCCESS)
        error = layer_target->clEnqueueFillBuffer(queue, mem, pattern, pattern_bytes, offset,
                                                  bytes, waits, list, event);
    return end(&command, error, CL_FALSE, event);
}

/* A map for writing carries no data yet, so faults of data pass it by. */
static void *CL_API_CALL enqueue_map(cl_command_queue queue, cl_mem mem, cl_bool blocking,
                                     cl_map_flags flags, size_t offset, size_t bytes,
                                     cl_uint waits, const cl_event *list, cl_event *event,
                                     cl_int *errcode)
{
    struct command command;
    void *memory = NULL;
    const bool reads = flags == CL_MAP_READ;
    cl_int error =
        begin(&command, CALL_clEnqueueMapBuffer, queue, reads ? bytes : 0, waits, list);
    if (error == CL_SUCCESS)
        memory =
            layer_target->clEnqueueMapBuffer(queue, mem, command.fault ? CL_TRUE : blocking,
                                             flags, offset, bytes, waits, list, event, &error);
    if (error == CL_SUCCESS) {
        if (command.fault)
            spoil(command.fault, memory, bytes);
        layer_add_map((struct map){memory, bytes, flags});
        error = end(&command, error, blocking, event);
    }
    if (errcode)
        *errcode = error;
    return error == CL_SUCCESS ? memory : NULL;
}

static cl_int CL_API_CALL enqueue_unmap(cl_command_queue queue, cl_mem mem, void *memory,
                                        cl_uint waits, const cl_event *list, cl_event *event)
{
    struct command command;
    const struct map map = layer_find_map(memory);
    const bool writes = map.flags & (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION);
    cl_int error = begin(&command, CALL_clEnqueueUnmapMemObject, queue, writes ? map.bytes : 0,
                         waits, list);
    if (error == CL_SUCCESS && command.fault)
        spoil(command.fault, memory, map.bytes);
    if (error == CL_SUCCESS)
        error = layer_target->clEnqueueUnmapMemObject(queue, mem, memory, waits, list, event);
    if (error == CL_SUCCESS)
        layer_take_map(memory);
    return end(&command, error, CL_FALSE, event);
}

static cl_int CL_API_CALL enqueue_marker(cl_command_queue queue, cl_uint waits,
                                         const cl_event *list, cl_event *event)
{
    struct command command;
    cl_int error = begin(&command, CALL_clEnqueueMarkerWithWaitList, queue, 0, waits, list);
    if (error == CL_SUCCESS)
        error = layer_target->clEnqueueMarkerWithWaitList(queue, waits, list, event);
    return end(&command, error, CL_FALSE, event);
}

static cl_int CL_API_CALL enqueue_barrier(cl_command_queue queue, cl_uint waits,
                                          const cl_event *list, cl_event *event)
{
    struct command command;
    cl_int error = begin(&command, CALL_clEnqueueBarrierWithWaitList, queue, 0, waits, list);
    if (error == CL_SUCCESS)
        error = layer_target->clEnqueueBarrierWithWaitList(queue, waits, list, event);
    return end(&command, error, CL_FALSE, event);
}

void layer_add_commands(struct _cl_icd_dispatch *dispatch)
{
    dispatch->clEnqueueNDRangeKernel = enqueue_kernel;
    dispatch->clEnqueueReadBuffer = enqueue_read;
    dispatch->clEnqueueWriteBuffer = enqueue_write;
    dispatch->clEnqueueCopyBuffer = enqueue_copy;
    dispatch->clEnqueueFillBuffer = enqueue_fill;
    dispatch->clEnqueueMapBuffer = enqueue_map;
    dispatch->clEnqueueUnmapMemObject = enqueue_unmap;
    dispatch->clEnqueueMarkerWithWaitList = enqueue_marker;
    dispatch->clEnqueueBarrierWithWaitList = enqueue_barrier;
}
