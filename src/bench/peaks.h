/* The meter behind lk_peaks_measure(), kept open to measure again and again. Floor 9. */
#ifndef LK_BENCH_PEAKS_H
#define LK_BENCH_PEAKS_H

#include "device/device.h"
#include <lockstep/bench.h>

struct lk_meter;

/* Three arrays larger than caches and the kernels; they run after lk_device_build().
 * fails: LK_E_BUILD, LK_E_MEMORY, LK_E_DEVICE_MEMORY */
LK_MUST_CHECK enum lk_status lk_meter_create(struct lk_device *device, struct lk_meter **meter);
void lk_meter_destroy(struct lk_meter *meter);

/* 1e9 operations or bytes a second over the runs that fit into the time, at least two of each
 * kernel. Others that load the machine lower the typical rate before the best. */
struct lk_rate {
    double best, typical; /* typical: the median */
};

/* Wait. */
LK_MUST_CHECK enum lk_status lk_meter_fma(struct lk_meter *meter, double seconds,
                                          struct lk_rate *gflops);
LK_MUST_CHECK enum lk_status lk_meter_bandwidth(struct lk_meter *meter, double seconds,
                                                struct lk_rate *gbs);

#endif
