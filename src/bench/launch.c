/* Times what it costs to launch a kernel, with one that copies a single vector. */
#include "base/clock.h"
#include "base/fail.h"
#include "bench/timing.h"
#include "device/device.h"

enum { ROWS = 9, LAUNCHES = 256, TRIPS = 101 };

struct launch {
    struct lk_device *device;
    struct lk_kernel *kernel;
    struct lk_buffer *x, *y;
};

static enum lk_status create(struct launch *launch)
{
    const struct lk_kernel_spec spec = {.source = "bench/bench",
                                        .name = "bench_copy",
                                        .options = "-DCHAINS=1 -DITEMS=1 -DGROUP=1",
                                        .real_bytes = sizeof(float)};
    const size_t bytes = (size_t)lk_device_info(launch->device)->vector * sizeof(float);
    LK_TRY(lk_kernel_create(launch->device, &spec, &launch->kernel));
    LK_TRY(lk_device_build(launch->device));
    LK_TRY(lk_buffer_create(launch->device, bytes, &launch->x));
    LK_TRY(lk_buffer_create(launch->device, bytes, &launch->y));
    return lk_buffer_enqueue_fill(launch->x, 0);
}

static enum lk_status enqueue(struct launch *launch)
{
    const struct lk_grid grid = {{1, 1, 1}, 1};
    return LK_ENQUEUE(launch->kernel, grid, LK_BUF(launch->x), LK_BUF(launch->y), LK_INT(1));
}

static enum lk_status time_rows(struct launch *launch, struct lk_launch_times *times)
{
    double host[ROWS], all[ROWS];
    for (int row = -1; row < ROWS; row++) { /* the first does not count: some drivers compile */
        const double start = lk_seconds();
        for (int i = 0; i < LAUNCHES; i++)
            LK_TRY(enqueue(launch));
        const double enqueued = lk_seconds();
        LK_TRY(lk_device_finish(launch->device));
        const double end = lk_seconds();
        if (row < 0)
            continue;
        host[row] = 1e6 * (enqueued - start) / LAUNCHES;
        all[row] = 1e6 * (end - start) / LAUNCHES;
    }
    times->enqueue_us = lk_median(host, ROWS);
    times->launch_us = lk_median(all, ROWS);
    return LK_OK;
}

static enum lk_status time_trips(struct launch *launch, struct lk_launch_times *times)
{
    double took[TRIPS];
    for (int i = 0; i < TRIPS; i++) {
        const double start = lk_seconds();
        LK_TRY(enqueue(launch));
        LK_TRY(lk_device_finish(launch->device));
        took[i] = 1e6 * (lk_seconds() - start);
    }
    times->round_trip_us = lk_median(took, TRIPS);
    return LK_OK;
}

enum lk_status lk_launch_measure(struct lk_device *device, struct lk_launch_times *times)
{
    struct launch launch = {.device = device};
    struct lk_launch_times found;
    enum lk_status status;
    LK_TRY_OUT(create(&launch));
    LK_TRY_OUT(time_rows(&launch, &found));
    LK_TRY_OUT(time_trips(&launch, &found));
    *times = found;
out:
    lk_kernel_destroy(launch.kernel);
    lk_buffer_destroy(launch.x);
    lk_buffer_destroy(launch.y);
    return status;
}
