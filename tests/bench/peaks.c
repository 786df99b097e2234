/* Peaks are figures that a device can have. */
#include "bench/peaks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

/* On a machine at work one of two short measurements may be stopped for most of its time. */
enum { TRIES = 8 };

static void measures_both_peaks(void **state)
{
    (void)state;
    struct lk_device *device;
    struct lk_peaks peaks = {0}, again = {0};
    assert_int_equal(lk_device_open(NULL, 0, &device), LK_OK);
    assert_int_equal(lk_peaks_measure(device, 0.02, &peaks), LK_OK);
    assert_int_equal(lk_device_bytes(device), 0);
    assert_int_equal(lk_peaks_measure(device, 0.02, &again), LK_OK);
    print_message("# %.1f GFLOP/s, %.1f GB/s\n", peaks.fma_gflops, peaks.bandwidth_gbs);
    assert_true(peaks.fma_gflops > 1 && peaks.fma_gflops < 1e6);
    assert_true(peaks.bandwidth_gbs > 0.5 && peaks.bandwidth_gbs < 1e5);
    /* a compiler that folds the work away reports more than a core can do */
    const struct lk_device_info *info = lk_device_info(device);
    if (info->device_class == LK_CLASS_CPU && info->clock_mhz > 0) {
        const double cycle = 4.0 * info->vector * info->compute_units; /* two multiply-adds */
        assert_true(peaks.fma_gflops < 3 * cycle * info->clock_mhz * 1e-3);
    }
    for (int i = 1; i < TRIES && (again.fma_gflops > 4 * peaks.fma_gflops ||
                                  peaks.fma_gflops > 4 * again.fma_gflops);
         i++) {
        peaks = again;
        assert_int_equal(lk_peaks_measure(device, 0.02, &again), LK_OK);
    }
    assert_true(again.fma_gflops < 4 * peaks.fma_gflops);
    assert_true(peaks.fma_gflops < 4 * again.fma_gflops);
    lk_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(measures_both_peaks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
