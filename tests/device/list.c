/* Which devices there are, what is said of them, and lists of them. */
#include "rig.h"
#include "skip.h"

static void describes_every_device(void **state)
{
    (void)state;
    int count = 0;
    assert_ok(lk_device_count(&count));
    assert_true(count >= 1);
    for (int i = 0; i < count; i++) {
        struct lk_device_info info;
        assert_ok(lk_device_query(i, &info));
        assert_int_equal(info.index, i);
        assert_true(info.name[0] && info.platform[0] && info.driver[0] && info.version[0]);
        assert_true(info.compute_units >= 1);
        assert_true(info.vector_width >= 1);
        assert_true(info.allocation_bytes > 0 && info.allocation_bytes <= info.memory_bytes);
        assert_true(info.local_bytes >= 1024 && info.group_items >= 1);
        assert_int_equal(info.align_bytes % 128, 0);
        assert_int_equal(info.lanes % info.vector, 0);
        if (info.device_class == LK_CLASS_CPU)
            assert_true(info.vector == info.lanes && info.lanes >= 4 && info.lanes <= 16);
        else
            assert_true(info.vector == 1 && (size_t)info.lanes <= info.group_items);
    }
    struct lk_device_info info;
    assert_fails(lk_device_query(count, &info), LK_E_NO_DEVICE, "is not there: there are");
    assert_fails(lk_device_query(-1, &info), LK_E_NO_DEVICE, "device -1 is not there");
}

static void counts_lists(void **state)
{
    (void)state;
    int all = 0, count = 0;
    assert_ok(lk_device_count(&all));
    const struct {
        const char *spec;
        int count;
    } cases[] = {{NULL, 1},    {"", 1},      {"0", 1},          {"all", all},
                 {"0*2", 2},   {"0*3", 3},   {"0/2", 2},        {"0/1", 1},
                 {"0*64", 64}, {"0/2.1", 1}, {"0/2.1,0/2.0", 2}};
    for (int i = 0; i < LK_COUNT(cases); i++) {
        assert_ok(lk_device_list_count(cases[i].spec, &count));
        if (count != cases[i].count)
            fail_msg("'%s' names %d devices", cases[i].spec ? cases[i].spec : "NULL", count);
    }
}

static void refuses_lists(void **state)
{
    (void)state;
    struct lk_device_info first;
    assert_ok(lk_device_query(0, &first));
    const struct {
        const char *spec;
        enum lk_status code;
        const char *said;
    } cases[] = {
        {"fast", LK_E_ARGUMENT, "'fast' is not a number, 'N/PARTS'"},
        {"0,,0", LK_E_ARGUMENT, "has an empty place"},
        {"0,", LK_E_ARGUMENT, "has an empty place"},
        {"0,0", LK_E_ARGUMENT, "named twice; '0*2' makes two replicas"},
        {"0/2,0", LK_E_ARGUMENT, "named twice"},
        {"all,0", LK_E_ARGUMENT, "named twice"},
        {first.device_class == LK_CLASS_CPU ? "0,cpu" : "0,gpu", LK_E_ARGUMENT, "named twice"},
        {"ALL", LK_E_ARGUMENT, "device 'ALL'"},
        {"99", LK_E_NO_DEVICE, "device 99 is not there: there"},
        {"-1", LK_E_NO_DEVICE, "device -1 is not there"},
        {"4294967296", LK_E_NO_DEVICE, "device 4294967296 is not there"},
        {"99999999999999999999", LK_E_NO_DEVICE, "is not there"},
        {"0x", LK_E_ARGUMENT, "device '0x': expected N, N/PARTS, N/PARTS.PART or"},
        {"0/", LK_E_ARGUMENT, "device '0/': expected"},
        {"0/0", LK_E_ARGUMENT, "device '0/0': expected"},
        {"0/-1", LK_E_ARGUMENT, "device '0/-1': expected"},
        {"0/2x", LK_E_ARGUMENT, "device '0/2x': expected"},
        {"0/2.2", LK_E_ARGUMENT, "device '0/2.2': expected"},
        {"0/2.1,0/2.1", LK_E_ARGUMENT, "named twice"},
        {"0/2.1,0", LK_E_ARGUMENT, "named twice"},
        {"0*65", LK_E_ARGUMENT, "at most 64 of them"},
        {"0*4294967297", LK_E_ARGUMENT, "at most 64 of them"},
        {"0*64,0", LK_E_ARGUMENT, "named twice"},
    };
    int count = -7;
    for (int i = 0; i < LK_COUNT(cases); i++) {
        assert_fails(lk_device_list_count(cases[i].spec, &count), cases[i].code, cases[i].said);
        assert_int_equal(count, -7); /* untouched */
    }
    char long_list[1024];
    memset(long_list, '0', sizeof long_list - 1);
    long_list[sizeof long_list - 1] = '\0';
    assert_fails(lk_device_list_count(long_list, &count), LK_E_ARGUMENT, "1023 characters");
}

static void names_classes(void **state)
{
    (void)state;
    int all = 0, cpus = 0, gpus = 0;
    assert_ok(lk_device_count(&all));
    if (lk_device_list_count("cpu", &cpus) != LK_OK)
        assert_fails(LK_E_NO_DEVICE, LK_E_NO_DEVICE, "device list 'cpu': there is no cpu");
    if (lk_device_list_count("gpu", &gpus) != LK_OK)
        assert_fails(LK_E_NO_DEVICE, LK_E_NO_DEVICE, "device list 'gpu': there is no gpu");
    assert_int_equal(cpus + gpus, all);
}

static void reads_the_environment(void **state)
{
    (void)state;
    int count = 0;
    setenv("LOCKSTEP_DEVICE", "0*5", 1);
    assert_ok(lk_device_list_count(NULL, &count));
    assert_int_equal(count, 5);
    assert_ok(lk_device_list_count("0", &count)); /* what is asked for comes first */
    assert_int_equal(count, 1);
    setenv("LOCKSTEP_DEVICE", "nothing", 1);
    assert_fails(lk_device_list_count("", &count), LK_E_ARGUMENT, "device 'nothing'");
    unsetenv("LOCKSTEP_DEVICE");
}

static void opens_entries(void **state)
{
    (void)state;
    struct lk_device *first = NULL, *second = NULL, *none = NULL;
    assert_ok(lk_device_open("0*2", 0, &first));
    assert_ok(lk_device_open("0*2", 1, &second));
    assert_string_equal(lk_device_info(first)->name, lk_device_info(second)->name);
    assert_ok(lk_device_finish(first));
    lk_device_close(first);
    assert_ok(lk_device_finish(second)); /* a context of its own */
    lk_device_close(second);
    lk_device_close(NULL);
    assert_fails(lk_device_open("0*2", 2, &none), LK_E_ARGUMENT, "entry 2 of a list of 2");
    assert_fails(lk_device_open("0", -1, &none), LK_E_ARGUMENT, "entry -1 of a list of 1");
    assert_null(none);
}

static void cuts_devices(void **state)
{
    (void)state;
    struct lk_device_info whole;
    struct lk_device *part = NULL;
    assert_ok(lk_device_query(0, &whole));
    for (int i = 0; i < 2; i++) {
        const enum lk_status status = lk_device_open("0/2", i, &part);
        if (status == LK_E_ARGUMENT || whole.compute_units < 2) {
            assert_int_not_equal(status, LK_OK);
            lk_error_clear();
            SKIP_TEST("this device has no parts");
        }
        assert_ok(status);
        assert_int_equal(lk_device_info(part)->compute_units, whole.compute_units / 2);
        assert_ok(lk_device_finish(part));
        lk_device_close(part);
        part = NULL;
    }
    char spec[32];
    if (whole.compute_units < 64) {
        snprintf(spec, sizeof spec, "0/%d", whole.compute_units + 1);
        assert_fails(lk_device_open(spec, 0, &part), LK_E_ARGUMENT, "not enough for");
    }
    assert_null(part);
}

static void forces_the_class(void **state)
{
    (void)state;
    struct lk_device_info info;
    setenv("LOCKSTEP_CLASS", "gpu", 1);
    assert_ok(lk_device_query(0, &info));
    assert_true(info.device_class == LK_CLASS_GPU && info.vector == 1);
    unsetenv("LOCKSTEP_CLASS");
    assert_ok(lk_device_query(0, &info));
    const bool is_gpu = info.device_class == LK_CLASS_GPU; /* keeps its class */
    setenv("LOCKSTEP_CLASS", "cpu", 1);
    for (int vector = 4; vector <= 16; vector *= 2) {
        char text[16];
        snprintf(text, sizeof text, "%d", vector);
        setenv("LOCKSTEP_VECTOR", text, 1);
        assert_ok(lk_device_query(0, &info));
        assert_true(info.device_class == (is_gpu ? LK_CLASS_GPU : LK_CLASS_CPU));
        assert_true(is_gpu || (info.vector == vector && info.lanes == vector));
    }
    setenv("LOCKSTEP_VECTOR", "banana", 1);
    assert_fails(lk_device_query(0, &info), LK_E_ARGUMENT,
                 "'banana' in the environment: expected 4");
    setenv("LOCKSTEP_VECTOR", "32", 1);
    assert_fails(lk_device_query(0, &info), LK_E_ARGUMENT, "LOCKSTEP_VECTOR='32'");
    unsetenv("LOCKSTEP_VECTOR");
    setenv("LOCKSTEP_CLASS", "banana", 1);
    assert_fails(lk_device_query(0, &info), LK_E_ARGUMENT, "expected cpu or gpu");
    unsetenv("LOCKSTEP_CLASS");
}

static void says_what_to_install(void **state)
{
    (void)state;
    unsetenv("OCL_ICD_FILENAMES");
    assert_int_equal(run_child("no_platform", "OCL_ICD_VENDORS", "/nonexistent"), 0);
}

static int no_platform(void)
{
    int count = 0;
    struct lk_device *device = NULL;
    int wrong = judge(lk_device_count(&count), LK_E_NO_DEVICE, "pocl-opencl-icd");
    lk_error_clear();
    wrong += judge(lk_device_open("0", 0, &device), LK_E_NO_DEVICE, "no OpenCL platform");
    return wrong + (device != NULL);
}

/* More parts than wanted fit into 190 units: those left over belong to nobody. */
static void cuts_many_parts(void **state)
{
    (void)state;
    assert_int_equal(run_child("many_parts", "POCL_MAX_PTHREAD_COUNT", "190"), 0);
}

static int many_parts(void)
{
    struct lk_device *device = NULL;
    const enum lk_status status = lk_device_open("0/64", 63, &device);
    const bool is_small = status == LK_E_ARGUMENT && strstr(lk_error_text(), "not enough for");
    const bool is_whole = status == LK_E_ARGUMENT && strstr(lk_error_text(), "cannot be cut") &&
                          !strstr(lk_error_text(), "CL_INVALID_VALUE");
    if (status != LK_OK)
        return !is_small && !is_whole;
    const bool is_right = lk_device_info(device)->compute_units >= 2;
    lk_device_close(device);
    return !is_right;
}

int main(int count, char **text)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(describes_every_device), cmocka_unit_test(counts_lists),
        cmocka_unit_test(refuses_lists),          cmocka_unit_test(names_classes),
        cmocka_unit_test(reads_the_environment),  cmocka_unit_test(opens_entries),
        cmocka_unit_test(cuts_devices),           cmocka_unit_test(forces_the_class),
        cmocka_unit_test(says_what_to_install),   cmocka_unit_test(cuts_many_parts),
    };
    if (count == 2 && strcmp(text[1], "many_parts") == 0)
        return many_parts();
    if (count == 2 && strcmp(text[1], "no_platform") == 0)
        return no_platform();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
