/* Programs and kernels: what builds, what does not and what is said of it, calls. */
#include "base/progress.h"
#include "device/pocl.h"
#include "device/program/cache.h"
#include "rig.h"

#include "../scratch.h"
#include "products/direct/args.h"

static int open_with_cache(void **state)
{
    if (scratch_make(state) != 0)
        return -1;
    setenv("LOCKSTEP_CACHE", scratch, 1);
    return open_device(state);
}

static int close_with_cache(void **state)
{
    close_device(state);
    return scratch_remove(state);
}

static struct lk_kernel *announce(const char *options, int real_bytes)
{
    struct lk_kernel *kernel = NULL;
    const struct lk_kernel_spec spec = {.source = "graph/accumulate",
                                        .name = "accumulate",
                                        .options = options,
                                        .real_bytes = real_bytes};
    assert_ok(lk_kernel_create(device, &spec, &kernel));
    return kernel;
}

enum { ROWS = 5, CHUNK = 2 };

/* y += x on the device and here. */
static void expect_sums(struct lk_kernel *kernel, int real_bytes)
{
    const struct lk_device_info *info = lk_device_info(device);
    const int count = ROWS * info->lanes;
    const size_t bytes = (size_t)(count * real_bytes);
    double x[ROWS * 64], y[ROWS * 64];
    float *x4 = (float *)x, *y4 = (float *)y;
    struct lk_buffer *from = NULL, *to = NULL;
    assert_true(info->lanes <= 64);
    for (int i = 0; i < count; i++)
        if (real_bytes == 8)
            x[i] = i + 0x1p-40, y[i] = 3 * i;
        else
            x4[i] = (float)i + 0.5f, y4[i] = (float)(3 * i);
    assert_ok(lk_buffer_create(device, bytes, &from));
    assert_ok(lk_buffer_create(device, bytes, &to));
    assert_ok(lk_buffer_write(from, 0, bytes, x));
    assert_ok(lk_buffer_write(to, 0, bytes, y));
    const struct lk_grid grid = {{(ROWS + CHUNK - 1) / CHUNK, 1, 1},
                                 info->lanes / info->vector};
    assert_ok(LK_ENQUEUE(kernel, grid, LK_BUF(from), LK_BUF(to), LK_INT(ROWS), LK_INT(CHUNK)));
    assert_ok(lk_buffer_read(to, 0, bytes, y));
    for (int i = 0; i < count; i++)
        if (real_bytes == 8)
            assert_true(y[i] == 4.0 * i + 0x1p-40);
        else
            assert_true(y4[i] == (float)(4 * i) + 0.5f);
    lk_buffer_destroy(from);
    lk_buffer_destroy(to);
}

static void builds_several(void **state)
{
    (void)state;
    static const char *const options[] = {NULL, "-DA=1", "-DA=2", "-DA=3", "-DA=4", "-DA=1"};
    struct lk_kernel *kernels[2 * LK_COUNT(options)] = {NULL};
    int count = 0;
    for (int i = 0; i < LK_COUNT(options); i++) {
        kernels[count++] = announce(options[i], 4);
        if (lk_device_info(device)->has_fp64)
            kernels[count++] = announce(options[i], 8);
    }
    assert_ok(lk_device_build(device));
    assert_ok(lk_device_build(device)); /* nothing left to do */
    const int each = count / LK_COUNT(options);
    for (int i = 0; i < count; i++)
        expect_sums(kernels[i], each == 2 && i % 2 ? 8 : 4);
    for (int i = 0; i < count; i++)
        lk_kernel_destroy(kernels[i]);
    lk_kernel_destroy(NULL);
}

/* The fast build of PoCL 3.1 rests on an option that OpenCL does not have: a compiler that
 * refused it would build each program alone, and nothing but the time would tell. */
static void builds_together(void **state)
{
    (void)state;
    if (!device->is_pocl || lk_cache_is_wanted(device))
        skip();
    struct lk_kernel *two = announce("-DTOGETHER=2", 4), *three = announce("-DTOGETHER=3", 4);
    assert_ok(lk_device_build(device));
    assert_int_equal(two->program->unit + three->program->unit, 1 + 2);
    assert_ptr_equal(two->program->program, three->program->program);
    expect_sums(two, 4);
    expect_sums(three, 4);
    lk_kernel_destroy(two);
    lk_kernel_destroy(three);
}

static void skips_passes_where_measured(void **state)
{
    (void)state;
    struct lk_device_info info = {.driver = "3.1+debian",
                                  .platform = "Portable Computing Language",
                                  .device_class = LK_CLASS_CPU};
    assert_non_null(strstr(lk_pocl_unity_options(&info), "-disable-llvm-passes"));
    info.device_class = LK_CLASS_GPU;
    assert_string_equal(lk_pocl_unity_options(&info), "");
    info.device_class = LK_CLASS_CPU;
    strcpy(info.driver, "3.10");
    assert_string_equal(lk_pocl_unity_options(&info), "");
    strcpy(info.driver, "6.0");
    assert_string_equal(lk_pocl_unity_options(&info), "");
    strcpy(info.driver, "3.1");
    strcpy(info.platform, "rusticl");
    assert_string_equal(lk_pocl_unity_options(&info), "");
}

static void says_why_it_does_not_build(void **state)
{
    (void)state;
    struct lk_kernel *broken = announce("-DREAL=nonsense", 4);
    struct lk_kernel *right = announce("-DRIGHT=1", 4);
    char log[512], *at;
    assert_int_equal(lk_device_build(device), LK_E_BUILD);
    const char *said = lk_error_text();
    if (!strstr(said, "cl/graph/accumulate.cl does not build on ") || !strstr(said, "error:") ||
        !strstr(said, "nonsense") || !strstr(said, "CL_BUILD_PROGRAM_FAILURE"))
        fail_msg("said '%s'", said);
    at = strstr(said, "(log: ");
    assert_non_null(at);
    snprintf(log, sizeof log, "%.*s", (int)strcspn(at + 6, ")"), at + 6);
    assert_true(strncmp(log, scratch, strlen(scratch)) == 0);
    lk_error_clear();
    FILE *file = fopen(log, "r");
    char text[4096] = "";
    assert_non_null(file);
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    fclose(file);
    if (!strstr(text, "device: ") || !strstr(text, "-DREAL=nonsense") ||
        !strstr(text, "error:"))
        fail_msg("the log says '%s'", text);
    lk_kernel_destroy(broken);
    assert_ok(lk_device_build(device)); /* one that fails does not stay in the way */
    expect_sums(right, 4);
    lk_kernel_destroy(right);
}

static void keeps_logs_where_told(void **state)
{
    (void)state;
    char said[256];
    lk_device_set_log_folder(device, scratch);
    struct lk_kernel *broken = announce("-DREAL=absurd", 4);
    snprintf(said, sizeof said, "(log: %s/build-graph-accumulate.log)", scratch);
    assert_fails(lk_device_build(device), LK_E_BUILD, said);
    lk_device_set_log_folder(device, "/nonexistent");
    assert_fails(lk_device_build(device), LK_E_BUILD, "absurd"); /* none where it cannot */
    lk_device_set_log_folder(device, NULL);
    lk_kernel_destroy(broken);
}

static void refuses_unknown_names(void **state)
{
    (void)state;
    struct lk_kernel *kernel = NULL;
    struct lk_kernel_spec spec = {.source = "attic", .name = "accumulate", .real_bytes = 4};
    assert_fails(lk_kernel_create(device, &spec, &kernel), LK_E_BUILD,
                 "no kernel source named 'attic.cl'");
    assert_null(kernel);
    spec.source = "graph/accumulate";
    spec.name = "gather";
    assert_ok(lk_kernel_create(device, &spec, &kernel));
    assert_fails(lk_device_build(device), LK_E_BUILD,
                 "cl/graph/accumulate.cl: kernel 'gather': CL_INVALID_KERNEL_NAME");
    const struct lk_grid grid = {{1, 1, 1}, 1};
    assert_fails(LK_ENQUEUE(kernel, grid, LK_INT(1)), LK_E_ARGUMENT, "'gather' is not built");
    lk_kernel_destroy(kernel);
    assert_ok(lk_device_build(device));
}

static void refuses_groups_that_are_too_large(void **state)
{
    (void)state;
    const struct lk_device_info *info = lk_device_info(device);
    const struct lk_kernel_spec spec = {.source = "graph/accumulate",
                                        .name = "accumulate",
                                        .real_bytes = 4,
                                        .lanes = 2 * (int)info->group_items * info->vector};
    struct lk_kernel *kernel = NULL;
    const struct lk_grid grid = {{1, 1, 1}, 2 * (int)info->group_items};
    struct lk_buffer *buffer = NULL;
    char said[96];
    assert_ok(lk_buffer_create(device, 4096, &buffer));
    assert_ok(lk_kernel_create(device, &spec, &kernel));
    assert_ok(lk_device_build(device));
    snprintf(said, sizeof said, "kernel 'accumulate' in groups of %d: CL_INVALID_WORK",
             grid.items);
    assert_fails(LK_ENQUEUE(kernel, grid, LK_BUF(buffer), LK_BUF(buffer), LK_INT(0), LK_INT(1)),
                 LK_E_BUILD, said);
    lk_kernel_destroy(kernel);
    lk_buffer_destroy(buffer);
}

static void refuses_arguments(void **state)
{
    (void)state;
    struct lk_kernel *kernel = announce(NULL, 4);
    struct lk_buffer *buffer = NULL;
    const struct lk_grid grid = {{1, 1, 1}, 1}, none = {{1, 0, 1}, 1};
    assert_ok(lk_buffer_create(device, 4096, &buffer));
    assert_fails(LK_ENQUEUE(kernel, grid, LK_BUF(buffer), LK_BUF(buffer), LK_INT(0), LK_INT(1)),
                 LK_E_ARGUMENT, "not built yet");
    assert_ok(lk_device_build(device));
    assert_fails(LK_ENQUEUE(kernel, grid, LK_BUF(buffer), LK_BUF(buffer), LK_INT(0)),
                 LK_E_ARGUMENT, "'accumulate' takes 4 arguments, found 3");
    assert_fails(LK_ENQUEUE(kernel, grid, LK_BUF(buffer), LK_BUF(buffer), LK_INT(0), LK_INT(1),
                            LK_INT(1)),
                 LK_E_ARGUMENT, "'accumulate' takes 4 arguments, found 5");
    assert_fails(
        LK_ENQUEUE(kernel, grid, LK_BUF(buffer), LK_BUF(buffer), LK_INT(1LL << 31), LK_INT(1)),
        LK_E_ARGUMENT, "argument 2 is too large: 2147483648");
    assert_fails(LK_ENQUEUE(kernel, grid, LK_BUF(buffer), LK_BUF(buffer), LK_INT(0),
                            LK_INT(-(1LL << 31) - 1)),
                 LK_E_ARGUMENT, "argument 3 is too large: -2147483649");
    assert_ok(LK_ENQUEUE(kernel, none, LK_BUF(buffer), LK_BUF(buffer), LK_INT(1), LK_INT(1)));
    assert_ok(lk_device_finish(device));
    lk_kernel_destroy(kernel);
    lk_buffer_destroy(buffer);
}

/* Weights of 3 channels, 2 x 2 taps and 5 filters, which conv2d_pack puts in blocks of 2
 * filters: with taps backwards, so that some of the struct's numbers are negative. */
enum { INS = 3, TAPS = 2, OUTS = 5, BLOCK = 2, BLOCKS = (OUTS + BLOCK - 1) / BLOCK };

static const struct lk_pack pack = {.block = BLOCK,
                                    .outs = OUTS,
                                    .ins = INS,
                                    .rows = TAPS,
                                    .columns = TAPS,
                                    .out_stride = 1,
                                    .in_stride = TAPS * TAPS * OUTS,
                                    .first = (TAPS * TAPS - 1) * OUTS,
                                    .row_stride = -TAPS * OUTS,
                                    .column_stride = -OUTS,
                                    .blocks_each = BLOCKS,
                                    .ins_each = INS};

static void expect_packed(const float *w, const float *packed)
{
    for (int b = 0; b < BLOCKS; b++)
        for (int n = 0; n < INS; n++)
            for (int tap = 0; tap < TAPS * TAPS; tap++)
                for (int i = 0; i < BLOCK; i++, packed++) {
                    const int k = b * BLOCK + i, turned = TAPS * TAPS - 1 - tap;
                    assert_true(*packed ==
                                (k < OUTS ? w[(n * TAPS * TAPS + turned) * OUTS + k] : 0));
                }
}

static void hands_structs_over(void **state)
{
    (void)state;
    const struct lk_kernel_spec spec = {
        .source = "products/direct/pack", .name = "conv2d_pack", .real_bytes = 4};
    const struct lk_device_info *info = lk_device_info(device);
    const struct lk_grid grid = {{1, 1, 1}, info->lanes / info->vector};
    const struct {
        lk_int numbers[1000];
    } longest = {{0}};
    struct lk_pack large = pack;
    float w[INS * TAPS * TAPS * OUTS], packed[BLOCKS * BLOCK * INS * TAPS * TAPS];
    struct lk_buffer *from = NULL, *to = NULL;
    struct lk_kernel *kernel = NULL;
    for (int i = 0; i < LK_COUNT(w); i++)
        w[i] = (float)(i + 1);
    assert_ok(lk_kernel_create(device, &spec, &kernel));
    assert_ok(lk_device_build(device));
    assert_ok(lk_buffer_create(device, sizeof w, &from));
    assert_ok(lk_buffer_create(device, sizeof packed, &to));
    assert_ok(lk_buffer_write(from, 0, sizeof w, w));
    assert_ok(LK_ENQUEUE(kernel, grid, LK_BUF(from), LK_BUF(to), LK_INT(0), LK_STRUCT(&pack)));
    assert_ok(lk_buffer_read(to, 0, sizeof packed, packed));
    expect_packed(w, packed);
    large.row_stride = -(1LL << 31) - 1;
    assert_fails(
        LK_ENQUEUE(kernel, grid, LK_BUF(from), LK_BUF(to), LK_INT(0), LK_STRUCT(&large)),
        LK_E_ARGUMENT, "'conv2d_pack': argument 3 is too large: -2147483649");
    assert_fails(
        LK_ENQUEUE(kernel, grid, LK_BUF(from), LK_BUF(to), LK_INT(0), LK_STRUCT(&longest)),
        LK_E_DEVICE, "argument 3: CL_INVALID_ARG_SIZE");
    lk_kernel_destroy(kernel);
    lk_buffer_destroy(from);
    lk_buffer_destroy(to);
}

static struct lk_progress first_told, last_told;

static void hear(void *context, const struct lk_progress *progress)
{
    int *calls = context;
    if ((*calls)++ == 0)
        first_told = *progress;
    last_told = *progress;
}

/* Two kernels of one program count once; one that does not build is not done. */
static void tells_how_far_it_is(void **state)
{
    (void)state;
    struct lk_kernel *kernels[] = {announce("-DB=1", 4), announce("-DB=2", 4),
                                   announce("-DB=1", 4)};
    int calls = 0;
    lk_progress_set(hear, &calls);
    assert_ok(lk_device_build(device));
    assert_int_equal(first_told.task, LK_TASK_BUILD);
    assert_int_equal(first_told.done, 0);
    assert_int_equal(first_told.count, 2);
    assert_false(first_told.is_over);
    assert_int_equal(last_told.done, 2);
    assert_true(last_told.is_over);
    calls = 0;
    assert_ok(lk_device_build(device)); /* nothing left to do, nothing to tell */
    assert_int_equal(calls, 0);
    struct lk_kernel *broken = announce("-DREAL=folly", 4);
    assert_int_equal(lk_device_build(device), LK_E_BUILD);
    lk_error_clear();
    assert_int_equal(last_told.done, 0);
    assert_int_equal(last_told.count, 1);
    assert_true(last_told.is_over);
    lk_progress_set(NULL, NULL);
    lk_kernel_destroy(broken);
    for (int i = 0; i < LK_COUNT(kernels); i++)
        lk_kernel_destroy(kernels[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(builds_several),
        cmocka_unit_test(builds_together),
        cmocka_unit_test(skips_passes_where_measured),
        cmocka_unit_test(says_why_it_does_not_build),
        cmocka_unit_test(keeps_logs_where_told),
        cmocka_unit_test(refuses_unknown_names),
        cmocka_unit_test(refuses_groups_that_are_too_large),
        cmocka_unit_test(refuses_arguments),
        cmocka_unit_test(hands_structs_over),
        cmocka_unit_test(tells_how_far_it_is),
    };
    return cmocka_run_group_tests(tests, open_with_cache, close_with_cache);
}
