/* The self-test passes on a sound device, and fails where results are spoiled. */
#include "bench/selftest/selftest.h"
#include "device/rig.h"
#include "optim/optimizer.h"

static void expect_ok(void *context, const struct lk_selftest *test)
{
    int *calls = context;
    if (!test->ok)
        fail_msg("%s: %s", test->name, test->detail);
    assert_string_equal(test->detail, "");
    assert_int_equal(test->done, ++*calls);
    assert_true(test->done <= test->count);
}

static void sound_kernels_pass(void **state)
{
    (void)state;
    int calls = 0, failures = -1;
    assert_int_equal(lk_selftest_run(device, expect_ok, &calls, &failures), LK_OK);
    assert_int_equal(failures, 0);
    assert_true(calls >= 55);
    assert_int_equal(lk_device_bytes(device), 0);
}

/* A work-item a sample, as on GPUs: the same answers. */
static void the_other_class_passes(void **state)
{
    (void)state;
    struct lk_device *other;
    int calls = 0, failures = -1;
    const bool is_cpu = lk_device_info(device)->device_class == LK_CLASS_CPU;
    setenv("LOCKSTEP_CLASS", is_cpu ? "gpu" : "cpu", 1);
    const enum lk_status status = lk_device_open(NULL, 0, &other);
    unsetenv("LOCKSTEP_CLASS");
    assert_int_equal(status, LK_OK);
    assert_int_equal(lk_selftest_run(other, expect_ok, &calls, &failures), LK_OK);
    assert_int_equal(failures, 0);
    lk_device_close(other);
}

static const char *const targets[] = {
    "conv2d [3, 9, 8]", "dense [130]", "max_pool [3",
    "dropout",          "tanh",        "softmax_cross_entropy [4, 6]",
    "hinge [1]",        "huber",       "images into batch tiles",
    "sums over shards", "adamw"};
enum { TARGETS = LK_COUNT(targets) };

/* The target that a test's name begins with; -1: none. */
static int find_target(const char *name)
{
    for (int i = 0; i < TARGETS; i++)
        if (strncmp(name, targets[i], strlen(targets[i])) == 0)
            return i;
    return -1;
}

static void flip_a_bit(void *context, const char *name, struct lk_buffer *result)
{
    bool *spoiled = context;
    const int target = find_target(name);
    uint32_t bits;
    if (target < 0 || spoiled[target])
        return;
    spoiled[target] = true;
    assert_int_equal(lk_buffer_read(result, 0, sizeof bits, &bits), LK_OK);
    bits ^= 1u << 20; /* an eighth of a number from 1 to 2 */
    assert_int_equal(lk_buffer_write(result, 0, sizeof bits, &bits), LK_OK);
}

static void expect_spoiled(void *context, const struct lk_selftest *test)
{
    const bool *spoiled = context;
    const int target = find_target(test->name);
    if (test->ok != (target < 0))
        fail_msg("%s: %s", test->name, test->ok ? "passed" : test->detail);
    assert_true(test->ok || (spoiled[target] && strlen(test->detail) > 10));
}

static void one_wrong_bit_fails_its_test_alone(void **state)
{
    (void)state;
    bool spoiled[TARGETS] = {false};
    const struct lk_tamper tamper = {.change = flip_a_bit, .context = spoiled};
    const struct lk_selftest_config config = {
        .device = device, .handler = expect_spoiled, .context = spoiled, .tamper = &tamper};
    int failures = -1;
    assert_int_equal(lk_selftest_with(&config, &failures), LK_OK);
    assert_int_equal(failures, TARGETS);
}

static void every_optimizer_has_a_part(void **state)
{
    (void)state;
    for (int i = 0; lk_optimizer_kinds[i]; i++) {
        bool is_known = false;
        for (const struct lk_selftest_check *p = lk_selftest_checks; p->name; p++)
            is_known |= p->optimizer && strcmp(p->optimizer, lk_optimizer_kinds[i]->name) == 0;
        if (!is_known)
            fail_msg("no known answer of %s in src/bench/selftest/checks.c",
                     lk_optimizer_kinds[i]->name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sound_kernels_pass),
        cmocka_unit_test(the_other_class_passes),
        cmocka_unit_test(one_wrong_bit_fails_its_test_alone),
        cmocka_unit_test(every_optimizer_has_a_part),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
