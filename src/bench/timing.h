/* Times work again and again, in turns with a device's peak. Floor 9. */
#ifndef LK_BENCH_TIMING_H
#define LK_BENCH_TIMING_H

#include "base/median.h"
#include "bench/peaks.h"

/* Work that is timed: enqueue() is called with turn 0, 1, 2 ... */
struct lk_work {
    enum lk_status (*enqueue)(void *context, int64_t turn);
    void *context;
    double seconds; /* how long to measure, about; 0: the default */
};

/* Measures the work and the peak rate that bounds it (result->memory_bound) in turns, so that
 * both see the same load of the machine. Fills ms, the rates, host_us, that peak and
 * percent_of_peak of `result`, whose flops and bytes are given: medians. Waits. */
LK_MUST_CHECK enum lk_status lk_work_measure(const struct lk_work *work,
                                             struct lk_device *device, struct lk_meter *meter,
                                             struct lk_bench_kernel *result);

#endif
