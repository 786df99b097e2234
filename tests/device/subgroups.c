/* Sums over lanes by way of sub-groups: what is kept and what is not. The device here may have
 * none: then there is nothing to keep, whatever it is told it had. */
#include "rig.h"

#include "../scratch.h"
#include "device/opencl.h"
#include "device/subgroups.h"

static int set_up(void **state)
{
    if (scratch_make(state) != 0)
        return -1;
    setenv("LOCKSTEP_CACHE", scratch, 1);
    setenv("LOCKSTEP_SUBGROUPS", "1", 1);     /* on CPUs too */
    setenv("LOCKSTEP_BUILD_THREADS", "1", 1); /* builds that fail at once may end PoCL */
    device = open_class("gpu");
    return 0;
}

static int tear_down(void **state)
{
    close_device(state);
    return scratch_remove(state);
}

/* How the same kernel is built now. */
static bool shuffles(void)
{
    return strstr(device->shuffle, "-DSHUFFLE=") != NULL;
}

static void test_named_where_kept(void **state)
{
    (void)state;
    assert_int_equal(shuffles(), device->info.subgroups[0] != '\0');
}

static void test_what_does_not_build(void **state)
{
    (void)state;
    assert_false(lk_subgroups_try(device, "-DSHUFFLE=no_such_function -DSUBGROUP=32"));
    assert_false(shuffles());
    assert_string_equal(lk_error_text(), "");
}

/* It builds: the greater of a number and a distance for the number of a neighbour. */
static void test_what_sums_wrongly(void **state)
{
    (void)state;
    assert_false(lk_subgroups_try(device, "-DSHUFFLE=fmax -DSUBGROUP=32"));
    assert_false(shuffles());
    assert_string_equal(lk_error_text(), "");
}

/* Wrong only in tiles of 32 lanes, in the first step, and only in the last, in all. */
static void test_what_is_wrong_in_one_step(void **state)
{
    (void)state;
    assert_false(lk_subgroups_try(device, "-DSHUFFLE=fmax -DSUBGROUP=2"));
    assert_false(lk_subgroups_try(device, "-DSHUFFLE=fmax -DSUBGROUP=(PARTS<32?1:32)"));
    assert_false(lk_subgroups_try(device, "-DSHUFFLE=fmax -DSUBGROUP=(PARTS>8?1:8)"));
}

/* Sub-groups of one work-item have nothing to shuffle. */
static void test_what_is_right(void **state)
{
    (void)state;
    assert_true(lk_subgroups_try(device, "-DSHUFFLE=fmax -DSUBGROUP=1"));
    assert_true(shuffles());
}

static void test_promised_only(void **state)
{
    (void)state;
    if (device->info.subgroups[0])
        skip();
    strcpy(device->info.extensions,
           "cl_khr_subgroups cl_khr_subgroup_shuffle cl_intel_subgroups");
    lk_subgroups_choose(device);
    assert_string_equal(device->info.subgroups, "");
    assert_false(shuffles());
    assert_string_equal(lk_error_text(), "");
}

static void test_not_wanted(void **state)
{
    (void)state;
    setenv("LOCKSTEP_SUBGROUPS", "0", 1);
    struct lk_device *plain = open_class("gpu");
    setenv("LOCKSTEP_SUBGROUPS", "1", 1);
    assert_string_equal(plain->info.subgroups, "");
    assert_string_equal(plain->shuffle, "");
    lk_device_close(plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_named_where_kept),
        cmocka_unit_test(test_what_does_not_build),
        cmocka_unit_test(test_what_sums_wrongly),
        cmocka_unit_test(test_what_is_wrong_in_one_step),
        cmocka_unit_test(test_what_is_right),
        cmocka_unit_test(test_promised_only),
        cmocka_unit_test(test_not_wanted),
    };
    return cmocka_run_group_tests_name("device/subgroups", tests, set_up, tear_down);
}
