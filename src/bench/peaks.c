/* Measures a device's peak rates of multiply-adds and of memory. */
#include "bench/peaks.h"

#include "base/clock.h"
#include "base/fail.h"
#include "bench/timing.h"
#include <stdio.h>
#include <stdlib.h>

enum {
    CPU_CHAINS = 12, /* independent sums: 2 pipes with a latency of 4 cycles need 8; 16
                      * registers hold 12 */
    GPU_CHAINS = 16,
    CPU_UNITS = 8, /* work-groups for each compute unit, so that all finish at about one time */
    GPU_UNITS = 32,
    GPU_ITEMS = 256,
    STEPS = 16,           /* multiply-adds of each sum in a round */
    CPU_BYTES = 64 << 20, /* of an array: three are larger than caches, smaller than a model */
    GPU_BYTES = 128 << 20,
    COPY_GROUP = 4096, /* vectors a work-group copies */
    MOST_RUNS = 256,
};

static const double ONE_RUN = 4e-3; /* seconds that a run of multiply-adds should last */

struct lk_meter {
    struct lk_device *device;
    struct lk_kernel *fma, *copy, *triad;
    struct lk_buffer *x, *y, *z;
    int chains, items;
    int64_t groups, rounds; /* of the multiply-adds */
    int64_t vectors;        /* of an array */
    bool is_ready;          /* `rounds` has been chosen */
};

static void choose_sizes(struct lk_meter *meter)
{
    const struct lk_device_info *info = lk_device_info(meter->device);
    const bool gpu = info->vector == 1;
    size_t bytes = gpu ? GPU_BYTES : CPU_BYTES;
    while (bytes > info->allocation_bytes || bytes > info->memory_bytes / 8)
        bytes /= 2;
    meter->chains = gpu ? GPU_CHAINS : CPU_CHAINS;
    meter->items = gpu ? GPU_ITEMS : 1;
    while ((size_t)meter->items > info->group_items)
        meter->items /= 2;
    meter->groups = (int64_t)info->compute_units * (gpu ? GPU_UNITS : CPU_UNITS);
    meter->rounds = 64;
    meter->vectors = (int64_t)(bytes / sizeof(float)) / info->vector;
}

static enum lk_status create_kernel(struct lk_meter *meter, const char *name,
                                    struct lk_kernel **kernel)
{
    char options[96];
    snprintf(options, sizeof options, "-DCHAINS=%d -DITEMS=%d -DGROUP=%d", meter->chains,
             meter->items, COPY_GROUP);
    const struct lk_kernel_spec spec = {
        .source = "bench/bench", .name = name, .options = options, .real_bytes = sizeof(float)};
    return lk_kernel_create(meter->device, &spec, kernel);
}

static enum lk_status create(struct lk_meter *meter)
{
    choose_sizes(meter);
    LK_TRY(create_kernel(meter, "bench_fma", &meter->fma));
    LK_TRY(create_kernel(meter, "bench_copy", &meter->copy));
    LK_TRY(create_kernel(meter, "bench_triad", &meter->triad));
    const size_t bytes =
        (size_t)meter->vectors * (size_t)lk_device_info(meter->device)->vector * sizeof(float);
    LK_TRY(lk_buffer_create(meter->device, bytes, &meter->x));
    LK_TRY(lk_buffer_create(meter->device, bytes, &meter->y));
    LK_TRY(lk_buffer_create(meter->device, bytes, &meter->z));
    /* Touches all pages. As a float 0x3c3c3c3c is 0.0115, so that no sum is denormal. */
    LK_TRY(lk_buffer_enqueue_fill(meter->x, 0x3c));
    LK_TRY(lk_buffer_enqueue_fill(meter->y, 0x3c));
    return lk_buffer_enqueue_fill(meter->z, 0x3c);
}

enum lk_status lk_meter_create(struct lk_device *device, struct lk_meter **meter)
{
    struct lk_meter *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("a meter of peaks", sizeof *made);
    made->device = device;
    const enum lk_status status = create(made);
    if (status != LK_OK) {
        lk_meter_destroy(made);
        return status;
    }
    *meter = made;
    return LK_OK;
}

void lk_meter_destroy(struct lk_meter *meter)
{
    if (!meter)
        return;
    lk_kernel_destroy(meter->fma);
    lk_kernel_destroy(meter->copy);
    lk_kernel_destroy(meter->triad);
    lk_buffer_destroy(meter->x);
    lk_buffer_destroy(meter->y);
    lk_buffer_destroy(meter->z);
    free(meter);
}

static enum lk_status run_fma(struct lk_meter *meter, double *seconds)
{
    const struct lk_grid grid = {{meter->groups, 1, 1}, meter->items};
    const double start = lk_seconds();
    LK_TRY(LK_ENQUEUE(meter->fma, grid, LK_BUF(meter->y), LK_INT(meter->rounds), LK_REAL(0.75),
                      LK_REAL(0.5)));
    LK_TRY(lk_device_finish(meter->device));
    *seconds = lk_seconds() - start;
    return LK_OK;
}

/* Chooses how many rounds a run has: so many that the time of the launch hardly counts. */
static enum lk_status choose_rounds(struct lk_meter *meter)
{
    double took = 0;
    LK_TRY(run_fma(meter, &took)); /* some drivers compile here */
    LK_TRY(run_fma(meter, &took));
    while (took < ONE_RUN / 2 && meter->rounds < 1 << 24) {
        meter->rounds *= took < ONE_RUN / 8 ? 4 : 2;
        LK_TRY(run_fma(meter, &took));
    }
    meter->is_ready = true;
    return LK_OK;
}

static struct lk_rate rate_of(double *rates, int count)
{
    const double typical = lk_median(rates, count); /* sorts */
    return (struct lk_rate){.best = rates[count - 1], .typical = typical};
}

enum lk_status lk_meter_fma(struct lk_meter *meter, double seconds, struct lk_rate *gflops)
{
    double rates[MOST_RUNS], took = 0;
    if (!meter->is_ready)
        LK_TRY(choose_rounds(meter));
    const double values =
        (double)(meter->groups * meter->items) * lk_device_info(meter->device)->vector;
    const double flops = values * 2 * meter->chains * STEPS * (double)meter->rounds;
    const double end = lk_seconds() + seconds;
    int runs = 0;
    while (runs < 2 || (runs < MOST_RUNS && lk_seconds() < end)) {
        LK_TRY(run_fma(meter, &took));
        rates[runs++] = 1e-9 * flops / took;
    }
    *gflops = rate_of(rates, runs);
    return LK_OK;
}

static enum lk_status run_copy(struct lk_meter *meter, bool triad, double *seconds)
{
    const struct lk_grid grid = {{(meter->vectors + COPY_GROUP - 1) / COPY_GROUP, 1, 1},
                                 meter->items};
    const double start = lk_seconds();
    if (triad)
        LK_TRY(LK_ENQUEUE(meter->triad, grid, LK_BUF(meter->x), LK_BUF(meter->z),
                          LK_BUF(meter->y), LK_INT(meter->vectors), LK_REAL(0.5)));
    else
        LK_TRY(LK_ENQUEUE(meter->copy, grid, LK_BUF(meter->x), LK_BUF(meter->y),
                          LK_INT(meter->vectors)));
    LK_TRY(lk_device_finish(meter->device));
    *seconds = lk_seconds() - start;
    return LK_OK;
}

/* The typical rate is that of the better kernel. */
enum lk_status lk_meter_bandwidth(struct lk_meter *meter, double seconds, struct lk_rate *gbs)
{
    double rates[2][MOST_RUNS], took = 0;
    const double bytes = (double)lk_buffer_bytes(meter->x);
    const double end = lk_seconds() + seconds;
    int runs = 0;
    while (runs < 2 || (runs < MOST_RUNS && lk_seconds() < end)) {
        LK_TRY(run_copy(meter, false, &took));
        rates[0][runs] = 2e-9 * bytes / took;
        LK_TRY(run_copy(meter, true, &took));
        rates[1][runs++] = 3e-9 * bytes / took;
    }
    const struct lk_rate copy = rate_of(rates[0], runs), triad = rate_of(rates[1], runs);
    gbs->best = copy.best > triad.best ? copy.best : triad.best;
    gbs->typical = copy.typical > triad.typical ? copy.typical : triad.typical;
    return LK_OK;
}

enum lk_status lk_peaks_measure(struct lk_device *device, double seconds,
                                struct lk_peaks *peaks)
{
    const double each = seconds > 0 ? seconds : 0.3;
    struct lk_meter *meter = NULL;
    struct lk_rate fma, bandwidth;
    enum lk_status status;
    LK_TRY_OUT(lk_meter_create(device, &meter));
    LK_TRY_OUT(lk_device_build(device));
    LK_TRY_OUT(lk_meter_fma(meter, each, &fma));
    LK_TRY_OUT(lk_meter_bandwidth(meter, each, &bandwidth));
    *peaks = (struct lk_peaks){fma.best, bandwidth.best};
out:
    lk_meter_destroy(meter);
    return status;
}
