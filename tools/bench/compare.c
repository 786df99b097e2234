/* Devices side by side on stdout; ratios are to the first one. */
#include "bench/bench.h"

#include "train/progress.h"
#include "terminal/terminal.h"
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

static void print_cell(const char *figure, double value, double first)
{
    char ratio[32];
    printf("  %13s %-7s", figure, ratio_text(value, first, ratio));
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

static void print_head(const struct joined *joined, const char *text)
{
    printf("\n%-*s", NAME, text);
    for (int i = 0; i < joined->count; i++)
        printf("  %13c %-7s", 'A' + i, "");
    printf("\n");
}

static void print_mean(const struct joined *joined, bool of_models)
{
    char text[32];
    printf("%-*s", NAME, "geometric mean");
    for (int i = 0; i < joined->count; i++) {
        int count;
        const double mean = bench_mean(joined, i, of_models, &count);
        snprintf(text, sizeof text, "of %d", count);
        print_cell(text, mean, 1);
    }
    printf("\n");
}

/* --- devices ---------------------------------------------------------------------------- */

static void print_devices(const struct joined *joined)
{
    for (int i = 0; i < joined->count; i++) {
        const struct device_figures *d = &joined->all[i].device;
        printf("%c  ", 'A' + i);
        terminal_print(d->name, 0);
        printf(", driver ");
        terminal_print(*d->driver ? d->driver : "unknown", 0);
        printf("  (");
        terminal_print(joined->all[i].file, 0);
        printf(")\n");
    }
}

/* `higher`: more is better. */
static void print_peak(const struct joined *joined, const char *name, const double *values,
                       bool higher)
{
    printf("%-*s", NAME, name);
    for (int i = 0; i < joined->count; i++) {
        char text[32];
        number_text(values[i], text);
        print_cell(text, higher ? values[i] : values[0], higher ? values[0] : values[i]);
    }
    printf("\n");
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
    print_head(joined, "device");
    print_peak(joined, "multiply-add, GFLOPS", fma, true);
    print_peak(joined, "bandwidth, GB/s", bandwidth, true);
    print_peak(joined, "host time of a launch, us", enqueue, false);
    print_peak(joined, "launches in a row, us", launch, false);
}

/* --- operations ------------------------------------------------------------------------- */

static void print_kernel(const struct joined *joined, const struct kernel_row *row)
{
    const struct kernel_figures *any = row->any, *first = row->of[0];
    char text[32], figure[40];
    snprintf(text, sizeof text, "%.17s %.9s%s", any->op, any->pass,
             any->is_reference ? " *" : "");
    terminal_print(text, NAME);
    for (int i = 0; i < joined->count; i++) {
        const struct kernel_figures *k = row->of[i];
        if (!k) {
            print_cell("-", NAN, NAN);
            continue;
        }
        snprintf(figure, sizeof figure, "%s ms", number_text(k->ms, text));
        print_cell(figure, first ? first->ms : NAN, k->ms);
    }
    printf("  ");
    terminal_print(any->shape, 0);
    printf("\n");
}

static void print_kernels(const struct joined *joined)
{
    if (joined->kernel_count == 0)
        return;
    bool has_reference = false;
    print_head(joined, "operation");
    for (int i = 0; i < joined->kernel_count; i++) {
        print_kernel(joined, &joined->kernels[i]);
        has_reference |= joined->kernels[i].any->is_reference;
    }
    print_mean(joined, false);
    if (has_reference)
        printf("* a library's product alone, beside ours; not in the mean\n");
}

/* --- models ----------------------------------------------------------------------------- */

static void print_models(const struct joined *joined)
{
    if (joined->model_count == 0)
        return;
    print_head(joined, "model, samples/s");
    for (int r = 0; r < joined->model_count; r++) {
        const struct model_row *row = &joined->models[r];
        char text[40];
        snprintf(text, sizeof text, "%.18s n %.0f", row->any->name, row->any->batch);
        terminal_print(text, NAME);
        for (int i = 0; i < joined->count; i++) {
            const double first = row->of[0] ? row->of[0]->samples_per_s : NAN;
            const double rate = row->of[i] ? row->of[i]->samples_per_s : NAN;
            print_cell(row->of[i] ? rate_text(rate, text) : "-", rate, first);
        }
        printf("\n");
    }
    print_mean(joined, true);
}

void bench_compare(const struct joined *joined)
{
    print_devices(joined);
    print_peaks(joined);
    print_kernels(joined);
    print_models(joined);
}
