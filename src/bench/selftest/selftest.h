/* The self-test from the inside. Tests of it change results on the device, to see that it then
 * fails. Floor 9. */
#ifndef LK_BENCH_SELFTEST_SELFTEST_H
#define LK_BENCH_SELFTEST_SELFTEST_H

#include "device/device.h"
#include <lockstep/bench.h>

/* For tests: called with each result on the device before it is read, which it may change. */
struct lk_tamper {
    void (*change)(void *context, const char *name, struct lk_buffer *result);
    void *context;
};

struct lk_selftest_config {
    struct lk_device *device;
    void (*handler)(void *context, const struct lk_selftest *test);
    void *context;
    const struct lk_tamper *tamper; /* NULL: none */
};

/* As lk_selftest_run(). */
LK_MUST_CHECK enum lk_status lk_selftest_with(const struct lk_selftest_config *config,
                                              int *failures);

/* A known-answer test of something else than an operation: bringing batches into tiles, sums
 * over shards, optimizers. */
struct lk_selftest_check {
    const char *name;
    const char *optimizer; /* its kind; NULL: none */

    /* Runs the test; leaves detail "" if all is right. fails: as the kernels do */
    enum lk_status (*run)(const struct lk_selftest_check *check, struct lk_device *device,
                          const struct lk_tamper *tamper, char *detail, size_t bytes);
};

/* The last row has no name. */
extern const struct lk_selftest_check lk_selftest_checks[];

#endif
