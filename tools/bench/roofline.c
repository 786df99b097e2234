/* The roofline of a device: operations per second over operations per byte, below what the
 * device's multiply-add rate and its bandwidth allow. */
#include "bench/page.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DETAIL = 256 };

struct roofline {
    const struct joined *joined;
    int device, count;          /* of points */
    double *x, *y;              /* [count] */
    char (*details)[DETAIL];    /* [count] */
    const char **texts;         /* [count]: of details */
    struct page_series *series; /* the roof, then one for each operation and pass */
    char (*names)[64];
    int series_count;
};

static const struct kernel_figures *point_of(const struct roofline *r, int row)
{
    const struct kernel_figures *k = r->joined->kernels[row].of[r->device];
    return k && !k->is_reference && k->flops > 0 && k->bytes > 0 ? k : NULL;
}

static void add_point(struct roofline *r, const struct kernel_figures *k)
{
    r->x[r->count] = k->flops / k->bytes;
    r->y[r->count] = 1e-6 * k->flops / k->ms;
    snprintf(r->details[r->count], DETAIL, "%.20s %.10s %.120s: %.1f GFLOP/s, %.20s", k->op,
             k->pass, k->shape, r->y[r->count], k->algorithm);
    r->texts[r->count] = r->details[r->count];
    r->count++;
}

static bool is_first(const struct roofline *r, int row)
{
    const struct kernel_figures *k = point_of(r, row);
    for (int i = 0; k && i < row; i++) {
        const struct kernel_figures *other = point_of(r, i);
        if (other && strcmp(other->op, k->op) == 0 && strcmp(other->pass, k->pass) == 0)
            return false;
    }
    return k;
}

/* Operations have colours, passes marks. */
static void add_series(struct roofline *r, int row)
{
    const struct kernel_figures *first = point_of(r, row);
    const int from = r->count, at = r->series_count++;
    for (int i = row; i < r->joined->kernel_count; i++) {
        const struct kernel_figures *k = point_of(r, i);
        if (k && strcmp(k->op, first->op) == 0 && strcmp(k->pass, first->pass) == 0)
            add_point(r, k);
    }
    snprintf(r->names[at], sizeof r->names[at], "%.30s %.20s", first->op, first->pass);
    r->series[at] = (struct page_series){
        .name = r->names[at],
        .colour = bench_op_colour(r->joined, first->op),
        .mark = strcmp(first->pass, "dgrad") == 0   ? PAGE_TRIANGLE
                : strcmp(first->pass, "wgrad") == 0 ? PAGE_SQUARE
                                                    : PAGE_CIRCLE,
        .count = r->count - from,
        .x = r->x + from,
        .y = r->y + from,
        .details = r->texts + from,
    };
}

/* From half of the least x to twice the most. */
static void draw(struct page *page, struct roofline *r)
{
    const struct device_figures *d = &r->joined->all[r->device].device;
    const double ridge = d->fma_gflops / d->bandwidth_gbs;
    double least = ridge, most = ridge, x[3], y[3];
    char title[256], description[512], name[128];
    for (int i = 0; i < r->joined->kernel_count; i++)
        if (is_first(r, i))
            add_series(r, i);
    for (int i = 0; i < r->count; i++) {
        least = fmin(least, r->x[i]);
        most = fmax(most, r->x[i]);
    }
    for (int i = 0; i < 3; i++) {
        x[i] = i == 0 ? least / 2 : i == 1 ? ridge : most * 2;
        y[i] = fmin(d->bandwidth_gbs * x[i], d->fma_gflops);
    }
    snprintf(name, sizeof name, "roof: %.1f GB/s, %.1f GFLOP/s", d->bandwidth_gbs,
             d->fma_gflops);
    r->series[0] = (struct page_series){.name = name, .colour = 6, .count = 3, .x = x, .y = y};
    bench_title(r->joined, r->device, title, sizeof title);
    snprintf(description, sizeof description,
             "Both axes are logarithmic. The roof rises with %.1f GB/s up to %.1f operations a "
             "byte and is flat at %.1f GFLOP/s from there. %d points, one for each operation "
             "and pass; the tables below have their numbers.",
             d->bandwidth_gbs, ridge, d->fma_gflops, r->count);
    page_plot(page, &(struct page_plot){.title = title,
                                        .description = description,
                                        .x = {"operations per byte", true},
                                        .y = {"GFLOP/s", true},
                                        .series = r->series,
                                        .count = r->series_count});
}

void bench_roofline(struct page *page, const struct joined *joined, int device)
{
    const size_t most = (size_t)joined->kernel_count + 1;
    struct roofline r = {.joined = joined,
                         .device = device,
                         .x = calloc(most, sizeof *r.x),
                         .y = calloc(most, sizeof *r.y),
                         .details = calloc(most, sizeof *r.details),
                         .texts = calloc(most, sizeof *r.texts),
                         .series = calloc(most, sizeof *r.series),
                         .names = calloc(most, sizeof *r.names),
                         .series_count = 1};
    if (r.x && r.y && r.details && r.texts && r.series && r.names)
        draw(page, &r);
    else
        page->lacks_memory = true;
    free(r.x);
    free(r.y);
    free(r.details);
    free(r.texts);
    free(r.series);
    free(r.names);
}
