/* An OpenCL layer that counts objects: those that are made, those that live at the end, and the
 * most that lived at a time go as "KIND MADE LIVING MOST" into the file that LOCKSTEP_OBJECTS
 * names. Of events only those count that a call hands out. */
#include "device/layer_info.h"

#include <CL/cl_layer.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char layer_name[] = "counts objects for Lockstep's tests";

static const cl_icd_dispatch *target;

enum kind { CONTEXTS, QUEUES, BUFFERS, PROGRAMS, KERNELS, EVENTS, KINDS };
static const char *const names[] = {"contexts", "queues",  "buffers",
                                    "programs", "kernels", "events"};
static atomic_long made[KINDS], living[KINDS], most[KINDS];

static void count(enum kind kind, const void *object)
{
    if (!object)
        return;
    atomic_fetch_add(&made[kind], 1);
    const long now = atomic_fetch_add(&living[kind], 1) + 1;
    for (long before = atomic_load(&most[kind]);
         before < now && !atomic_compare_exchange_weak(&most[kind], &before, now);)
        ;
}

static cl_context CL_API_CALL create_context(
    const cl_context_properties *properties, cl_uint devices, const cl_device_id *ids,
    void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *data,
    cl_int *error)
{
    cl_context found = target->clCreateContext(properties, devices, ids, notify, data, error);
    count(CONTEXTS, found);
    return found;
}

static cl_command_queue CL_API_CALL create_queue(cl_context context, cl_device_id id,
                                                 cl_command_queue_properties properties,
                                                 cl_int *error)
{
    cl_command_queue found = target->clCreateCommandQueue(context, id, properties, error);
    count(QUEUES, found);
    return found;
}

static cl_mem CL_API_CALL create_buffer(cl_context context, cl_mem_flags flags, size_t bytes,
                                        void *host, cl_int *error)
{
    cl_mem found = target->clCreateBuffer(context, flags, bytes, host, error);
    count(BUFFERS, found);
    return found;
}

static cl_mem CL_API_CALL create_sub_buffer(cl_mem mem, cl_mem_flags flags,
                                            cl_buffer_create_type type, const void *region,
                                            cl_int *error)
{
    cl_mem found = target->clCreateSubBuffer(mem, flags, type, region, error);
    count(BUFFERS, found);
    return found;
}

static cl_program CL_API_CALL create_program(cl_context context, cl_uint texts,
                                             const char **text, const size_t *bytes,
                                             cl_int *error)
{
    cl_program found = target->clCreateProgramWithSource(context, texts, text, bytes, error);
    count(PROGRAMS, found);
    return found;
}

static cl_program CL_API_CALL load_program(cl_context context, cl_uint devices,
                                           const cl_device_id *ids, const size_t *bytes,
                                           const unsigned char **binaries, cl_int *results,
                                           cl_int *error)
{
    cl_program found = target->clCreateProgramWithBinary(context, devices, ids, bytes, binaries,
                                                         results, error);
    count(PROGRAMS, found);
    return found;
}

static cl_kernel CL_API_CALL create_kernel(cl_program program, const char *name, cl_int *error)
{
    cl_kernel found = target->clCreateKernel(program, name, error);
    count(KERNELS, found);
    return found;
}

/* A call that may hand out an event as its last argument. */
static cl_int seen(cl_int error, const cl_event *event)
{
    count(EVENTS, error == CL_SUCCESS && event ? *event : NULL);
    return error;
}

#define WAITS cl_uint waits, const cl_event *wait_list, cl_event *event
#define GIVEN waits, wait_list, event

static cl_int CL_API_CALL run_kernel(cl_command_queue queue, cl_kernel kernel, cl_uint rank,
                                     const size_t *offset, const size_t *global,
                                     const size_t *local, WAITS)
{
    return seen(
        target->clEnqueueNDRangeKernel(queue, kernel, rank, offset, global, local, GIVEN),
        event);
}

static cl_int CL_API_CALL read_buffer(cl_command_queue queue, cl_mem mem, cl_bool waits_for_it,
                                      size_t offset, size_t bytes, void *to, WAITS)
{
    return seen(target->clEnqueueReadBuffer(queue, mem, waits_for_it, offset, bytes, to, GIVEN),
                event);
}

static cl_int CL_API_CALL write_buffer(cl_command_queue queue, cl_mem mem, cl_bool waits_for_it,
                                       size_t offset, size_t bytes, const void *from, WAITS)
{
    return seen(
        target->clEnqueueWriteBuffer(queue, mem, waits_for_it, offset, bytes, from, GIVEN),
        event);
}

static cl_int CL_API_CALL copy_buffer(cl_command_queue queue, cl_mem from, cl_mem to,
                                      size_t from_offset, size_t to_offset, size_t bytes, WAITS)
{
    return seen(
        target->clEnqueueCopyBuffer(queue, from, to, from_offset, to_offset, bytes, GIVEN),
        event);
}

static cl_int CL_API_CALL fill_buffer(cl_command_queue queue, cl_mem mem, const void *pattern,
                                      size_t pattern_bytes, size_t offset, size_t bytes, WAITS)
{
    return seen(
        target->clEnqueueFillBuffer(queue, mem, pattern, pattern_bytes, offset, bytes, GIVEN),
        event);
}

static void *CL_API_CALL map_buffer(cl_command_queue queue, cl_mem mem, cl_bool waits_for_it,
                                    cl_map_flags flags, size_t offset, size_t bytes, WAITS,
                                    cl_int *error)
{
    cl_int found;
    void *memory = target->clEnqueueMapBuffer(queue, mem, waits_for_it, flags, offset, bytes,
                                              GIVEN, &found);
    if (error)
        *error = found;
    (void)seen(found, event);
    return memory;
}

static cl_int CL_API_CALL unmap(cl_command_queue queue, cl_mem mem, void *memory, WAITS)
{
    return seen(target->clEnqueueUnmapMemObject(queue, mem, memory, GIVEN), event);
}

static cl_int CL_API_CALL mark(cl_command_queue queue, WAITS)
{
    return seen(target->clEnqueueMarkerWithWaitList(queue, GIVEN), event);
}

static cl_int CL_API_CALL bar(cl_command_queue queue, WAITS)
{
    return seen(target->clEnqueueBarrierWithWaitList(queue, GIVEN), event);
}

static cl_event CL_API_CALL create_event(cl_context context, cl_int *error)
{
    cl_event found = target->clCreateUserEvent(context, error);
    count(EVENTS, found);
    return found;
}

#define CHANGES(function, type, name, kind, by)                                                \
    static cl_int CL_API_CALL function(type object)                                            \
    {                                                                                          \
        const cl_int error = target->name(object);                                             \
        if (error == CL_SUCCESS)                                                               \
            atomic_fetch_add(&living[kind], by);                                               \
        return error;                                                                          \
    }

CHANGES(release_context, cl_context, clReleaseContext, CONTEXTS, -1)
CHANGES(release_queue, cl_command_queue, clReleaseCommandQueue, QUEUES, -1)
CHANGES(retain_queue, cl_command_queue, clRetainCommandQueue, QUEUES, 1)
CHANGES(release_buffer, cl_mem, clReleaseMemObject, BUFFERS, -1)
CHANGES(retain_buffer, cl_mem, clRetainMemObject, BUFFERS, 1)
CHANGES(release_program, cl_program, clReleaseProgram, PROGRAMS, -1)
CHANGES(release_kernel, cl_kernel, clReleaseKernel, KERNELS, -1)
CHANGES(release_event, cl_event, clReleaseEvent, EVENTS, -1)
CHANGES(retain_event, cl_event, clRetainEvent, EVENTS, 1)

static void tell(void)
{
    const char *path = getenv("LOCKSTEP_OBJECTS");
    FILE *file = path ? fopen(path, "w") : NULL;
    for (int i = 0; file && i < KINDS; i++)
        fprintf(file, "%s %ld %ld %ld\n", names[i], atomic_load(&made[i]),
                atomic_load(&living[i]), atomic_load(&most[i]));
    if (file)
        fclose(file);
}

/* What the layer's table leaves empty, the loader fills from the target's. */
CL_API_ENTRY cl_int CL_API_CALL clInitLayer(cl_uint entries, const cl_icd_dispatch *below,
                                            cl_uint *own_entries, const cl_icd_dispatch **own)
{
    static cl_icd_dispatch dispatch;
    if (!below || !own_entries || !own || entries < sizeof dispatch / sizeof(void *))
        return CL_INVALID_VALUE;
    target = below;
    dispatch.clCreateContext = create_context;
    dispatch.clCreateCommandQueue = create_queue;
    dispatch.clCreateBuffer = create_buffer;
    dispatch.clCreateSubBuffer = create_sub_buffer;
    dispatch.clCreateProgramWithSource = create_program;
    dispatch.clCreateProgramWithBinary = load_program;
    dispatch.clCreateKernel = create_kernel;
    dispatch.clReleaseContext = release_context;
    dispatch.clReleaseCommandQueue = release_queue;
    dispatch.clRetainCommandQueue = retain_queue;
    dispatch.clReleaseMemObject = release_buffer;
    dispatch.clRetainMemObject = retain_buffer;
    dispatch.clReleaseProgram = release_program;
    dispatch.clReleaseKernel = release_kernel;
    dispatch.clEnqueueNDRangeKernel = run_kernel;
    dispatch.clEnqueueReadBuffer = read_buffer;
    dispatch.clEnqueueWriteBuffer = write_buffer;
    dispatch.clEnqueueCopyBuffer = copy_buffer;
    dispatch.clEnqueueFillBuffer = fill_buffer;
    dispatch.clEnqueueMapBuffer = map_buffer;
    dispatch.clEnqueueUnmapMemObject = unmap;
    dispatch.clEnqueueMarkerWithWaitList = mark;
    dispatch.clEnqueueBarrierWithWaitList = bar;
    dispatch.clCreateUserEvent = create_event;
    dispatch.clReleaseEvent = release_event;
    dispatch.clRetainEvent = retain_event;
    *own_entries = sizeof dispatch / sizeof(void *);
    *own = &dispatch;
    atexit(tell);
    return CL_SUCCESS;
}
