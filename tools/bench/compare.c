/* Devices side by side on stdout; ratios are to the first one. */
#include "bench/bench.h"

#include "terminal/table.h"
#include "terminal/terminal.h"
#include "train/progress.h"
#include <math.h>
#include <stdio.h>

enum { NAME = 30 }; /* columns of what a row is */

const char *number_text(double number, char text[32])
{
    const double size = fabs(number);
    const int decimals = size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3;
    if (!isfinite(number))
        snprintf(text, 32, "-");
    else if (size >= 1e9 || (size > 0 && size < 0.01))
        snprintf(text, 32, "%.2g", number);
    else
        snprintf(text, 32, "%.*f", decimals, number);
    return text;
}

const char *ratio_text(double value, double first, char text[32])
{
    const double ratio = value / first;
    *text = '\0';
    if (isfinite(ratio) && ratio > 0)
        snprintf(text, 32,
                 ratio < 0.1   ? "x%.2g"
                 : ratio < 10  ? "x%.2f"
                 : ratio < 100 ? "x%.1f"
                 : ratio < 1e4 ? "x%.0f"
                               : "x%.2g",
                 ratio);
    return text;
}

static void add_cell(struct table *table, const char *figure, double value, double first)
{
    char ratio[32];
    table_cell(table, "%s", figure);
    table_cell(table, "%s", ratio_text(value, first, ratio));
}

/* How many times as fast as the first device one runs what a row is. */
static double kernel_speedup(const struct kernel_row *row, int device)
{
    const struct kernel_figures *first = row->of[0], *k = row->of[device];
    return first && k && !row->any->is_reference ? first->ms / k->ms : NAN;
}

static double model_speedup(const struct model_row *row, int device)
{
    const struct model_figures *first = row->of[0], *m = row->of[device];
    return first && m ? m->samples_per_s / first->samples_per_s : NAN;
}

double bench_mean(const struct joined *joined, int device, bool of_models, int *count)
{
    const int rows = of_models ? joined->model_count : joined->kernel_count;
    double sum = 0;
    *count = 0;
    for (int i = 0; i < rows; i++) {
        const double ratio = of_models ? model_speedup(&joined->models[i], device)
                                       : kernel_speedup(&joined->kernels[i], device);
        if (!isfinite(ratio) || ratio <= 0)
            continue;
        sum += log(ratio);
        ++*count;
    }
    return *count ? exp(sum / *count) : NAN;
}

/* A table with two columns for each device, and one of shapes, which may be empty. */
struct comparison {
    struct table table;
    char letters[MOST_FILES][2];
    struct table_column columns[2 + 2 * MOST_FILES];
};

static struct table *start(struct comparison *c, const struct joined *joined, const char *text)
{
    const int last = 1 + 2 * joined->count;
    c->columns[0] = (struct table_column){text, 0, NAME, .is_left = true, .is_name = true};
    for (int i = 0; i < joined->count; i++) {
        snprintf(c->letters[i], sizeof c->letters[i], "%c", 'A' + i);
        c->columns[1 + 2 * i] = (struct table_column){c->letters[i], 2, .width = 13};
        c->columns[2 + 2 * i] = (struct table_column){NULL, 1, 7, .is_left = true};
    }
    c->columns[last] = (struct table_column){NULL, 2, 0, .is_left = true, .rank = 1};
    printf("\n");
    table_start(&c->table, c->columns, last + 1);
    return &c->table;
}

/* Of rows that have no shape. */
static void end_row(struct table *table)
{
    table_cell(table, "%s", "");
}

static void add_mean(struct table *table, const struct joined *joined, bool of_models)
{
    char text[32];
    table_cell(table, "geometric mean");
    for (int i = 0; i < joined->count; i++) {
        int count;
        const double mean = bench_mean(joined, i, of_models, &count);
        snprintf(text, sizeof text, "of %d", count);
        add_cell(table, text, mean, 1);
    }
    end_row(table);
}

/* --- devices ---------------------------------------------------------------------------- */

static void print_devices(const struct joined *joined)
{
    for (int i = 0; i < joined->count; i++) {
        const struct device_figures *d = &joined->all[i].device;
        print_lines("%c  %s, driver %s  (%s)\n", 'A' + i, d->name,
                    *d->driver ? d->driver : "unknown", joined->all[i].file);
    }
}

/* `higher`: more is better. */
static void add_peak(struct table *table, const struct joined *joined, const char *name,
                     const double *values, bool higher)
{
    table_cell(table, "%s", name);
    for (int i = 0; i < joined->count; i++) {
        char text[32];
        number_text(values[i], text);
        add_cell(table, text, higher ? values[i] : values[0], higher ? values[0] : values[i]);
    }
    end_row(table);
}

static void print_peaks(const struct joined *joined)
{
    double fma[MOST_FILES], bandwidth[MOST_FILES], enqueue[MOST_FILES], launch[MOST_FILES];
    for (int i = 0; i < joined->count; i++) {
        const struct device_figures *d = &joined->all[i].device;
        fma[i] = d->fma_gflops;
        bandwidth[i] = d->bandwidth_gbs;
        enqueue[i] = d->enqueue_us;
        launch[i] = d->launch_us;
    }
    struct comparison comparison;
    struct table *table = start(&comparison, joined, "device");
    add_peak(table, joined, "multiply-add, GFLOPS", fma, true);
    add_peak(table, joined, "bandwidth, GB/s", bandwidth, true);
    add_peak(table, joined, "host time of a launch, us", enqueue, false);
    add_peak(table, joined, "launches in a row, us", launch, false);
    table_end(table);
}

/* --- operations ------------------------------------------------------------------------- */

static void add_kernel(struct table *table, const struct joined *joined,
                       const struct kernel_row *row)
{
    const struct kernel_figures *any = row->any, *first = row->of[0];
    char text[32], figure[40];
    table_cell(table, "%.17s %.9s%s", any->op, any->pass, any->is_reference ? " *" : "");
    for (int i = 0; i < joined->count; i++) {
        const struct kernel_figures *k = row->of[i];
        if (!k) {
            add_cell(table, "-", NAN, NAN);
            continue;
        }
        snprintf(figure, sizeof figure, "%s ms", number_text(k->ms, text));
        add_cell(table, figure, first ? first->ms : NAN, k->ms);
    }
    table_cell(table, "%s", any->shape);
}

static void print_kernels(const struct joined *joined)
{
    if (joined->kernel_count == 0)
        return;
    bool has_reference = false;
    struct comparison comparison;
    struct table *table = start(&comparison, joined, "operation");
    for (int i = 0; i < joined->kernel_count; i++) {
        add_kernel(table, joined, &joined->kernels[i]);
        has_reference |= joined->kernels[i].any->is_reference;
    }
    add_mean(table, joined, false);
    table_end(table);
    if (has_reference)
        print_lines("* a library's product alone, beside ours; not in the mean\n");
}

/* --- models ----------------------------------------------------------------------------- */

static void print_models(const struct joined *joined)
{
    if (joined->model_count == 0)
        return;
    struct comparison comparison;
    struct table *table = start(&comparison, joined, "model, samples/s");
    for (int r = 0; r < joined->model_count; r++) {
        const struct model_row *row = &joined->models[r];
        char text[40];
        table_cell(table, "%.18s n %.0f", row->any->name, row->any->batch);
        for (int i = 0; i < joined->count; i++) {
            const double first = row->of[0] ? row->of[0]->samples_per_s : NAN;
            const double rate = row->of[i] ? row->of[i]->samples_per_s : NAN;
            add_cell(table, row->of[i] ? rate_text(rate, text) : "-", rate, first);
        }
        end_row(table);
    }
    add_mean(table, joined, true);
    table_end(table);
}

void bench_compare(const struct joined *joined)
{
    print_devices(joined);
    print_peaks(joined);
    print_kernels(joined);
    print_models(joined);
}
