/* Where PoCL maps nothing, huge pages cannot be asked for: buffers are there all the same. Runs
 * with a layer that makes each clEnqueueMapBuffer() fail. */
#include "device/opencl.h"
#include "device/rig.h"

enum { BYTES = 9 << 20, SOME = 4096 };

static void buffers_need_no_advice(void **state)
{
    static unsigned char values[SOME], found[SOME];
    struct lk_buffer *buffer = NULL;
    cl_int error = CL_SUCCESS;
    (void)state;
    memset(values, 0x5a, sizeof values);
    assert_ok(lk_buffer_create(device, BYTES, &buffer));
    assert_null(clEnqueueMapBuffer(device->queue, buffer->mem, CL_TRUE, CL_MAP_READ, 0, BYTES,
                                   0, NULL, NULL, &error));
    assert_int_equal(error, CL_MAP_FAILURE);
    assert_int_equal(lk_device_bytes(device), BYTES);
    assert_ok(lk_buffer_write(buffer, BYTES - SOME, SOME, values));
    assert_ok(lk_buffer_read(buffer, BYTES - SOME, SOME, found));
    assert_memory_equal(values, found, SOME);
    lk_buffer_destroy(buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(buffers_need_no_advice)};
    return cmocka_run_group_tests(tests, open_device, close_device);
}
