/* What a process does that compiles kernels ahead: PoCL compiles a kernel for good when a
 * thread of its own is about to run it, and then tells that it runs. The thread is held there,
 * so that the kernel is in the cache and nothing of it runs. */
#include "device/program/ahead.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST_BYTES = 64 << 20 };

struct request {
    int input;
    char *text; /* strings, each with its zero byte; the last is empty */
    cl_device_id id;
    cl_context context;
    cl_program program;
};

/* The next string of the list; "" stays where it is. */
static const char *next(const char *text)
{
    return *text ? text + strlen(text) + 1 : text;
}

/* Reads up to two zero bytes in a row. */
static bool read_request(struct request *request)
{
    size_t bytes = 0, room = 0;
    for (;;) {
        if (bytes == room) {
            room = room ? 2 * room : 1 << 16;
            char *more = room <= MOST_BYTES ? realloc(request->text, room) : NULL;
            if (!more)
                return false;
            request->text = more;
        }
        const ssize_t got = read(request->input, request->text + bytes, room - bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        bytes += (size_t)got;
        if (bytes >= 2 && request->text[bytes - 1] == '\0' && request->text[bytes - 2] == '\0')
            return true;
    }
}

/* PoCL loses a thread with each kernel, so it gets one for each. */
static void set_threads(const char *kernels)
{
    char number[32];
    int count = 2;
    for (; *kernels; kernels = next(kernels))
        count++;
    snprintf(number, sizeof number, "%d", count);
    setenv("POCL_MAX_PTHREAD_COUNT", number, 1);
}

static bool find_device(struct request *request)
{
    cl_device_id ids[LK_MOST_DEVICES];
    int count = 0;
    if (lk_opencl_list(ids, &count) != LK_OK)
        return false;
    for (int i = 0; i < count; i++) {
        char name[sizeof((struct lk_device_info *)0)->name] = "";
        if (clGetDeviceInfo(ids[i], CL_DEVICE_NAME, sizeof name, name, NULL) == CL_SUCCESS &&
            strcmp(name, request->text) == 0) {
            request->id = ids[i];
            return true;
        }
    }
    return false;
}

/* The caller has just built the same, so PoCL takes it from its cache. */
static bool build(struct request *request)
{
    const char *options = next(request->text), *source = next(options);
    cl_int error;
    request->context = clCreateContext(NULL, 1, &request->id, NULL, NULL, &error);
    if (error != CL_SUCCESS)
        return false;
    request->program = clCreateProgramWithSource(request->context, 1, &source, NULL, &error);
    return error == CL_SUCCESS &&
           clBuildProgram(request->program, 1, &request->id, options, NULL, NULL) == CL_SUCCESS;
}

/* Any value does, since the kernel never runs; but PoCL refuses sizes that do not fit, and
 * takes local memory without a value alone. It does not know the size of a struct. */
static bool set_args(cl_kernel kernel)
{
    static const char zeros[128];
    static const size_t sizes[] = {sizeof zeros, sizeof(cl_mem), sizeof(cl_int)};
    cl_uint count = 0;
    if (clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof count, &count, NULL) != CL_SUCCESS)
        return false;
    for (cl_uint i = 0; i < count; i++) {
        cl_int error = CL_INVALID_ARG_SIZE;
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0] && error != CL_SUCCESS; s++)
            error = clSetKernelArg(kernel, i, sizes[s], zeros);
        if (error != CL_SUCCESS && clSetKernelArg(kernel, i, 64, NULL) != CL_SUCCESS)
            return false;
    }
    return true;
}

static void CL_CALLBACK hold(cl_event event, cl_int state, void *compiled)
{
    (void)event;
    (void)state;
    sem_post(compiled);
    for (;;)
        pause();
}

/* The callback must be there before the kernel begins, so that waits for an event. */
static void compile(const struct request *request, cl_kernel kernel, sem_t *compiled)
{
    static const size_t one[] = {1, 1, 1};
    cl_int error;
    cl_event held, start = clCreateUserEvent(request->context, &error);
    cl_command_queue queue = clCreateCommandQueue(request->context, request->id, 0, &error);
    if (!start || !queue ||
        clEnqueueNDRangeKernel(queue, kernel, 3, NULL, one, one, 1, &start, &held) !=
            CL_SUCCESS ||
        clSetEventCallback(held, CL_RUNNING, hold, compiled) != CL_SUCCESS)
        return; /* what waits for the event never runs */
    clFlush(queue);
    clSetUserEventStatus(start, CL_COMPLETE);
    while (sem_wait(compiled) != 0)
        ;
}

static void *compile_all(void *argument)
{
    static sem_t compiled;
    struct request *request = argument;
    const char *kernels = next(next(next(request->text)));
    set_threads(kernels);
    if (sem_init(&compiled, 0, 0) == 0 && find_device(request) && build(request))
        for (; *kernels; kernels = next(kernels)) {
            cl_int error;
            cl_kernel kernel = clCreateKernel(request->program, kernels, &error);
            if (error == CL_SUCCESS && set_args(kernel))
                compile(request, kernel, &compiled);
        }
    shutdown(request->input, SHUT_RD);
    return NULL;
}

/* PoCL's threads go on using the request, so it is never released: the process ends now. */
void lk_device_compile_ahead(int input)
{
    static struct request request;
    pthread_t thread;
    char byte;
    const long files = sysconf(_SC_OPEN_MAX);
    for (int i = 3; i < files && i < 1024; i++) /* locks and pipes of the caller */
        if (i != input)
            close(i);
    request.input = input;
    if (!read_request(&request) || pthread_create(&thread, NULL, compile_all, &request) != 0)
        return;
    ssize_t got;
    do
        got = read(input, &byte, 1);
    while (got > 0 || (got < 0 && errno == EINTR));
}
