/* What small_layer.c makes of a device: it says that it is small, and refuses what it does not
 * have. */
#include "device/small.h"
#include "device/rig.h"

#include "device/library/blas.h"
#include "device/library/fft.h"
#include <CL/cl.h>

static void says_so(void **state)
{
    struct lk_device *small = NULL;
    (void)state;
    assert_ok(lk_device_open(NULL, 0, &small));
    assert_int_equal(lk_device_info(small)->local_bytes, LOCAL_BYTES);
    assert_int_equal(lk_device_info(small)->group_items, GROUP_ITEMS);
    lk_device_close(small);
}

/* Other algorithms stand in for the libraries, which want larger groups. */
static void libraries_decline(void **state)
{
    struct lk_device *small = NULL;
    struct lk_fft *fft = NULL;
    (void)state;
    assert_ok(lk_device_open(NULL, 0, &small));
    assert_false(lk_fft_is_possible(small));
    assert_fails(lk_fft_create(small, 4, 64, 64, 256, &fft), LK_E_UNSUPPORTED,
                 "clFFT wants work-groups of 256");
    assert_null(fft);
    assert_fails(lk_blas_check(small, 4, "plain"), LK_E_UNSUPPORTED,
                 "its work-groups are too large");
    assert_true(lk_blas_has_failed(small, 4));
    lk_device_close(small);
}

static cl_int launch(cl_command_queue queue, cl_kernel kernel, size_t items, size_t bytes)
{
    const size_t global = 4 * items;
    const cl_int error = clSetKernelArg(kernel, 0, bytes, NULL);
    return error != CL_SUCCESS
               ? error
               : clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, &items, 0, NULL, NULL);
}

/* The kernel's own 16 bytes count, too, where the driver tells of them: PoCL 6.0 does not. */
static void refuses_what_it_does_not_have(void **state)
{
    const char *text = "__kernel void fill(__local int *more) {"
                       "    __local int own[4];"
                       "    own[get_local_id(0) % 4] = 1;"
                       "    barrier(CLK_LOCAL_MEM_FENCE);"
                       "    more[0] = own[get_local_id(0) % 3];"
                       "}";
    cl_platform_id platform;
    cl_device_id id;
    cl_ulong own = 0;
    cl_int error;
    (void)state;
    assert_int_equal(clGetPlatformIDs(1, &platform, NULL), CL_SUCCESS);
    assert_int_equal(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &id, NULL), CL_SUCCESS);
    cl_context context = clCreateContext(NULL, 1, &id, NULL, NULL, &error);
    cl_command_queue queue = clCreateCommandQueue(context, id, 0, &error);
    cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &error);
    assert_int_equal(clBuildProgram(program, 1, &id, "", NULL, NULL), CL_SUCCESS);
    cl_kernel kernel = clCreateKernel(program, "fill", &error);
    assert_int_equal(error, CL_SUCCESS);
    error =
        clGetKernelWorkGroupInfo(kernel, id, CL_KERNEL_LOCAL_MEM_SIZE, sizeof own, &own, NULL);
    assert_int_equal(error, CL_SUCCESS);
    assert_true(own == 16 || own == 0);
    assert_int_equal(launch(queue, kernel, GROUP_ITEMS, LOCAL_BYTES - own), CL_SUCCESS);
    assert_int_equal(launch(queue, kernel, GROUP_ITEMS, LOCAL_BYTES - own + 16),
                     CL_OUT_OF_RESOURCES);
    assert_int_equal(launch(queue, kernel, GROUP_ITEMS + 1, 16), CL_INVALID_WORK_GROUP_SIZE);
    assert_int_equal(clFinish(queue), CL_SUCCESS);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(says_so),
                                       cmocka_unit_test(libraries_decline),
                                       cmocka_unit_test(refuses_what_it_does_not_have)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
