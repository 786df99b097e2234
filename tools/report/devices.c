/* Where each device's time went: means over the steps in which it took part. */
#include "report/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_BARS = MOST_DEVICES + LK_MOST_PLACES };

static const char *const parts[] = {"computing", "transfers", "adding on the host",
                                    "waiting for others", "waiting for samples"};
static const char *const place_parts[] = {"computing", "waiting for the others", "copying"};

/* The bars of a chart, and what they point to. */
struct bars {
    struct page_bar bar[MOST_BARS];
    char label[MOST_BARS][32], text[MOST_BARS][32], detail[MOST_BARS][256];
    double part[MOST_BARS][DEVICE_PARTS];
    int count;
    double most;
};

static void add_bar(struct bars *bars, const double *sums, const char *const *names, int count,
                    int64_t steps)
{
    const int at = bars->count;
    struct page_bar *bar = &bars->bar[at];
    size_t used = 0;
    if (at >= MOST_BARS || steps == 0)
        return;
    *bar = (struct page_bar){.label = bars->label[at],
                             .text = bars->text[at],
                             .detail = bars->detail[at],
                             .parts = bars->part[at],
                             .part_count = count};
    for (int i = 0; i < count; i++) {
        const double ms = sums[i] / (double)steps;
        bars->part[at][i] = ms;
        bar->value += ms;
        used += (size_t)snprintf(bars->detail[at] + used, sizeof bars->detail[at] - used,
                                 "%s%s %.3g ms", i > 0 ? ", " : "", names[i], ms);
    }
    snprintf(bars->text[at], sizeof bars->text[at], "%.3g ms", bar->value);
    bars->most = fmax(bars->most, bar->value);
    bars->count++;
}

static void end_bars(struct page *page, struct bars *bars, const char *title,
                     const char *const *names, int count)
{
    if (bars->count == 0)
        return;
    page_bars(page, &(struct page_bars){.title = title,
                                        .description = bars->detail[0],
                                        .bars = bars->bar,
                                        .count = bars->count,
                                        .most = bars->most > 0 ? bars->most : 1});
    page_legend(page, names, count);
}

static void add_devices(struct page *page, const struct run *run, struct bars *bars)
{
    char title[RECORD_PATH + 64];
    *bars = (struct bars){.count = 0};
    for (int i = 0; i < run->device_count && i < MOST_DEVICES; i++) {
        const struct device_sums *d = &run->devices[i];
        snprintf(bars->label[bars->count], sizeof bars->label[0],
                 d->rank > 0 ? "%d, rank %d" : "%d", i, d->rank);
        add_bar(bars, d->part, parts, DEVICE_PARTS, d->steps);
    }
    snprintf(title, sizeof title, "%s: ms of a step, by device", run->record.path);
    end_bars(page, bars, title, parts, DEVICE_PARTS);
    if (run->device_count > MOST_DEVICES)
        page_paragraph(page, "It has %d devices more.", run->device_count - MOST_DEVICES);
}

/* Of each group: the devices that divide the model. */
static void add_places(struct page *page, const struct run *run, struct bars *bars)
{
    char title[RECORD_PATH + 64];
    for (int i = 0; i < run->device_count && i < MOST_DEVICES; i++) {
        const struct device_sums *d = &run->devices[i];
        *bars = (struct bars){.count = 0};
        for (int p = 0; p < d->places; p++) {
            snprintf(bars->label[bars->count], sizeof bars->label[0], "%d.%d", i, p);
            add_bar(bars, d->place[p], place_parts, PLACE_PARTS, d->steps);
        }
        snprintf(title, sizeof title, "%s: ms of a step, by device of group %d",
                 run->record.path, i);
        end_bars(page, bars, title, place_parts, PLACE_PARTS);
    }
}

void report_devices(struct page *page, const struct report *report)
{
    struct bars *bars = malloc(sizeof *bars);
    bool has_times = false;
    for (int i = 0; i < report->count; i++)
        for (int d = 0; d < MOST_DEVICES; d++)
            has_times |= report->runs[i].devices[d].steps > 0;
    if (bars && has_times) {
        page_heading(page, 2, "Where the time of devices went");
        page_columns_begin(page);
        for (int i = 0; i < report->count; i++) {
            page_add(page, "<div>\n");
            add_devices(page, &report->runs[i], bars);
            add_places(page, &report->runs[i], bars);
            page_add(page, "</div>\n");
        }
        page_columns_end(page);
        page_paragraph(page, "Means over all steps but the first of each process, which builds "
                             "kernels. Samples are read while the device computes: parts may "
                             "overlap, and their sum may exceed the time of a step.");
    }
    free(bars);
}
