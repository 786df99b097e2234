/* Shows that each kind of fault does what tests/fault/faults.h says. Every case runs in a child
 * process that has LOCKSTEP_FAULT set, with two contexts on the first OpenCL device. */
#include "base/clock.h"
#include "device/rig.h"

#include <CL/cl.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { COUNT = 8, BYTES = COUNT * sizeof(float) };

/* What a case works on. */
static struct side {
    cl_context context;
    cl_command_queue queue;
    cl_mem mem;
    cl_kernel kernel; /* adds 1 to each element of mem */
} sides[2];
static cl_device_id id;
static const float ones[COUNT] = {1, 1, 1, 1, 1, 1, 1, 1};

#define EXPECT(what)                                                                           \
    do {                                                                                       \
        if (!(what)) {                                                                         \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what);                 \
            return 1;                                                                          \
        }                                                                                      \
    } while (0)

static cl_int open_side(struct side *side)
{
    static const char *const text = "__kernel void add_one(__global float *x)"
                                    "{ x[get_global_id(0)] += 1; }";
    cl_int error;
    side->context = clCreateContext(NULL, 1, &id, NULL, NULL, &error);
    if (error != CL_SUCCESS)
        return error;
    side->queue = clCreateCommandQueue(side->context, id, CL_QUEUE_PROFILING_ENABLE, &error);
    if (error != CL_SUCCESS)
        return error;
    side->mem = clCreateBuffer(side->context, CL_MEM_READ_WRITE, BYTES, NULL, &error);
    if (error != CL_SUCCESS)
        return error;
    const char *texts[] = {text};
    cl_program program = clCreateProgramWithSource(side->context, 1, texts, NULL, &error);
    if (error == CL_SUCCESS)
        error = clBuildProgram(program, 1, &id, "", NULL, NULL);
    if (error != CL_SUCCESS)
        return error;
    side->kernel = clCreateKernel(program, "add_one", &error);
    clReleaseProgram(program);
    if (error == CL_SUCCESS)
        error = clSetKernelArg(side->kernel, 0, sizeof side->mem, &side->mem);
    return error;
}

static cl_int write_ones(const struct side *side)
{
    return clEnqueueWriteBuffer(side->queue, side->mem, CL_TRUE, 0, BYTES, ones, 0, NULL, NULL);
}

static cl_int read_values(const struct side *side, float *values)
{
    return clEnqueueReadBuffer(side->queue, side->mem, CL_TRUE, 0, BYTES, values, 0, NULL,
                               NULL);
}

static cl_int launch(const struct side *side, cl_event *event)
{
    const size_t count = COUNT;
    return clEnqueueNDRangeKernel(side->queue, side->kernel, 1, NULL, &count, NULL, 0, NULL,
                                  event);
}

static cl_int status_of(cl_event event)
{
    cl_int status = 1;
    clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
    return status;
}

static int differing(const float *values, float expected)
{
    int count = 0;
    for (int i = 0; i < COUNT; i++)
        count += !(values[i] == expected);
    return count;
}

/* --- cases: each in a child, sides open, 0 when all was as expected ------------------------
 */

static int third_launch_fails(void)
{
    cl_event event = NULL;
    float values[COUNT];
    EXPECT(write_ones(&sides[1]) == CL_SUCCESS);
    for (int i = 1; i <= 4; i++) {
        EXPECT(launch(&sides[0], NULL) == CL_SUCCESS); /* the other device's are not counted */
        EXPECT(launch(&sides[1], &event) == (i == 3 ? CL_OUT_OF_RESOURCES : CL_SUCCESS));
    }
    EXPECT(read_values(&sides[1], values) == CL_SUCCESS);
    EXPECT(differing(values, 4) == 0); /* three of four ran */
    return 0;
}

static int device_is_lost(void)
{
    float values[COUNT];
    cl_int error = CL_SUCCESS;
    EXPECT(write_ones(&sides[1]) == CL_SUCCESS);
    EXPECT(launch(&sides[1], NULL) == CL_INVALID_COMMAND_QUEUE);
    EXPECT(launch(&sides[1], NULL) == CL_INVALID_COMMAND_QUEUE);
    EXPECT(clFinish(sides[1].queue) == CL_INVALID_COMMAND_QUEUE);
    EXPECT(read_values(&sides[1], values) == CL_INVALID_COMMAND_QUEUE);
    EXPECT(!clCreateBuffer(sides[1].context, CL_MEM_READ_WRITE, 4, NULL, &error));
    EXPECT(error == CL_INVALID_COMMAND_QUEUE);
    EXPECT(launch(&sides[0], NULL) == CL_SUCCESS);
    EXPECT(clFinish(sides[0].queue) == CL_SUCCESS);
    return 0;
}

static int buffer_is_refused(void)
{
    cl_int error = CL_SUCCESS;
    EXPECT(!clCreateBuffer(sides[0].context, CL_MEM_READ_WRITE, 4096, NULL, &error));
    EXPECT(error == CL_MEM_OBJECT_ALLOCATION_FAILURE);
    cl_mem mem = clCreateBuffer(sides[0].context, CL_MEM_READ_WRITE, 4096, NULL, &error);
    EXPECT(mem && error == CL_SUCCESS);
    clReleaseMemObject(mem);
    return 0;
}

static int map_is_refused(void)
{
    cl_int error = CL_SUCCESS;
    EXPECT(!clEnqueueMapBuffer(sides[0].queue, sides[0].mem, CL_TRUE, CL_MAP_READ, 0, BYTES, 0,
                               NULL, NULL, &error));
    EXPECT(error == CL_MAP_FAILURE);
    return 0;
}

static int event_reports_error(void)
{
    cl_event event = NULL;
    cl_ulong end;
    float values[COUNT];
    EXPECT(write_ones(&sides[0]) == CL_SUCCESS);
    EXPECT(launch(&sides[0], &event) == CL_SUCCESS);
    EXPECT(clWaitForEvents(1, &event) == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    EXPECT(status_of(event) == CL_OUT_OF_RESOURCES);
    EXPECT(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL) ==
           CL_PROFILING_INFO_NOT_AVAILABLE);
    cl_event next = NULL; /* what waits for a failed command fails */
    EXPECT(clEnqueueMarkerWithWaitList(sides[0].queue, 1, &event, &next) == CL_SUCCESS);
    EXPECT(clWaitForEvents(1, &next) == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    EXPECT(read_values(&sides[0], values) == CL_SUCCESS);
    EXPECT(differing(values, 2) == 0); /* the command ran */
    return 0;
}

/* A launch nobody asked an event of: the queue's later ones tell. */
static int later_events_report_error(void)
{
    cl_event event = NULL;
    float values[COUNT];
    for (int i = 0; i < 2; i++) {
        EXPECT(launch(&sides[0], NULL) == CL_SUCCESS);
        EXPECT(clEnqueueMarkerWithWaitList(sides[0].queue, 0, NULL, &event) == CL_SUCCESS);
        EXPECT(clWaitForEvents(1, &event) == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
        EXPECT(status_of(event) == CL_INVALID_COMMAND_QUEUE);
    }
    EXPECT(read_values(&sides[0], values) == CL_INVALID_COMMAND_QUEUE);
    EXPECT(clFinish(sides[0].queue) == CL_SUCCESS);
    return 0;
}

static int read_is_corrupt(void)
{
    float values[COUNT];
    cl_event event = NULL;
    EXPECT(write_ones(&sides[0]) == CL_SUCCESS);
    EXPECT(clEnqueueReadBuffer(sides[0].queue, sides[0].mem, CL_FALSE, 0, BYTES, values, 0,
                               NULL, &event) == CL_SUCCESS);
    EXPECT(clWaitForEvents(1, &event) == CL_SUCCESS);
    EXPECT(differing(values, 1) == 1);
    EXPECT(read_values(&sides[0], values) == CL_SUCCESS);
    EXPECT(differing(values, 1) == 0);
    return 0;
}

static int write_is_corrupt(void)
{
    float values[COUNT];
    EXPECT(write_ones(&sides[0]) == CL_SUCCESS);
    EXPECT(read_values(&sides[0], values) == CL_SUCCESS);
    EXPECT(differing(values, 1) == 1);
    EXPECT(isnan(values[COUNT / 2]));
    EXPECT(differing(ones, 1) == 0);
    return 0;
}

/* Maps with `flags`, sets the values to 1 where they are written, unmaps; how many differed. */
static int pass_by_map(cl_map_flags flags, int *count)
{
    cl_int error = CL_SUCCESS;
    cl_event event = NULL;
    float *values = clEnqueueMapBuffer(sides[0].queue, sides[0].mem, CL_FALSE, flags, 0, BYTES,
                                       0, NULL, &event, &error);
    EXPECT(error == CL_SUCCESS);
    EXPECT(clWaitForEvents(1, &event) == CL_SUCCESS);
    *count = differing(values, 1);
    if (flags != CL_MAP_READ)
        memcpy(values, ones, sizeof ones);
    EXPECT(clEnqueueUnmapMemObject(sides[0].queue, sides[0].mem, values, 0, NULL, NULL) ==
           CL_SUCCESS);
    return 0;
}

static int map_is_corrupt(void)
{
    int count = 0;
    EXPECT(write_ones(&sides[0]) == CL_SUCCESS);
    EXPECT(pass_by_map(CL_MAP_WRITE_INVALIDATE_REGION, &count) == 0); /* is not read */
    EXPECT(pass_by_map(CL_MAP_READ, &count) == 0);
    EXPECT(count == 1);
    return 0;
}

static int unmap_is_corrupt(void)
{
    int count = 0;
    float values[COUNT];
    EXPECT(write_ones(&sides[0]) == CL_SUCCESS);
    EXPECT(pass_by_map(CL_MAP_READ, &count) == 0 && count == 0); /* was not written */
    EXPECT(pass_by_map(CL_MAP_WRITE_INVALIDATE_REGION, &count) == 0);
    EXPECT(read_values(&sides[0], values) == CL_SUCCESS);
    EXPECT(differing(values, 1) == 1);
    return 0;
}

static int second_finish_is_late(void)
{
    const double start = lk_seconds();
    EXPECT(clFinish(sides[0].queue) == CL_SUCCESS);
    const double first = lk_seconds();
    EXPECT(clFinish(sides[0].queue) == CL_SUCCESS);
    EXPECT(first - start < 0.25 && lk_seconds() - first > 0.3);
    return 0;
}

/* --- cases that hang -----------------------------------------------------------------------
 */

static atomic_bool is_over;

static void *finish(void *argument)
{
    clFinish(argument);
    atomic_store(&is_over, true);
    return NULL;
}

static void *wait_for_launch(void *argument)
{
    cl_event event = NULL;
    if (launch(argument, &event) == CL_SUCCESS)
        clWaitForEvents(1, &event);
    atomic_store(&is_over, true);
    return NULL;
}

/* The thread does not end, the other device works, and the process can exit. */
static int hangs(void *(*run)(void *), void *argument)
{
    pthread_t thread;
    const struct timespec moment = {.tv_nsec = 400000000};
    float values[COUNT];
    EXPECT(pthread_create(&thread, NULL, run, argument) == 0);
    nanosleep(&moment, NULL);
    EXPECT(!atomic_load(&is_over));
    EXPECT(write_ones(&sides[0]) == CL_SUCCESS);
    EXPECT(launch(&sides[0], NULL) == CL_SUCCESS);
    EXPECT(read_values(&sides[0], values) == CL_SUCCESS);
    EXPECT(differing(values, 2) == 0);
    return 0;
}

static int finish_hangs(void)
{
    return hangs(finish, sides[1].queue);
}

static int launch_hangs(void)
{
    return hangs(wait_for_launch, &sides[1]);
}

/* The launch returns; its event, and so the wait, never ends. */
static int event_hangs(void)
{
    EXPECT(hangs(wait_for_launch, &sides[1]) == 0);
    cl_event event = NULL;
    EXPECT(clEnqueueMarkerWithWaitList(sides[1].queue, 0, NULL, &event) == CL_SUCCESS);
    EXPECT(status_of(event) > CL_COMPLETE);
    return 0;
}

static int calls_are_counted(void)
{
    for (int i = 0; i < 3; i++)
        EXPECT(clFlush(sides[1].queue) == CL_SUCCESS);
    return 0;
}

/* A case and its fault. */
static const struct trial {
    const char *name;
    int (*run)(void);
    const char *fault;
} trials[] = {
    {"third_launch_fails", third_launch_fails,
     "call=clEnqueueNDRangeKernel,nth=3,device=1,kind=error,code=-5"},
    {"device_is_lost", device_is_lost,
     "call=clEnqueueNDRangeKernel,device=1,kind=error,code=-36,sticky=1"},
    {"buffer_is_refused", buffer_is_refused,
     "call=clCreateBuffer,kind=error,code=-4,bytes=4096"},
    {"map_is_refused", map_is_refused, "call=clEnqueueMap*,kind=error,code=-12"},
    {"event_reports_error", event_reports_error,
     "call=clEnqueueNDRangeKernel,kind=event_error,code=-5"},
    {"later_events_report_error", later_events_report_error,
     "call=clEnqueueNDRangeKernel,kind=event_error,code=-36"},
    {"read_is_corrupt", read_is_corrupt, "call=clEnqueueReadBuffer,kind=corrupt"},
    {"write_is_corrupt", write_is_corrupt, "call=clEnqueueWriteBuffer,kind=nan"},
    {"map_is_corrupt", map_is_corrupt, "call=clEnqueueMapBuffer,kind=corrupt,bit=3"},
    {"unmap_is_corrupt", unmap_is_corrupt, "call=clEnqueueUnmapMemObject,kind=corrupt"},
    {"second_finish_is_late", second_finish_is_late, "call=clFinish,nth=2,kind=delay,ms=300"},
    {"finish_hangs", finish_hangs, "call=clFinish,device=1,kind=hang"},
    {"launch_hangs", launch_hangs, "call=clEnqueueNDRangeKernel,device=1,kind=hang"},
    {"event_hangs", event_hangs, "call=clEnqueueNDRangeKernel,device=1,kind=hang_event"},
    {"calls_are_counted", calls_are_counted, ""},
};

static int run_trial(const char *name)
{
    cl_platform_id platform;
    alarm(60); /* a hang where there must be none */
    EXPECT(clGetPlatformIDs(1, &platform, NULL) == CL_SUCCESS);
    EXPECT(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &id, NULL) == CL_SUCCESS);
    EXPECT(open_side(&sides[0]) == CL_SUCCESS);
    EXPECT(open_side(&sides[1]) == CL_SUCCESS);
    for (int i = 0; i < LK_COUNT(trials); i++)
        if (strcmp(name, trials[i].name) == 0)
            return trials[i].run();
    return 127;
}

/* --- tests ---------------------------------------------------------------------------------
 */

static void does_what_it_says(void **state)
{
    const struct trial *trial = *state;
    assert_int_equal(run_child(trial->name, "LOCKSTEP_FAULT", trial->fault), 0);
}

static void writes_counts(void **state)
{
    char path[] = "/tmp/lockstep-fault-XXXXXX", text[4096] = "";
    (void)state;
    const int made = mkstemp(path);
    assert_true(made >= 0);
    close(made);
    const int status = run_child("calls_are_counted", "LOCKSTEP_FAULT_COUNT", path);
    FILE *file = fopen(path, "r");
    const size_t bytes = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        fclose(file);
    unlink(path);
    assert_int_equal(status, 0);
    assert_true(bytes > 0);
    assert_non_null(strstr(text, "0 clCreateContext 1\n"));
    assert_non_null(strstr(text, "1 clBuildProgram 1\n"));
    assert_non_null(strstr(text, "1 clFlush 3\n"));
    assert_null(strstr(text, "0 clFlush"));
}

static void refuses_what_it_cannot_do(void **state)
{
    static const char *const wrong[] = {
        "call=clEnqueueNDRangeKernel,kind=melt",
        "call=clEnqueueNDRangeKernel,nth=x",
        "call=clEnqueueNDRangeKernel,knid=error",
        "call=clLaunch,kind=error",
        "call=clFlush,kind=corrupt",
        "call=clFinish,kind=hang_event",
        "nonsense",
    };
    (void)state;
    for (int i = 0; i < LK_COUNT(wrong); i++)
        assert_int_equal(run_child("calls_are_counted", "LOCKSTEP_FAULT", wrong[i]), 99);
}

int main(int argc, char **argv)
{
    struct CMUnitTest tests[LK_COUNT(trials) + 2] = {
        cmocka_unit_test(writes_counts), cmocka_unit_test(refuses_what_it_cannot_do)};
    if (argc > 1 || strcmp(argv[0], "child") == 0)
        return run_trial(argv[argc - 1]);
    for (int i = 0; i < LK_COUNT(trials); i++)
        tests[i + 2] = (struct CMUnitTest){trials[i].name, does_what_it_says, NULL, NULL,
                                           (void *)&trials[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
