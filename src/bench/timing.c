/* Times work in turns with the device's peak, so that both see the same load. */
#include "bench/timing.h"

#include "base/clock.h"
#include "base/fail.h"
#include "device/device.h"

enum { MEASUREMENTS = 5 };

static const double USUAL = 0.4;         /* seconds of all measurements, by default */
static const double PEAK_SHARE = 1 / 3.; /* the fraction of them spent on the peak */

struct times {
    double all, host; /* seconds: until the work is done, until it is enqueued */
};

static enum lk_status run(const struct lk_work *work, struct lk_device *device, int64_t turns,
                          struct times *times)
{
    const double start = lk_seconds();
    for (int64_t i = 0; i < turns; i++)
        LK_TRY(work->enqueue(work->context, i));
    const double enqueued = lk_seconds();
    LK_TRY(lk_device_finish(device));
    *times = (struct times){lk_seconds() - start, enqueued - start};
    return LK_OK;
}

/* Chooses how often the work runs in one measurement, so that it lasts long enough. */
static enum lk_status choose_turns(const struct lk_work *work, struct lk_device *device,
                                   double seconds, int64_t *turns)
{
    struct times took;
    int64_t count = 1;
    LK_TRY(run(work, device, count, &took)); /* some drivers compile here */
    LK_TRY(run(work, device, count, &took));
    while (took.all < seconds / 2) {
        count *= 2;
        LK_TRY(run(work, device, count, &took));
    }
    *turns = took.all < seconds ? 2 * count : count;
    return LK_OK;
}

enum lk_status lk_work_measure(const struct lk_work *work, struct lk_device *device,
                               struct lk_meter *meter, struct lk_bench_kernel *result)
{
    double all[MEASUREMENTS], host[MEASUREMENTS], peaks[MEASUREMENTS];
    const double each = (work->seconds > 0 ? work->seconds : USUAL) / MEASUREMENTS;
    struct lk_rate rate;
    int64_t turns;
    LK_TRY(choose_turns(work, device, each * (1 - PEAK_SHARE), &turns));
    for (int i = 0; i < MEASUREMENTS; i++) {
        struct times took;
        LK_TRY((result->memory_bound ? lk_meter_bandwidth
                                     : lk_meter_fma)(meter, each * PEAK_SHARE, &rate));
        LK_TRY(run(work, device, turns, &took));
        peaks[i] = rate.typical;
        all[i] = took.all / (double)turns;
        host[i] = took.host / (double)turns;
    }
    const double seconds = lk_median(all, MEASUREMENTS), peak = lk_median(peaks, MEASUREMENTS);
    *(result->memory_bound ? &result->peaks.bandwidth_gbs : &result->peaks.fma_gflops) = peak;
    result->gflops = 1e-9 * result->flops / seconds;
    result->gbs = 1e-9 * result->bytes / seconds;
    result->percent_of_peak =
        100 * (result->memory_bound ? result->gbs : result->gflops) / peak;
    result->ms = 1e3 * seconds;
    result->host_us = 1e6 * lk_median(host, MEASUREMENTS);
    return LK_OK;
}
