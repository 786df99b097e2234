#include "bench/timing.h"

#include "base/fail.h"
#include "device/device.h"
#include <stdlib.h>

enum { MEASUREMENTS = 5 };

static const double MEASUREMENT = 0.05, PEAK = 0.025; /* seconds */

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double lk_median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[count / 2];
}

static enum lk_status run(const struct lk_work *work, struct lk_device *device, int64_t turns,
                          double *seconds)
{
    const double start = lk_seconds();
    for (int64_t i = 0; i < turns; i++)
        LK_TRY(work->enqueue(work->context, i));
    LK_TRY(lk_device_finish(device));
    *seconds = lk_seconds() - start;
    return LK_OK;
}

/* Turns of a measurement, so that it lasts long enough. */
static enum lk_status choose_turns(const struct lk_work *work, struct lk_device *device,
                                   int64_t *turns)
{
    double took = 0;
    int64_t count = 1;
    LK_TRY(run(work, device, count, &took)); /* some drivers compile here */
    LK_TRY(run(work, device, count, &took));
    while (took < MEASUREMENT / 2) {
        count *= 2;
        LK_TRY(run(work, device, count, &took));
    }
    *turns = took < MEASUREMENT ? 2 * count : count;
    return LK_OK;
}

enum lk_status lk_work_measure(const struct lk_work *work, struct lk_device *device,
                               struct lk_meter *meter, struct lk_bench_kernel *result)
{
    double took[MEASUREMENTS], peaks[MEASUREMENTS];
    struct lk_rate rate;
    int64_t turns;
    LK_TRY(choose_turns(work, device, &turns));
    for (int i = 0; i < MEASUREMENTS; i++) {
        LK_TRY((work->memory_bound ? lk_meter_bandwidth : lk_meter_fma)(meter, PEAK, &rate));
        peaks[i] = rate.typical;
        LK_TRY(run(work, device, turns, &took[i]));
    }
    const double seconds = lk_median(took, MEASUREMENTS) / (double)turns;
    const double peak = lk_median(peaks, MEASUREMENTS), reached = 1e-9 * work->amount / seconds;
    *(work->memory_bound ? &result->gbs : &result->gflops) = reached;
    *(work->memory_bound ? &result->peaks.bandwidth_gbs : &result->peaks.fma_gflops) = peak;
    result->percent_of_peak = 100 * reached / peak;
    result->ms = 1e3 * seconds;
    return LK_OK;
}
