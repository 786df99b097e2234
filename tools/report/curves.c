/* Losses, accuracies, learning rates and speeds by step, the runs laid over each other. */
#include "report/report.h"

#include "train/progress.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    MOST_POINTS = 400,
    RATE_STEPS = 5,
    MOST_BINS = 40,
    LEAST_BINS = 8,
    NAME = RECORD_PATH + 32
};

/* --- curves ----------------------------------------------------------------------------- */

/* Series of a plot, and what they point to. */
struct curves {
    struct page_series series[2 * MOST_RUNS];
    char names[2 * MOST_RUNS][NAME];
    double x[2 * MOST_RUNS][MOST_POINTS], y[2 * MOST_RUNS][MOST_POINTS];
    int count;
    int most; /* steps of which a point is the mean */
};

/* What a point of a chart is, of points [first, end): means. Rates weigh by the time that they
 * lasted: all samples by all time. Returns whether any is defined. */
static bool mean(const struct points *points, enum point_field field, int first, int end,
                 double *x, double *y)
{
    double steps = 0, sum = 0, weights = 0;
    int found = 0;
    for (int i = first; i < end && i < points->count; i++) {
        const double *p = points->of[i];
        const double weight = field == POINT_RATE ? p[POINT_MS] : 1;
        if (!isfinite(p[field]) || !(weight > 0))
            continue;
        steps += p[POINT_STEP];
        sum += p[field] * weight;
        weights += weight;
        found++;
    }
    *x = steps / found;
    *y = sum / weights;
    return found > 0;
}

/* Points that a chart of a screen's width can show: means over as many as needed, of rates
 * over a few at least, as a single step's may be far off. */
static int thin(const struct points *points, enum point_field field, double *x, double *y,
                int *width)
{
    int count = 0;
    double at, value;
    *width = (points->count + MOST_POINTS - 1) / MOST_POINTS;
    if (field == POINT_RATE && *width < RATE_STEPS && points->count > MOST_POINTS / 4)
        *width = RATE_STEPS;
    for (int first = 0; first < points->count; first += *width)
        if (mean(points, field, first, first + *width, &at, &value)) {
            x[count] = at;
            y[count++] = value;
        }
    return count;
}

/* Nothing is added where no point has that number. */
static void add_curve(struct curves *curves, const struct report *report, int run,
                      const struct points *points, enum point_field field, const char *what)
{
    const int at = curves->count;
    int width;
    struct page_series *s = &curves->series[at];
    *s = (struct page_series){
        .name = curves->names[at], .colour = run, .x = curves->x[at], .y = curves->y[at]};
    s->count = thin(points, field, curves->x[at], curves->y[at], &width);
    if (s->count == 0)
        return;
    if (s->count == 1) /* no line */
        s->mark = PAGE_CIRCLE;
    if (points == &report->runs[run].evaluations) {
        s->mark = PAGE_CIRCLE;
        s->is_joined = true;
    }
    if (report->count == 1)
        snprintf(curves->names[at], NAME, "%s", what);
    else
        snprintf(curves->names[at], NAME, "%s%s%s", report->runs[run].record.path,
                 *what ? ": " : "", what);
    curves->most = width > curves->most ? width : curves->most;
    curves->count++;
}

static void end_curves(struct page *page, struct curves *curves, const char *title,
                       const char *label, const char *description)
{
    char text[256], more[64] = "";
    if (curves->count == 0)
        return;
    if (curves->most > 1)
        snprintf(more, sizeof more, " (points are means of up to %d steps)", curves->most);
    snprintf(text, sizeof text, "%s%s", title, more);
    page_plot(page, &(struct page_plot){.title = text,
                                        .description = description,
                                        .x = {"step", false},
                                        .y = {label, false},
                                        .series = curves->series,
                                        .count = curves->count});
}

static void add_training_plot(struct page *page, const struct report *report,
                              struct curves *curves, enum point_field field, const char *title)
{
    char description[128];
    *curves = (struct curves){.count = 0};
    for (int i = 0; i < report->count; i++) {
        const int before = curves->count;
        add_curve(curves, report, i, &report->runs[i].steps, field, "training");
        add_curve(curves, report, i, &report->runs[i].evaluations, field, "validation");
        if (curves->count == before + 2)
            curves->series[before].is_faint = true;
    }
    snprintf(description, sizeof description,
             "%s by step, of the batches of training and of the validation data.", title);
    end_curves(page, curves, title, "", description);
}

static void add_step_plot(struct page *page, const struct report *report, struct curves *curves,
                          enum point_field field, const char *title, const char *label)
{
    char description[128];
    *curves = (struct curves){.count = 0};
    for (int i = 0; i < report->count; i++)
        add_curve(curves, report, i, &report->runs[i].steps, field,
                  report->count == 1 ? label : "");
    snprintf(description, sizeof description, "%s by step.", title);
    end_curves(page, curves, title, label, description);
}

void report_curves(struct page *page, const struct report *report)
{
    struct curves *curves = malloc(sizeof *curves);
    bool has_points = false;
    for (int i = 0; i < report->count; i++)
        has_points |= report->runs[i].steps.count + report->runs[i].evaluations.count > 0;
    page_heading(page, 2, "Curves");
    if (!has_points)
        page_paragraph(page, "No step is done yet.");
    page_columns_begin(page);
    if (curves) {
        add_training_plot(page, report, curves, POINT_LOSS, "Loss");
        add_training_plot(page, report, curves, POINT_ACCURACY, "Accuracy");
        add_step_plot(page, report, curves, POINT_LR, "Learning rate", "learning rate");
    }
    page_columns_end(page);
    free(curves);
}

/* --- times of steps --------------------------------------------------------------------- */

struct times {
    double *ms; /* [count], ascending */
    int count;
};

static int compare(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static struct times sort_times(const struct points *steps)
{
    struct times times = {.ms = malloc((size_t)(steps->count + 1) * sizeof(double))};
    for (int i = 0; times.ms && i < steps->count; i++)
        if (steps->of[i][POINT_MS] > 0)
            times.ms[times.count++] = steps->of[i][POINT_MS];
    if (times.count > 0)
        qsort(times.ms, (size_t)times.count, sizeof *times.ms, compare);
    return times;
}

/* The time that so large a share of all steps does not exceed. */
static double quantile(const struct times *times, double share)
{
    const int at = (int)ceil(share * times->count) - 1;
    return times->count == 0 ? NAN : times->ms[at < 0 ? 0 : at];
}

static void add_time_table(struct page *page, const struct report *report,
                           const struct times *times)
{
    static const char *const columns[] = {"run",  "steps", "samples/s", "median", "mean",
                                          "90 %", "99 %",  "longest",   NULL};
    page_table_begin(page, "Times of steps in ms; samples/s by the median", columns, 1);
    for (int i = 0; i < report->count; i++) {
        const struct run *run = &report->runs[i];
        const double shares[] = {0.5, NAN, 0.9, 0.99, 1};
        char texts[5][32], rate[32] = "-", steps[32];
        double sum = 0, samples = 0;
        for (int k = 0; k < times[i].count; k++)
            sum += times[i].ms[k];
        for (int k = 0; k < run->steps.count; k++) { /* of a whole batch */
            const double *p = run->steps.of[k];
            if (isfinite(p[POINT_RATE]) && isfinite(p[POINT_MS]))
                samples = fmax(samples, p[POINT_RATE] * p[POINT_MS] / 1000);
        }
        for (int k = 0; k < 5; k++) {
            const double ms =
                isnan(shares[k]) ? sum / times[i].count : quantile(&times[i], shares[k]);
            snprintf(texts[k], sizeof texts[k], isfinite(ms) ? "%.4g" : "-", ms);
        }
        if (times[i].count > 0)
            rate_text(1000 * samples / quantile(&times[i], 0.5), rate);
        snprintf(steps, sizeof steps, "%d", run->steps.count);
        page_table_row(page, (const char *[]){run->record.path, steps, rate, texts[0], texts[1],
                                              texts[2], texts[3], texts[4]});
    }
    page_table_end(page);
}

/* What all histograms share. */
struct bins {
    bool is_log;
    double low, width; /* of the time, or of its logarithm */
    int count;
};

static double scaled(const struct bins *bins, double ms)
{
    return bins->is_log ? log10(ms) : ms;
}

static double edge(const struct bins *bins, int i)
{
    const double at = bins->low + i * bins->width;
    return bins->is_log ? pow(10, at) : at;
}

/* Up to the time that few steps exceed, so that these do not make the others one bin. */
static struct bins choose_bins(const struct times *times, int count)
{
    double least = INFINITY, most = 0;
    int steps = 0;
    for (int i = 0; i < count; i++)
        if (times[i].count > 0) {
            steps = times[i].count > steps ? times[i].count : steps;
            least = fmin(least, times[i].ms[0]);
            most = fmax(most, quantile(&times[i], 0.98));
        }
    struct bins bins = {.is_log = most > 20 * least};
    bins.count = (int)fmin(fmax(sqrt(steps), LEAST_BINS), MOST_BINS);
    if (most <= least)
        most = least * 1.01;
    bins.low = scaled(&bins, least);
    bins.width = (scaled(&bins, most) - bins.low) / bins.count;
    return bins;
}

/* The outline of a histogram: two points for each bin, in percent of all steps; later times
 * are left out. */
static int outline(const struct bins *bins, const struct times *times, double *x, double *y)
{
    int in_bin[MOST_BINS] = {0}, count = 0;
    for (int i = 0; i < times->count; i++) {
        const double bin = floor((scaled(bins, times->ms[i]) - bins->low) / bins->width);
        if (times->ms[i] <= edge(bins, bins->count))
            in_bin[bin >= bins->count ? bins->count - 1 : bin < 0 ? 0 : (int)bin]++;
    }
    x[count] = edge(bins, 0);
    y[count++] = 0;
    for (int i = 0; i < bins->count; i++)
        for (int side = 0; side < 2; side++) {
            x[count] = edge(bins, i + side);
            y[count++] = 100.0 * in_bin[i] / times->count;
        }
    x[count] = edge(bins, bins->count);
    y[count++] = 0;
    return count;
}

static void add_histogram(struct page *page, const struct report *report,
                          const struct times *times)
{
    const struct bins bins = choose_bins(times, report->count);
    struct page_series series[MOST_RUNS];
    double x[MOST_RUNS][2 * MOST_BINS + 2], y[MOST_RUNS][2 * MOST_BINS + 2];
    char title[128];
    int count = 0, late = 0;
    for (int i = 0; i < report->count; i++) {
        if (times[i].count == 0)
            continue;
        for (int k = times[i].count - 1; k >= 0 && times[i].ms[k] > edge(&bins, bins.count);
             k--)
            late++;
        series[count] =
            (struct page_series){.name = report->runs[i].record.path,
                                 .colour = i,
                                 .count = outline(&bins, &times[i], x[count], y[count]),
                                 .x = x[count],
                                 .y = y[count]};
        count++;
    }
    if (count == 0)
        return;
    if (report->count == 1)
        series[0].name = "share of steps";
    snprintf(title, sizeof title, "How long steps took");
    if (late > 0)
        snprintf(title, sizeof title, "How long steps took (without %d longer %s)", late,
                 late == 1 ? "one" : "ones");
    page_plot(page, &(struct page_plot){.title = title,
                                        .description =
                                            "Histogram: percent of the steps by their time.",
                                        .x = {"ms", bins.is_log},
                                        .y = {"% of steps", false},
                                        .series = series,
                                        .count = count});
}

void report_speed(struct page *page, const struct report *report)
{
    struct times times[MOST_RUNS];
    struct curves *curves = malloc(sizeof *curves);
    int steps = 0;
    for (int i = 0; i < report->count; i++) {
        times[i] = sort_times(&report->runs[i].steps);
        steps += times[i].count;
    }
    if (steps > 0 && curves) {
        page_heading(page, 2, "Speed");
        page_columns_begin(page);
        add_step_plot(page, report, curves, POINT_RATE, "Throughput", "samples/s");
        add_histogram(page, report, times);
        page_columns_end(page);
        add_time_table(page, report, times);
    }
    for (int i = 0; i < report->count; i++)
        free(times[i].ms);
    free(curves);
}
