/* Products by matrix units: when they are tried, what is kept, and, where local memory stands
 * in for the units, their numbers beside those of whole floats rounded to tf32. */
#include "device/rig.h"

#include "../scratch.h"
#include "ops/probe/probe.h"
#include "products/gpu/units.h"

static int set_up(void **state)
{
    if (scratch_make(state) != 0)
        return -1;
    setenv("LOCKSTEP_CACHE", scratch, 1);
    setenv("LOCKSTEP_BUILD_THREADS", "1", 1); /* builds that fail at once may end PoCL */
    return 0;
}

static struct lk_device *open_with(const char *class, const char *matrix)
{
    if (matrix)
        setenv("LOCKSTEP_MATRIX", matrix, 1);
    else
        unsetenv("LOCKSTEP_MATRIX");
    return open_class(class);
}

static void look(void *context, const char *key, const char *text)
{
    bool *is_taken = context;
    (void)key;
    *is_taken |= lk_candidate_is_same(text, LK_GPU_MATRIX_NAME);
}

/* Whether any pass of a wide convolution takes matrix units by rule. */
static bool is_taken(struct lk_device *on, enum lk_math math)
{
    struct lk_probe probe = {0};
    struct lk_probe_config config = {.device = on,
                                     .op = "conv2d",
                                     .options = "filters=128 kernel=1",
                                     .inputs = 1,
                                     .x = {{3, {64, 8, 8}}},
                                     .batch = 64,
                                     .shards = 1,
                                     .training = true,
                                     .dx = true,
                                     .dw = true};
    bool taken = false;
    assert_ok(lk_choices_create(math, &config.choices));
    assert_ok(lk_probe_open(&probe, &config));
    lk_choices_each(config.choices, look, &taken);
    lk_probe_close(&probe);
    lk_choices_destroy(config.choices);
    return taken;
}

static void test_emulated(void **state)
{
    (void)state;
    struct lk_device *on = open_with("gpu", "emulated");
    assert_false(is_taken(on, LK_MATH_STRICT));
    assert_false(is_taken(on, LK_MATH_NORMAL));
    assert_int_equal(*lk_device_matrix(on), -1); /* nobody asked */
    assert_true(is_taken(on, LK_MATH_FAST));
    assert_int_equal(*lk_device_matrix(on), LK_GPU_MATRIX_EMULATED);
    lk_device_close(on);
}

static void test_not_wanted(void **state)
{
    (void)state;
    struct lk_device *on = open_with("gpu", "0");
    assert_false(is_taken(on, LK_MATH_FAST));
    lk_device_close(on);
    on = open_with("cpu", "emulated");
    assert_false(is_taken(on, LK_MATH_FAST));
    lk_device_close(on);
}

/* A device that says it is NVIDIA's and does not take PTX keeps the plain kernel, silently. */
static void test_promised_only(void **state)
{
    (void)state;
    struct lk_device *on = open_with("gpu", NULL);
    struct lk_device_info *info = (struct lk_device_info *)lk_device_info(on);
    if (strstr(info->vendor, "NVIDIA")) {
        lk_device_close(on);
        skip();
    }
    assert_false(is_taken(on, LK_MATH_FAST));
    assert_int_equal(*lk_device_matrix(on), LK_GPU_MATRIX_NONE);
    *lk_device_matrix(on) = -1;
    strcpy(info->vendor, "NVIDIA Corporation");
    assert_false(is_taken(on, LK_MATH_FAST));
    assert_int_equal(*lk_device_matrix(on), LK_GPU_MATRIX_NONE);
    assert_string_equal(lk_error_text(), "");
    lk_device_close(on);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_emulated),
        cmocka_unit_test(test_not_wanted),
        cmocka_unit_test(test_promised_only),
    };
    return cmocka_run_group_tests_name("ops/gpu_matrix", tests, set_up, scratch_remove);
}
