/* What the layer remembers of contexts, events, queues and maps. */
#include "fault/layer.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    MOST_EVENTS = 4096,
    MOST_QUEUES = 64,
    MOST_MAPS = 4096,
    MOST_KERNELS = 4096,
    MOST_ARGS = 8
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static cl_context contexts[MOST_DEVICES];
static int context_end; /* behind the last of them */

static struct {
    cl_event event;
    cl_int code;
} events[MOST_EVENTS];
static int event_count;

static struct {
    cl_command_queue queue;
    cl_int code;
} queues[MOST_QUEUES];
static int queue_count;

static struct map maps[MOST_MAPS];

static struct {
    cl_kernel kernel;
    cl_mem args[MOST_ARGS];
} kernels[MOST_KERNELS];
static int kernel_count;

static void full(const char *what)
{
    fprintf(stderr, "fault: no room for another %s\n", what);
    _exit(99);
}

void layer_add_context(cl_context context, int device)
{
    if (device >= MOST_DEVICES)
        full("context");
    pthread_mutex_lock(&mutex);
    contexts[device] = context;
    context_end = device >= context_end ? device + 1 : context_end;
    pthread_mutex_unlock(&mutex);
}

/* The newest of that address: older ones are gone. */
int layer_device_of_context(cl_context context)
{
    pthread_mutex_lock(&mutex);
    int device = context ? context_end - 1 : -1;
    while (device >= 0 && contexts[device] != context)
        device--;
    pthread_mutex_unlock(&mutex);
    return device;
}

#define DEVICE_OF(kind, type, get, what)                                                       \
    int layer_device_of_##kind(type object)                                                    \
    {                                                                                          \
        cl_context context = NULL;                                                             \
        if (layer_target->get(object, what, sizeof context, &context, NULL) != CL_SUCCESS)     \
            return -1;                                                                         \
        return layer_device_of_context(context);                                               \
    }
DEVICE_OF(queue, cl_command_queue, clGetCommandQueueInfo, CL_QUEUE_CONTEXT)
DEVICE_OF(mem, cl_mem, clGetMemObjectInfo, CL_MEM_CONTEXT)
DEVICE_OF(program, cl_program, clGetProgramInfo, CL_PROGRAM_CONTEXT)
DEVICE_OF(kernel, cl_kernel, clGetKernelInfo, CL_KERNEL_CONTEXT)
DEVICE_OF(event, cl_event, clGetEventInfo, CL_EVENT_CONTEXT)

static void wait_ms(long ms)
{
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    while (nanosleep(&left, &left) != 0)
        ;
}

static cl_int enter(const struct fault *found, int device, const struct fault **fault)
{
    *fault = found;
    if (!found)
        return fault_lost(device);
    if (found->kind == FAULT_ERROR)
        return found->code;
    while (found->kind == FAULT_HANG)
        pause();
    if (found->kind == FAULT_DELAY) {
        wait_ms(found->ms);
        *fault = NULL;
    }
    return CL_SUCCESS;
}

cl_int layer_enter(enum call call, int device, size_t bytes, const struct fault **fault)
{
    return enter(fault_find(call, device, bytes, NULL), device, fault);
}

cl_int layer_enter_kernel(int device, cl_kernel kernel, const struct fault **fault)
{
    char name[128] = "";
    layer_target->clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name, name, NULL);
    return enter(fault_find(CALL_clEnqueueNDRangeKernel, device, 0, name), device, fault);
}

/* Its place; the mutex is held. */
static int find_kernel(cl_kernel kernel)
{
    int i = 0;
    while (i < kernel_count && kernels[i].kernel != kernel)
        i++;
    return i;
}

void layer_set_arg(cl_kernel kernel, cl_uint index, cl_mem mem)
{
    if (index >= MOST_ARGS)
        return;
    pthread_mutex_lock(&mutex);
    const int i = find_kernel(kernel);
    if (i == MOST_KERNELS)
        full("kernel");
    kernel_count += i == kernel_count;
    kernels[i].kernel = kernel;
    kernels[i].args[index] = mem;
    pthread_mutex_unlock(&mutex);
}

cl_mem layer_find_arg(cl_kernel kernel, cl_uint index)
{
    pthread_mutex_lock(&mutex);
    const int i = find_kernel(kernel);
    cl_mem mem = i < kernel_count && index < MOST_ARGS ? kernels[i].args[index] : NULL;
    pthread_mutex_unlock(&mutex);
    return mem;
}

void layer_spoil_event(cl_event event, cl_int code)
{
    layer_target->clRetainEvent(event);
    pthread_mutex_lock(&mutex);
    if (event_count == MOST_EVENTS)
        full("spoiled event");
    events[event_count].event = event;
    events[event_count++].code = code;
    pthread_mutex_unlock(&mutex);
}

cl_int layer_event_code(cl_event event)
{
    cl_int code = CL_SUCCESS;
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < event_count && code == CL_SUCCESS; i++)
        if (events[i].event == event)
            code = events[i].code;
    pthread_mutex_unlock(&mutex);
    return code;
}

void layer_spoil_queue(cl_command_queue queue, cl_int code)
{
    pthread_mutex_lock(&mutex);
    if (queue_count == MOST_QUEUES)
        full("spoiled queue");
    queues[queue_count].queue = queue;
    queues[queue_count++].code = code;
    pthread_mutex_unlock(&mutex);
}

cl_int layer_queue_code(cl_command_queue queue)
{
    cl_int code = CL_SUCCESS;
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < queue_count && code == CL_SUCCESS; i++)
        if (queues[i].queue == queue)
            code = queues[i].code;
    pthread_mutex_unlock(&mutex);
    return code;
}

/* The map's place, or that of an empty one for NULL; the mutex is held. */
static struct map *place_of(const void *memory)
{
    for (int i = 0; i < MOST_MAPS; i++)
        if (maps[i].memory == memory)
            return &maps[i];
    return NULL;
}

void layer_add_map(struct map map)
{
    pthread_mutex_lock(&mutex);
    struct map *place = place_of(NULL);
    if (!place)
        full("map");
    *place = map;
    pthread_mutex_unlock(&mutex);
}

struct map layer_find_map(const void *memory)
{
    pthread_mutex_lock(&mutex);
    const struct map *place = memory ? place_of(memory) : NULL;
    const struct map found = place ? *place : (struct map){0};
    pthread_mutex_unlock(&mutex);
    return found;
}

struct map layer_take_map(const void *memory)
{
    pthread_mutex_lock(&mutex);
    struct map *place = memory ? place_of(memory) : NULL;
    const struct map found = place ? *place : (struct map){0};
    if (place)
        *place = (struct map){0};
    pthread_mutex_unlock(&mutex);
    return found;
}
