/* Memory in turns: who sees what when, and uploads that run beside kernels. */
#include "device/opencl.h"
#include "device/trace.h"
#include "rig.h"

#include "../scratch.h"

enum { BYTES = 1 << 16, LARGE = 1 << 25, LAUNCHES = 8, MOST = 100 };

static struct lk_kernel *kernel;
static struct lk_buffer *x, *y; /* of LARGE bytes */

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
    assert_ok(lk_buffer_create(device, LARGE, &x));
    assert_ok(lk_buffer_create(device, LARGE, &y));
    assert_ok(lk_buffer_enqueue_fill(x, 0));
    assert_ok(lk_buffer_enqueue_fill(y, 0));
    return 0;
}

static int close_all(void **state)
{
    lk_buffer_destroy(x);
    lk_buffer_destroy(y);
    lk_kernel_destroy(kernel);
    close_device(state);
    return scratch_remove(state);
}

/* Keeps one of the device's cores busy for a while. */
static void enqueue_work(void)
{
    const struct lk_device_info *info = lk_device_info(device);
    const int64_t rows = LARGE / (int64_t)sizeof(float) / info->lanes;
    const struct lk_grid grid = {{1, 1, 1}, info->lanes / info->vector};
    for (int i = 0; i < LAUNCHES; i++)
        assert_ok(LK_ENQUEUE(kernel, grid, LK_BUF(x), LK_BUF(y), LK_INT(rows), LK_INT(rows)));
}

static uint8_t *take(struct lk_transfer_buffer *transfer)
{
    void *memory = NULL;
    assert_ok(lk_transfer_buffer_enqueue_to_host(transfer, BYTES));
    assert_ok(lk_transfer_buffer_wait(transfer, &memory));
    return memory;
}

static void expect(const struct lk_buffer *buffer, uint8_t byte)
{
    uint8_t got[BYTES], want[BYTES];
    memset(want, byte, BYTES);
    assert_ok(lk_buffer_read(buffer, 0, BYTES, got));
    assert_memory_equal(got, want, BYTES);
}

/* What kernels read is what the host had written before them, whatever it writes next. */
static void takes_turns(void **state)
{
    static const enum lk_buffer_writer writers[] = {LK_HOST_WRITES, LK_HOST_UPLOADS};
    (void)state;
    for (int i = 0; i < LK_COUNT(writers); i++) {
        struct lk_transfer_buffer *transfer;
        struct lk_buffer *seen[3] = {0};
        assert_ok(lk_transfer_buffer_create(device, BYTES, writers[i], &transfer));
        for (int turn = 0; turn < LK_COUNT(seen); turn++) {
            assert_ok(lk_buffer_create(device, BYTES, &seen[turn]));
            memset(take(transfer), 1 + turn, BYTES);
            enqueue_work();
            assert_ok(lk_transfer_buffer_enqueue_to_device(transfer, BYTES));
            assert_ok(lk_transfer_buffer_enqueue_to_device(transfer, BYTES)); /* it has it */
            assert_ok(lk_buffer_enqueue_copy(lk_transfer_buffer_on_device(transfer), seen[turn],
                                             BYTES));
        }
        for (int turn = 0; turn < LK_COUNT(seen); turn++) {
            expect(seen[turn], (uint8_t)(1 + turn));
            lk_buffer_destroy(seen[turn]);
        }
        lk_transfer_buffer_destroy(transfer);
    }
}

/* An upload is handed over again before anybody has waited for the kernels that read it. */
static void waits_for_readers(void **state)
{
    (void)state;
    struct lk_transfer_buffer *transfer;
    struct lk_buffer *seen;
    assert_ok(lk_buffer_create(device, BYTES, &seen));
    assert_ok(lk_transfer_buffer_create(device, BYTES, LK_HOST_UPLOADS, &transfer));
    uint8_t *memory = take(transfer);
    memset(memory, 1, BYTES);
    assert_ok(lk_transfer_buffer_enqueue_to_device(transfer, BYTES));
    assert_ok(lk_device_finish(device));
    enqueue_work();
    assert_ok(lk_buffer_enqueue_copy(lk_transfer_buffer_on_device(transfer), seen, BYTES));
    assert_ok(lk_transfer_buffer_enqueue_to_host(transfer, BYTES));
    memset(memory, 2, BYTES); /* its copy was uploaded long ago */
    assert_ok(lk_transfer_buffer_enqueue_to_device(transfer, BYTES));
    expect(seen, 1);
    expect(lk_transfer_buffer_on_device(transfer), 2);
    assert_ptr_equal(take(transfer), memory);
    for (int i = 0; i < BYTES; i++)
        assert_int_equal(memory[i], 2);
    lk_transfer_buffer_destroy(transfer);
    lk_buffer_destroy(seen);
}

static void uploads_beside_kernels(void **state)
{
    (void)state;
    struct lk_traced got[MOST];
    struct lk_transfer_buffer *transfer;
    int64_t dropped = 0;
    double busy_until = 0, uploaded = 1e300;
    if (lk_device_info(device)->compute_units < 2)
        skip(); /* there is nobody to do it */
    assert_ok(lk_transfer_buffer_create(device, BYTES, LK_HOST_UPLOADS, &transfer));
    memset(take(transfer), 3, BYTES);
    assert_ok(lk_trace_begin(device, MOST));
    lk_trace_step(device, 1);
    enqueue_work();
    assert_ok(lk_transfer_buffer_enqueue_to_device(transfer, BYTES));
    assert_ok(lk_device_finish(device));
    const int count = lk_trace_collect(device, got, MOST, &dropped);
    for (int i = 0; i < count; i++) {
        if (got[i].queue == LK_TRACE_COMPUTE)
            busy_until = got[i].end;
        if (got[i].queue == LK_TRACE_UPLOAD) {
            assert_string_equal(got[i].name, "write");
            assert_int_equal(got[i].bytes, BYTES);
            uploaded = got[i].end;
        }
    }
    assert_int_equal(count, LAUNCHES + 1);
    if (uploaded >= busy_until)
        fail_msg("the upload ended %g ms after the kernels", 1e3 * (uploaded - busy_until));
    lk_trace_end(device);
    lk_transfer_buffer_destroy(transfer);
}

static void refuses(void **state)
{
    (void)state;
    struct lk_transfer_buffer *transfer;
    void *memory;
    assert_ok(lk_transfer_buffer_create(device, BYTES, LK_HOST_UPLOADS, &transfer));
    assert_fails(lk_transfer_buffer_wait(transfer, &memory), LK_E_ARGUMENT,
                 "the device has this memory");
    assert_fails(lk_transfer_buffer_enqueue_to_host(transfer, 0), LK_E_ARGUMENT,
                 "0 bytes of 65536");
    take(transfer);
    assert_fails(lk_transfer_buffer_enqueue_to_device(transfer, BYTES + 1), LK_E_ARGUMENT,
                 "65537 bytes of 65536");
    assert_ok(lk_transfer_buffer_enqueue_to_device(transfer, 0)); /* nothing to say */
    lk_transfer_buffer_destroy(transfer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_turns),
        cmocka_unit_test(waits_for_readers),
        cmocka_unit_test(uploads_beside_kernels),
        cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
