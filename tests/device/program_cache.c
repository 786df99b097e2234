/* Built programs on disk: another device finds them, damaged ones are built anew. */
#include "rig.h"

#include "../scratch.h"
#include "device/program/cache.h"

static int make_cache(void **state)
{
    if (scratch_make(state) != 0)
        return -1;
    setenv("LOCKSTEP_CACHE", scratch, 1);
    setenv("LOCKSTEP_PROGRAM_CACHE", "1", 1);
    return 0;
}

/* Opens a device, gets the program of accumulate.cl, with `option`, and runs its kernel once.
 * Whether the program was there already. */
static bool use_program(const char *option)
{
    struct lk_device *device = NULL;
    struct lk_kernel *kernel = NULL;
    struct lk_buffer *x = NULL, *y = NULL;
    float ones[64], got[64];
    const struct lk_kernel_spec spec = {
        .source = "graph/accumulate", .name = "accumulate", .options = option, .real_bytes = 4};
    assert_ok(lk_device_open(NULL, 0, &device));
    const int lanes = lk_device_info(device)->lanes;
    const struct lk_grid grid = {{1, 1, 1}, lanes / lk_device_info(device)->vector};
    const size_t bytes = (size_t)lanes * sizeof(float);
    assert_true(bytes <= sizeof ones);
    for (int i = 0; i < lanes; i++)
        ones[i] = 1;
    assert_ok(lk_kernel_create(device, &spec, &kernel));
    struct lk_program *program = NULL;
    assert_ok(lk_program_find(device, &spec, &program));
    cl_program loaded = lk_cache_load(device, program);
    if (loaded)
        clReleaseProgram(loaded);
    assert_ok(lk_device_build(device));
    assert_ok(lk_buffer_create(device, bytes, &x));
    assert_ok(lk_buffer_create(device, bytes, &y));
    assert_ok(lk_buffer_write(x, 0, bytes, ones));
    assert_ok(lk_buffer_write(y, 0, bytes, ones));
    assert_ok(LK_ENQUEUE(kernel, grid, LK_BUF(x), LK_BUF(y), LK_INT(1), LK_INT(1)));
    assert_ok(lk_buffer_read(y, 0, bytes, got));
    for (int i = 0; i < lanes; i++)
        assert_true(got[i] == 2);
    lk_buffer_destroy(x);
    lk_buffer_destroy(y);
    lk_kernel_destroy(kernel);
    lk_device_close(device);
    return loaded != NULL;
}

/* The one file in the cache. */
static const char *entry(void)
{
    static char path[512];
    int count = 0;
    DIR *folder = opendir(scratch_path("programs"));
    assert_non_null(folder);
    for (struct dirent *found; (found = readdir(folder)) != NULL;)
        if (found->d_name[0] != '.') {
            snprintf(path, sizeof path, "%s/programs/%.200s", scratch, found->d_name);
            count++;
        }
    closedir(folder);
    assert_int_equal(count, 1);
    return path;
}

static void keeps_programs(void **state)
{
    (void)state;
    assert_false(use_program(NULL));
    const char *path = entry();
    assert_true(strlen(path) > 36 && strcmp(path + strlen(path) - 4, ".bin") == 0);
    assert_true(use_program(NULL));
    assert_string_equal(entry(), path); /* no second one, nothing half written */
}

static void rebuilds_damaged_ones(void **state)
{
    (void)state;
    char whole[1 << 20];
    use_program(NULL);
    FILE *file = fopen(entry(), "rb");
    assert_non_null(file);
    const size_t bytes = fread(whole, 1, sizeof whole, file);
    fclose(file);
    assert_true(bytes > 100 && bytes < sizeof whole);
    const size_t lengths[] = {0, 1, 7, 8, 9, bytes / 2, bytes - 1};
    for (int i = 0; i < LK_COUNT(lengths); i++) { /* cut short */
        scratch_put(entry(), whole, lengths[i]);
        assert_false(use_program(NULL));
        assert_true(use_program(NULL));
    }
    for (size_t at = 0; at < bytes; at += bytes / 7) { /* one bit */
        whole[at] ^= 4;
        scratch_put(entry(), whole, bytes);
        whole[at] ^= 4;
        assert_false(use_program(NULL));
        assert_true(use_program(NULL));
    }
}

static void can_be_turned_off(void **state)
{
    (void)state;
    setenv("LOCKSTEP_PROGRAM_CACHE", "0", 1);
    assert_false(use_program(NULL));
    assert_false(use_program("-DOTHER=1"));
    setenv("LOCKSTEP_PROGRAM_CACHE", "1", 1);
    entry();                                /* still one */
    assert_false(use_program("-DOTHER=1")); /* other options, another program */
    assert_true(use_program("-DOTHER=1"));
    assert_true(use_program(NULL));
    assert_int_equal(scratch_entries(scratch_path("programs")), 2);
}

static void does_without(void **state)
{
    (void)state;
    setenv("LOCKSTEP_CACHE", "/proc/nowhere", 1);
    assert_false(use_program(NULL)); /* builds all the same */
    setenv("LOCKSTEP_CACHE", scratch, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_programs),
        cmocka_unit_test(rebuilds_damaged_ones),
        cmocka_unit_test(can_be_turned_off),
        cmocka_unit_test(does_without),
    };
    return cmocka_run_group_tests(tests, make_cache, scratch_remove);
}
