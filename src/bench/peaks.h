/* A meter of a device's peak rates, which can be asked again and again; lk_peaks_measure() uses
 * it once. Floor 9. */
#ifndef LK_BENCH_PEAKS_H
#define LK_BENCH_PEAKS_H

#include "device/device.h"
#include <lockstep/bench.h>

struct lk_meter;

/* Allocates three arrays that are larger than caches and announces the kernels, which can run
 * after lk_device_build(). fails: LK_E_BUILD, LK_E_MEMORY, LK_E_DEVICE_MEMORY */
LK_MUST_CHECK enum lk_status lk_meter_create(struct lk_device *device, struct lk_meter **meter);
void lk_meter_destroy(struct lk_meter *meter);

/* A rate in 1e9 operations, or bytes, a second: the best run and the median one, of the runs
 * that fit into the given time, at least two of each kernel. Other work on the machine lowers
 * the typical rate more than the best. */
struct lk_rate {
    double best, typical; /* typical: the median */
};

/* Measure for about `seconds`; wait. */
LK_MUST_CHECK enum lk_status lk_meter_fma(struct lk_meter *meter, double seconds,
                                          struct lk_rate *gflops);
LK_MUST_CHECK enum lk_status lk_meter_bandwidth(struct lk_meter *meter, double seconds,
                                                struct lk_rate *gbs);

#endif
