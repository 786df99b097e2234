/* The averaging bench: figures that fit each other, on arrays smaller than the usual ones. */
#include <lockstep/bench.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_figures(void **state)
{
    struct lk_bench_averaging a;
    (void)state;
    assert_int_equal(lk_bench_averaging(1000003, &a), LK_OK);
    assert_int_equal(a.bytes, 1000000);
    assert_int_equal(a.replicas, 4);
    assert_in_range(a.threads, 1, 256);
    assert_true(a.gbs > 0 && a.checked_gbs > 0 && a.read_gbs > 0 && a.copy_gbs > 0);
    assert_true(fabs(a.ms * a.gbs - 5) < 1e-9); /* five arrays of a megabyte */
    assert_true(fabs(a.percent_of_bandwidth - 100 * a.gbs / fmax(a.read_gbs, a.copy_gbs)) <
                1e-9);
}

static void test_refusals(void **state)
{
    struct lk_bench_averaging a = {.replicas = 7};
    (void)state;
    assert_int_equal(lk_bench_averaging(-1, &a), LK_E_ARGUMENT);
    assert_int_equal(lk_bench_averaging(INT64_MAX, &a), LK_E_ARGUMENT);
    assert_int_equal(lk_bench_averaging(INT64_MAX / 5, &a), LK_E_MEMORY);
    assert_int_equal(a.replicas, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_figures),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
