/* Repeated measurements. Floor 9. */
#ifndef LK_BENCH_TIMING_H
#define LK_BENCH_TIMING_H

#include "base/median.h"
#include "bench/peaks.h"

/* Work that can be enqueued again and again; turn: 0, 1, 2 ... */
struct lk_work {
    enum lk_status (*enqueue)(void *context, int64_t turn);
    void *context;
    double seconds; /* to measure for, about; 0: the usual */
};

/* Fills ms, the rates, host_us and, of the peak that `result` is bound by, this and
 * percent_of_peak, from its flops and bytes: medians over measurements of the work and of the
 * peak in turns, so that both see the same load of the machine. Waits. */
LK_MUST_CHECK enum lk_status lk_work_measure(const struct lk_work *work,
                                             struct lk_device *device, struct lk_meter *meter,
                                             struct lk_bench_kernel *result);

#endif
