/* The benchmark's page: devices, rooflines, models, operations, and how it was measured. */
#include "bench/page.h"

#include "command.h"
#include "terminal/terminal.h"
#include "train/progress.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void bench_title(const struct joined *joined, int device, char *text, size_t bytes)
{
    const char *name = joined->all[device].device.name;
    if (joined->count == 1)
        snprintf(text, bytes, "%.200s", name);
    else
        snprintf(text, bytes, "%c: %.200s", 'A' + device, name);
}

int bench_op_colour(const struct joined *joined, const char *op)
{
    int colour = 0;
    for (int i = 0; i < joined->kernel_count; i++) {
        bool is_new = true;
        if (strcmp(joined->kernels[i].any->op, op) == 0)
            return colour;
        for (int j = 0; is_new && j < i; j++)
            is_new = strcmp(joined->kernels[j].any->op, joined->kernels[i].any->op) != 0;
        colour += is_new;
    }
    return colour;
}

/* --- devices ---------------------------------------------------------------------------- */

static void add_fact(struct page *page, const char *name, const char *text)
{
    if (*text)
        page_table_row(page, (const char *[]){name, text});
}

/* Left out where the number is not known. */
static void add_number(struct page *page, const char *name, double number, const char *unit)
{
    char text[32], both[64];
    snprintf(both, sizeof both, "%s %s", number_text(number, text), unit);
    add_fact(page, name, isfinite(number) ? both : "");
}

static void add_device(struct page *page, const struct joined *joined, int device)
{
    const struct figures *f = &joined->all[device];
    const struct device_figures *d = &f->device;
    char caption[256], units[64] = "";
    bench_title(joined, device, caption, sizeof caption);
    if (isfinite(d->compute_units) && isfinite(d->clock_mhz))
        snprintf(units, sizeof units, "%.0f at %.0f MHz", d->compute_units, d->clock_mhz);
    page_table_begin(page, caption, NULL, 2);
    add_fact(page, "vendor", d->vendor);
    add_fact(page, "driver", d->driver);
    add_fact(page, "OpenCL", d->version);
    add_fact(page, "platform", d->platform);
    add_fact(page, "class", d->device_class);
    add_fact(page, "compute units", units);
    add_number(page, "memory", d->memory_bytes / (1 << 30), "GiB");
    add_number(page, "multiply-add peak", d->fma_gflops, "GFLOP/s");
    add_number(page, "bandwidth peak", d->bandwidth_gbs, "GB/s");
    add_number(page, "launch, host's time", d->enqueue_us, "µs");
    add_number(page, "launch, many in a row", d->launch_us, "µs");
    add_number(page, "launch, with the wait", d->round_trip_us, "µs");
    add_fact(page, "Lockstep", f->lockstep);
    add_fact(page, "math", f->math);
    add_fact(page, "measured", f->date);
    add_fact(page, "file", f->file ? f->file : "");
    page_table_end(page);
}

/* Of several devices: what a reader looks for first. */
static void add_summary(struct page *page, const struct joined *joined)
{
    static const char *const columns[] = {"device",     "GFLOP/s", "GB/s",
                                          "operations", "models",  NULL};
    page_table_begin(page, "To A: geometric means of speed, of what both have measured",
                     columns, 1);
    for (int i = 0; i < joined->count; i++) {
        const struct device_figures *d = &joined->all[i].device;
        char name[256], fma[32], bandwidth[32], means[2][64];
        bench_title(joined, i, name, sizeof name);
        for (int of_models = 0; of_models < 2; of_models++) {
            char ratio[32];
            int count;
            ratio_text(bench_mean(joined, i, of_models, &count), 1, ratio);
            snprintf(means[of_models], sizeof *means, "%s (%d)", *ratio ? ratio : "-", count);
        }
        page_table_row(page, (const char *[]){name, number_text(d->fma_gflops, fma),
                                              number_text(d->bandwidth_gbs, bandwidth),
                                              means[0], means[1]});
    }
    page_table_end(page);
}

/* --- models ----------------------------------------------------------------------------- */

static void model_label(const struct model_figures *m, char *text, size_t bytes)
{
    snprintf(text, bytes, "%.40s, batch %.0f", m->name, m->batch);
}

/* All models in one chart; their rates are of very different size. */
static void add_rates(struct page *page, const struct joined *joined)
{
    enum { MOST = 64 };
    struct page_bar bars[MOST];
    char texts[MOST][32];
    const int count = joined->model_count < MOST ? joined->model_count : MOST;
    for (int i = 0; i < count; i++) {
        const struct model_figures *m = joined->models[i].any;
        bars[i] = (struct page_bar){.label = m->name,
                                    .text = rate_text(m->samples_per_s, texts[i]),
                                    .value = m->samples_per_s};
    }
    page_bars(page, &(struct page_bars){.title = "Training, samples/s (logarithmic)",
                                        .description = "The table below has the numbers.",
                                        .bars = bars,
                                        .count = count,
                                        .is_log = true});
}

/* One model on several devices. */
static void add_race(struct page *page, const struct joined *joined,
                     const struct model_row *row)
{
    struct page_bar bars[MOST_FILES];
    char labels[MOST_FILES][2], texts[MOST_FILES][80], title[128], rate[32], ratio[32];
    const struct model_figures *first = row->of[0];
    double most = 0;
    int count = 0;
    for (int i = 0; i < joined->count; i++) {
        const struct model_figures *m = row->of[i];
        if (!m)
            continue;
        ratio_text(m->samples_per_s, first ? first->samples_per_s : NAN, ratio);
        snprintf(labels[count], 2, "%c", 'A' + i);
        snprintf(texts[count], sizeof *texts, "%s/s%s%s", rate_text(m->samples_per_s, rate),
                 i && *ratio ? " " : "", i ? ratio : "");
        bars[count] = (struct page_bar){.label = labels[count],
                                        .text = texts[count],
                                        .value = m->samples_per_s,
                                        .colour = i};
        most = fmax(most, m->samples_per_s);
        count++;
    }
    model_label(row->any, title, sizeof title);
    page_bars(page, &(struct page_bars){.title = title,
                                        .description = "Samples a second, longer is faster.",
                                        .bars = bars,
                                        .count = count,
                                        .most = most});
}

static const char *const model_columns[] = {"model",   "batch",    "samples/s", "step ms",
                                            "build s", "peak MiB", NULL};

static void add_model_table(struct page *page, const struct joined *joined, int device)
{
    char caption[256];
    bench_title(joined, device, caption, sizeof caption);
    page_table_begin(page, caption, model_columns, 1);
    for (int i = 0; i < joined->model_count; i++) {
        const struct model_figures *m = joined->models[i].of[device];
        char batch[32], rate[32], step[32], build[32], bytes[32];
        if (!m)
            continue;
        snprintf(batch, sizeof batch, "%.0f", m->batch);
        page_table_row(page, (const char *[]){
                                 m->name, batch, number_text(m->samples_per_s, rate),
                                 number_text(m->step_ms, step), number_text(m->build_s, build),
                                 number_text(m->peak_bytes / (1 << 20), bytes)});
    }
    page_table_end(page);
}

static void add_models(struct page *page, const struct joined *joined)
{
    if (joined->model_count == 0)
        return;
    page_heading(page, 2, "Models");
    if (joined->count == 1) {
        add_rates(page, joined);
    } else {
        page_columns_begin(page);
        for (int i = 0; i < joined->model_count; i++)
            add_race(page, joined, &joined->models[i]);
        page_columns_end(page);
    }
    for (int i = 0; i < joined->count; i++)
        add_model_table(page, joined, i);
}

/* --- the page --------------------------------------------------------------------------- */

static void add_method(struct page *page)
{
    page_heading(page, 2, "How it was measured");
    page_paragraph(
        page, "By lockstep bench, in fp32, on random data. An operation runs again and "
              "again, each time on another copy of its activations, so that caches hold no "
              "more of them than in training; times are medians of five measurements, "
              "taken in turn with the peak that bounds it.");
    page_paragraph(page,
                   "The multiply-add peak is what the device reaches with values in registers, "
                   "a multiply-add counting 2; the bandwidth peak the faster of copying and "
                   "y = x + a z over arrays larger than caches, bytes read plus written.");
    page_paragraph(
        page, "FLOP are those of direct sums in the forward pass, whatever the algorithm: "
              "Winograd's needs fewer, and so can exceed 100 %% and the roof. Bytes are what "
              "a pass has to read and write once; what caches keep from one pass to the "
              "next can lie above the slanted part of the roof.");
    page_paragraph(page,
                   "Host time is what the host spends to enqueue an operation, build time what "
                   "preparing it took, with the kernels that no cache held. Models are trained "
                   "with Adam on random images; rates come from the median step, and a build "
                   "lasts until the first step is done.");
}

static void add_page(struct page *page, const struct joined *joined)
{
    char title[256];
    if (joined->count == 1)
        snprintf(title, sizeof title, "Lockstep benchmark: %.200s", joined->all[0].device.name);
    else
        snprintf(title, sizeof title, "Lockstep benchmark: %d devices", joined->count);
    page_begin(page, title);
    if (joined->count > 1)
        add_summary(page, joined);
    page_heading(page, 2, joined->count == 1 ? "Device" : "Devices");
    page_columns_begin(page);
    for (int i = 0; i < joined->count; i++)
        add_device(page, joined, i);
    page_columns_end(page);
    add_models(page, joined);
    if (joined->kernel_count > 0) {
        page_heading(page, 2, joined->count == 1 ? "Roofline" : "Rooflines");
        page_columns_begin(page);
        for (int i = 0; i < joined->count; i++)
            bench_roofline(page, joined, i);
        page_columns_end(page);
    }
    bench_operations(page, joined);
    add_method(page);
}

int bench_page(const struct joined *joined, const char *path)
{
    struct page page = {0};
    add_page(&page, joined);
    const enum lk_status status = page_write(&page, path);
    if (status == LK_OK)
        return DONE;
    return failed(status);
}
