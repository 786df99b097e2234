/* The self-test with a way to spoil what kernels computed, so that it can be seen to fail.
 * Floor 9. */
#ifndef LK_BENCH_SELFTEST_H
#define LK_BENCH_SELFTEST_H

#include "device/device.h"
#include <lockstep/bench.h>

/* Called with every result on the device before it is read. */
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

/* What is no operation: batches into tiles, sums over shards, optimizers. */
struct lk_selftest_part {
    const char *name;
    const char *optimizer; /* its kind; NULL: none */

    /* Leaves detail "" where all is well. fails: as the kernels do */
    enum lk_status (*run)(const struct lk_selftest_part *part, struct lk_device *device,
                          const struct lk_tamper *tamper, char *detail, size_t bytes);
};

/* Ends with a row without a name. */
extern const struct lk_selftest_part lk_selftest_parts[];

#endif
