/* Traces of a device's commands: which, in which order, when on the host's clock. */
#include "device/trace.h"
#include "base/clock.h"
#include "device/opencl.h"
#include "device/staging.h"
#include "rig.h"

#include "../scratch.h"
#include <pthread.h>
#include <time.h>

enum { BYTES = 4096, MOST = 100 };

static struct lk_kernel *kernel;
static struct lk_buffer *x, *y;
static struct lk_staging *staging;

static int open_all(void **state)
{
    const struct lk_kernel_spec spec = {
        .source = "graph/accumulate", .name = "accumulate", .real_bytes = 4};
    if (scratch_make(state) != 0)
        return -1;
    setenv("LOCKSTEP_CACHE", scratch, 1);
    if (open_device(state) != 0)
        return -1;
    assert_ok(lk_kernel_create(device, &spec, &kernel));
    assert_ok(lk_device_build(device));
    assert_ok(lk_buffer_create(device, BYTES, &x));
    assert_ok(lk_buffer_create(device, BYTES, &y));
    assert_ok(lk_staging_create(device, BYTES, &staging));
    return 0;
}

static int close_all(void **state)
{
    lk_staging_destroy(staging);
    lk_buffer_destroy(x);
    lk_buffer_destroy(y);
    lk_kernel_destroy(kernel);
    close_device(state);
    return scratch_remove(state);
}

static void add(int rows)
{
    const struct lk_device_info *info = lk_device_info(device);
    const struct lk_grid grid = {{1, 1, 1}, info->lanes / info->vector};
    assert_true((size_t)(rows * info->lanes) * sizeof(float) <= BYTES);
    assert_ok(LK_ENQUEUE(kernel, grid, LK_BUF(x), LK_BUF(y), LK_INT(rows), LK_INT(rows)));
}

/* One of each kind of command, as `wanted` below. */
static void enqueue_all(void)
{
    uint8_t bytes[24] = {0};
    assert_ok(lk_staging_enqueue_write(staging, x, BYTES));
    assert_ok(lk_buffer_enqueue_fill(y, 0));
    add(2);
    assert_ok(lk_buffer_enqueue_copy(x, y, 100));
    assert_ok(lk_staging_enqueue_read(staging, y, 64));
    assert_ok(lk_buffer_write(x, 8, sizeof bytes, bytes));
    assert_ok(lk_buffer_read(x, 0, 16, bytes));
}

static const struct {
    const char *name;
    size_t bytes;
} wanted[] = {{"write", BYTES}, {"fill", BYTES}, {"accumulate", 0}, {"copy", 100},
              {"read", 64},     {"write", 24},   {"read", 16}};

static int take(struct lk_traced *to, int64_t *dropped)
{
    *dropped = 0;
    return lk_trace_collect(device, to, MOST, dropped);
}

static void keeps_commands_in_order(void **state)
{
    (void)state;
    struct lk_traced got[MOST];
    int64_t dropped;
    assert_ok(lk_trace_begin(device, MOST));
    enqueue_all(); /* of no step */
    assert_ok(lk_device_finish(device));
    lk_trace_step(device, 7);
    const double before = lk_seconds();
    enqueue_all();
    lk_trace_step(device, 8);
    enqueue_all();
    assert_ok(lk_device_finish(device));
    const double after = lk_seconds();
    lk_trace_step(device, 0);
    enqueue_all();
    assert_ok(lk_device_finish(device));
    assert_int_equal(take(got, &dropped), 2 * LK_COUNT(wanted));
    assert_int_equal(dropped, 0);
    const double slack = 1e-3; /* clocks are compared to some microseconds, in peace */
    for (int i = 0; i < 2 * LK_COUNT(wanted); i++) {
        const int j = i % LK_COUNT(wanted);
        assert_string_equal(got[i].name, wanted[j].name);
        assert_int_equal(got[i].bytes, wanted[j].bytes);
        assert_int_equal(got[i].step, i < LK_COUNT(wanted) ? 7 : 8);
        assert_int_equal(got[i].queue, LK_TRACE_COMPUTE);
        assert_true(got[i].queued >= before - slack && got[i].queued <= got[i].start);
        assert_true(got[i].start <= got[i].end && got[i].end <= after + slack);
        assert_true(i == 0 || got[i].start >= got[i - 1].end);
    }
    assert_int_equal(take(got, &dropped), 0);
    lk_trace_end(device);
    assert_int_equal(take(got, &dropped), 0);
    lk_trace_step(device, 9); /* nothing was begun */
    enqueue_all();
}

static void counts_what_finds_no_room(void **state)
{
    (void)state;
    struct lk_traced got[MOST];
    int64_t dropped = 0;
    assert_ok(lk_trace_begin(device, 3));
    lk_trace_step(device, 1);
    for (int round = 0; round < 3; round++) { /* wherever the ring's first one is */
        for (int rows = 0; rows < 5; rows++)
            add(rows);
        assert_ok(lk_device_finish(device));
        assert_int_equal(lk_trace_collect(device, got, 1, &dropped), 1);
        assert_int_equal(dropped, 2);
        assert_int_equal(take(got, &dropped), 2);
        assert_int_equal(dropped, 0);
        add(1);
        assert_ok(lk_device_finish(device));
        assert_int_equal(take(got, &dropped), 1);
        assert_int_equal(dropped, 0);
    }
    add(1); /* is there when the trace ends */
    assert_ok(lk_trace_begin(device, 3));
    assert_int_equal(take(got, &dropped), 0);
    lk_trace_end(device);
}

static cl_event user_event(void)
{
    cl_int error;
    cl_event event = clCreateUserEvent(device->context, &error);
    assert_int_equal(error, CL_SUCCESS);
    return event;
}

/* Commands that failed have no times; a driver may lack some of a command that ran. */
static void passes_over_what_failed(void **state)
{
    (void)state;
    struct lk_traced got[MOST];
    int64_t dropped;
    cl_event failed = user_event(), timeless = user_event(), late = user_event();
    assert_ok(lk_trace_begin(device, MOST));
    lk_trace_step(device, 1);
    lk_trace_add_retained(device, NULL, "failed", 0, failed);
    add(1);
    lk_trace_add_retained(device, NULL, "timeless", 0, timeless);
    lk_trace_add_retained(device, NULL, "late", 0, late);
    lk_trace_add_retained(device, NULL, "absent", 0, NULL);
    add(2);
    assert_ok(lk_device_finish(device));
    assert_int_equal(take(got, &dropped), 0); /* the first one may still run */
    assert_int_equal(clSetUserEventStatus(failed, CL_OUT_OF_RESOURCES), CL_SUCCESS);
    assert_int_equal(clSetUserEventStatus(timeless, CL_COMPLETE), CL_SUCCESS);
    assert_int_equal(take(got, &dropped), 1);
    assert_string_equal(got[0].name, "accumulate");
    assert_int_equal(dropped, 2);
    assert_int_equal(clSetUserEventStatus(late, CL_COMPLETE), CL_SUCCESS);
    assert_int_equal(take(got, &dropped), 1);
    assert_int_equal(dropped, 1);
    lk_trace_end(device);
    clReleaseEvent(failed);
    clReleaseEvent(timeless);
    clReleaseEvent(late);
}

static void tells_queues_apart(void **state)
{
    (void)state;
    struct lk_traced got[MOST];
    int64_t dropped;
    uint8_t byte = 0;
    cl_int error;
    cl_event event = NULL;
    cl_command_queue other =
        clCreateCommandQueue(device->context, device->id, CL_QUEUE_PROFILING_ENABLE, &error);
    assert_int_equal(error, CL_SUCCESS);
    assert_ok(lk_trace_begin(device, MOST));
    lk_trace_step(device, 1);
    assert_int_equal(clEnqueueReadBuffer(other, x->mem, CL_TRUE, 0, 1, &byte, 0, NULL, &event),
                     CL_SUCCESS);
    lk_trace_add_retained(device, other, "read", 1, event);
    add(1);
    assert_ok(lk_device_finish(device));
    clFinish(other);
    assert_int_equal(take(got, &dropped), 2);
    assert_int_equal(got[0].queue, LK_TRACE_TRANSFER);
    assert_int_equal(got[1].queue, LK_TRACE_COMPUTE);
    lk_trace_end(device);
    assert_int_equal(clReleaseEvent(event), CL_SUCCESS); /* still ours */
    clReleaseCommandQueue(other);
}

enum { COMMANDS = 2000 };

static void *enqueue_many(void *unused)
{
    for (int i = 1; i <= COMMANDS; i++) {
        lk_trace_step(device, i);
        add(1);
    }
    assert_ok(lk_device_finish(device));
    return unused;
}

static void takes_on_another_thread(void **state)
{
    (void)state;
    struct lk_traced got[MOST];
    int64_t dropped = 0, taken = 0, last = 0;
    pthread_t thread;
    assert_ok(lk_trace_begin(device, 64));
    assert_int_equal(pthread_create(&thread, NULL, enqueue_many, NULL), 0);
    while (taken + dropped < COMMANDS) {
        const int count = lk_trace_collect(device, got, MOST, &dropped);
        for (int i = 0; i < count; i++) {
            assert_true(got[i].step > last);
            last = got[i].step;
        }
        taken += count;
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
    pthread_join(thread, NULL);
    assert_true(taken > 0);
    assert_int_equal(taken + dropped, COMMANDS);
    lk_trace_end(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_commands_in_order), cmocka_unit_test(counts_what_finds_no_room),
        cmocka_unit_test(passes_over_what_failed), cmocka_unit_test(tells_queues_apart),
        cmocka_unit_test(takes_on_another_thread),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
