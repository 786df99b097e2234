/* Benchmark figures as `lockstep bench --json` writes them: read, compared, shown. */
#ifndef TOOLS_BENCH_H
#define TOOLS_BENCH_H

#include "terminal/json.h"
#include <stdbool.h>

/* The figures of one device. Texts belong to the figures. An unknown number is NAN, an unknown
 * text "". */
struct device_figures {
    const char *name, *vendor, *driver, *version, *platform, *device_class;
    double compute_units, clock_mhz, memory_bytes;
    double fma_gflops, bandwidth_gbs, enqueue_us, launch_us, round_trip_us;
};

struct kernel_figures {
    const char *set, *op, *pass, *shape, *algorithm;
    bool is_reference, memory_bound;
    double flops, bytes, ms, gflops, gbs, percent_of_peak, host_us, build_ms;
};

struct model_figures {
    const char *name;
    double batch, samples_per_s, step_ms, build_s, peak_bytes;
};

struct figures {
    const char *file; /* the file's name, the caller's; NULL: measured by this run */
    json_t *json;
    const char *lockstep, *date, *math; /* version; "" where they are not told */
    struct device_figures device;
    struct kernel_figures *kernels;
    struct model_figures *models;
    int kernel_count, model_count;
};

enum { MOST_FILES = 8 };

/* Read the figures of a file that anyone may have written, or of `json`, which they then own.
 * Return DONE, or the exit status after a message that names the file, the place in it, and
 * what was expected and found. To be released by figures_clear() in any case. */
int figures_read(const char *path, struct figures *figures);
int figures_take(json_t *json, struct figures *figures);
void figures_clear(struct figures *figures);

/* A row of the comparison: figures of the same thing from several devices. of[i] is that of
 * all[i], NULL if it has none; `any` is the first that is there. */
struct kernel_row {
    const struct kernel_figures *any, *of[MOST_FILES];
};

struct model_row {
    const struct model_figures *any, *of[MOST_FILES];
};

struct joined {
    const struct figures *all; /* [count], the caller's */
    int count;
    struct kernel_row *kernels;
    struct model_row *models;
    int kernel_count, model_count;
};

/* Joins the figures of several files into rows. Returns DONE, or FAILED after a message.
 * figures_part() releases the rows in any case. */
int figures_join(const struct figures *all, int count, struct joined *joined);
void figures_part(struct joined *joined);

/* A number in two to four digits, "-" where it is not known. */
const char *number_text(double number, char text[32]);

/* `value` times as good as `first`, "x1.23"; "" where one of them is not known. */
const char *ratio_text(double value, double first, char text[32]);

/* The geometric mean of how many times as fast as the first a device is, over the `count`
 * models, or operations, that both have; NAN without any. A library's products are left out. */
double bench_mean(const struct joined *joined, int device, bool of_models, int *count);

/* Prints devices side by side: times, and how many times as fast as the first each is. */
void bench_compare(const struct joined *joined);

/* Writes a page with charts. DONE, or as lk_file_write(), said. */
int bench_page(const struct joined *joined, const char *path);

#endif
