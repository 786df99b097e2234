/* Keeps when each command of a device's queues ran, by OpenCL's profiling events. */
#include "device/trace.h"

#include "base/clock.h"
#include "base/fail.h"
#include "device/opencl.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct command {
    cl_event event;
    int64_t step;
    size_t bytes;
    enum lk_trace_queue queue;
    char name[64];
};

/* Commands in a ring, the oldest at `first`. */
struct lk_trace {
    pthread_mutex_t mutex; /* of all but the clocks */
    cl_ulong device_clock; /* nanoseconds when the host's clock showed host_clock */
    double host_clock;
    int64_t dropped;
    int room, first, count;
    struct command commands[];
};

/* false: the event has no such time. */
static bool get_time(cl_event event, cl_profiling_info which, cl_ulong *time)
{
    return clGetEventProfilingInfo(event, which, sizeof *time, time, NULL) == CL_SUCCESS;
}

/* Reads both clocks at about the same time: a marker runs through the idle queue between two
 * readings of the host's clock and is taken to lie in the middle of them. `slack`: by how many
 * seconds the host's interval is longer than the marker's. */
static enum lk_status compare_clocks(struct lk_device *device, cl_ulong *device_clock,
                                     double *host_clock, double *slack)
{
    cl_event event = NULL;
    cl_ulong queued = 0, end = 0;
    const double before = lk_seconds();
    cl_int error = clEnqueueMarkerWithWaitList(device->queue, 0, NULL, &event);
    if (error != CL_SUCCESS)
        return lk_device_fail(device, error, "clEnqueueMarkerWithWaitList");
    error = clWaitForEvents(1, &event);
    const double after = lk_seconds();
    const bool has_times = get_time(event, CL_PROFILING_COMMAND_END, &end);
    if (!get_time(event, CL_PROFILING_COMMAND_QUEUED, &queued) || queued > end ||
        1e-9 * (double)(end - queued) > after - before)
        queued = end; /* the driver does not tell when a marker was queued */
    clReleaseEvent(event);
    if (error != CL_SUCCESS)
        return lk_device_fail(device, error, "clWaitForEvents");
    if (!has_times)
        return lk_fail(LK_E_UNSUPPORTED, "%s tells no times of its commands",
                       device->info.name);
    *slack = after - before - 1e-9 * (double)(end - queued);
    *host_clock = before + *slack / 2;
    *device_clock = queued;
    return LK_OK;
}

static enum lk_status compare_clocks_well(struct lk_device *device, struct lk_trace *trace)
{
    double tightest = 1e9;
    LK_TRY(lk_device_finish(device));
    for (int i = 0; i < 10; i++) {
        cl_ulong device_clock = 0;
        double host_clock = 0, slack = 0;
        LK_TRY(compare_clocks(device, &device_clock, &host_clock, &slack));
        if (slack < tightest) {
            tightest = slack;
            trace->device_clock = device_clock;
            trace->host_clock = host_clock;
        }
    }
    return LK_OK;
}

enum lk_status lk_trace_begin(struct lk_device *device, int most)
{
    lk_trace_end(device);
    struct lk_trace *trace =
        calloc(1, sizeof *trace + (size_t)most * sizeof trace->commands[0]);
    if (!trace)
        return lk_fail_memory("a trace", (size_t)most * sizeof trace->commands[0]);
    trace->room = most;
    const enum lk_status status = compare_clocks_well(device, trace);
    if (status != LK_OK) {
        free(trace);
        return status;
    }
    pthread_mutex_init(&trace->mutex, NULL);
    device->trace = trace;
    return LK_OK;
}

void lk_trace_end(struct lk_device *device)
{
    struct lk_trace *trace = device->trace;
    lk_trace_step(device, 0);
    device->trace = NULL;
    if (!trace)
        return;
    for (int i = 0; i < trace->count; i++)
        clReleaseEvent(trace->commands[(trace->first + i) % trace->room].event);
    pthread_mutex_destroy(&trace->mutex);
    free(trace);
}

void lk_trace_step(struct lk_device *device, int64_t step)
{
    if (device->trace)
        atomic_store_explicit(&device->traced_step, step, memory_order_relaxed);
}

void lk_trace_add(struct lk_device *device, cl_command_queue queue, const char *name,
                  size_t bytes, cl_event event)
{
    struct lk_trace *trace = device->trace;
    if (!event)
        return;
    pthread_mutex_lock(&trace->mutex);
    if (trace->count < trace->room) {
        struct command *command =
            &trace->commands[(trace->first + trace->count++) % trace->room];
        *command = (struct command){
            .event = event,
            .step = atomic_load_explicit(&device->traced_step, memory_order_relaxed),
            .bytes = bytes,
            .queue = queue == device->queue    ? LK_TRACE_COMPUTE
                     : queue == device->upload ? LK_TRACE_UPLOAD
                                               : LK_TRACE_TRANSFER,
        };
        snprintf(command->name, sizeof command->name, "%s", name);
        event = NULL;
    } else {
        trace->dropped++;
    }
    pthread_mutex_unlock(&trace->mutex);
    if (event)
        clReleaseEvent(event);
}

void lk_trace_add_retained(struct lk_device *device, cl_command_queue queue, const char *name,
                           size_t bytes, cl_event event)
{
    if (event && lk_trace_place(device, &event)) {
        clRetainEvent(event);
        lk_trace_add(device, queue, name, bytes, event);
    }
}

static double host_seconds(const struct lk_trace *trace, cl_ulong time)
{
    return trace->host_clock + 1e-9 * (double)(cl_long)(time - trace->device_clock);
}

/* Fills in a command's times; false: the driver gives none, or impossible ones. */
static bool fill(const struct lk_trace *trace, const struct command *command,
                 struct lk_traced *to)
{
    cl_ulong queued = 0, start = 0, end = 0;
    if (!get_time(command->event, CL_PROFILING_COMMAND_QUEUED, &queued) ||
        !get_time(command->event, CL_PROFILING_COMMAND_START, &start) ||
        !get_time(command->event, CL_PROFILING_COMMAND_END, &end) || start > end)
        return false;
    *to = (struct lk_traced){
        .queue = command->queue,
        .step = command->step,
        .bytes = command->bytes,
        .queued = host_seconds(trace, queued),
        .start = host_seconds(trace, start),
        .end = host_seconds(trace, end),
    };
    memcpy(to->name, command->name, sizeof to->name);
    return true;
}

int lk_trace_collect(struct lk_device *device, struct lk_traced *to, int most, int64_t *dropped)
{
    struct lk_trace *trace = device->trace;
    int taken = 0;
    if (!trace)
        return 0;
    pthread_mutex_lock(&trace->mutex);
    while (trace->count > 0 && taken < most) {
        const struct command *command = &trace->commands[trace->first];
        cl_int state = CL_COMPLETE; /* negative: it failed */
        if (clGetEventInfo(command->event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state,
                           &state, NULL) == CL_SUCCESS &&
            state > CL_COMPLETE)
            break;
        if (state == CL_COMPLETE && fill(trace, command, &to[taken]))
            taken++;
        else
            trace->dropped++;
        clReleaseEvent(command->event);
        trace->first = (trace->first + 1) % trace->room;
        trace->count--;
    }
    *dropped += trace->dropped;
    trace->dropped = 0;
    pthread_mutex_unlock(&trace->mutex);
    lk_device_block_if_abandoned(device);
    return taken;
}
