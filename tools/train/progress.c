/* Shows how far a training is, on a terminal or as plain lines. */
#include "train/progress.h"

#include "figures.h"
#include "terminal/status.h"
#include "terminal/terminal.h"
#include "train/tables.h"
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Seconds between two redraws of the bar, between two plain lines; steps a mean reaches back.
 */
static const double redraw_s = 0.1, line_s = 5;
enum { MEAN_STEPS = 50 };

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

const char *duration_text(double seconds, char text[32])
{
    if (!(seconds >= 0 && seconds < 1e9)) {
        strcpy(text, "-:--");
        return text;
    }
    const long s = lround(seconds);
    if (s < 3600)
        snprintf(text, 32, "%ld:%02ld", s / 60, s % 60);
    else
        snprintf(text, 32, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
    return text;
}

const char *rate_text(double rate, char text[32])
{
    static const char units[] = {'\0', 'k', 'M', 'G', '\0'};
    int unit = 0;
    for (; rate >= 999.5 && units[unit + 1]; unit++)
        rate /= 1000;
    snprintf(text, 32, "%.*f%.1s",
             rate >= 99.95 || (rate == floor(rate) && !unit) ? 0
             : rate >= 9.995                                 ? 1
                                                             : 2,
             rate, units + unit);
    return text;
}

void progress_init(struct progress *progress, enum progress_style style)
{
    *progress = (struct progress){.style = style};
    progress->has_bar = style == PROGRESS_FULL && terminal_has_status();
}

static double eta(const struct progress *p, const struct lk_event *e)
{
    const double done = (double)(e->step - p->first_step);
    return done > 0 ? (now() - p->began) / done * (double)(e->steps - e->step) : -1;
}

static double share(const struct lk_event *e)
{
    return e->steps > 0 ? fmin((double)e->step / (double)e->steps, 1) : 0;
}

void bar_text(char *text, int columns, double done)
{
    const bool unicode = terminal_has_unicode();
    const char *full = unicode ? "\u2501" : "=", *half = unicode ? "\u2578" : ">";
    const char *empty = unicode ? "\u2500" : "-";
    const int halves = (int)(done * 2 * columns);
    *text = '\0';
    for (int i = 0; i < columns; i++) {
        const char *mark = 2 * i + 1 < halves ? full : 2 * i < halves ? half : empty;
        text += sprintf(text, "%s", mark);
    }
}

enum { FIELDS = 7, FIELD_BYTES = 64, BAR_LEAST = 6, BAR_MOST = 100 };

/* The status line: its parts, in their order, and how much of the bar in front of them is full.
 */
struct bar {
    char fields[FIELDS][FIELD_BYTES];
    double share;
};

/* "62:38": how the devices share a batch, in percent; a lost one has no number. */
static void share_text(const struct lk_event *e, char text[FIELD_BYTES])
{
    int used = snprintf(text, FIELD_BYTES, "shares ");
    for (int i = 0; i < e->devices && used < FIELD_BYTES; i++) {
        const struct lk_device_times *t = &e->device_times[i];
        used += snprintf(text + used, (size_t)(FIELD_BYTES - used),
                         t->is_left ? "%s%.0f" : "%s-", i ? ":" : "", 100 * t->share);
    }
    if (e->devices < 2)
        text[0] = '\0';
}

/* Nothing where no output predicts a class. */
static void accuracy_text(double accuracy, char text[FIELD_BYTES])
{
    text[0] = '\0';
    if (!isnan(accuracy))
        snprintf(text, FIELD_BYTES, "acc %.1f%%", 100 * accuracy);
}

/* The bar stands behind the first field. */
static void field_texts(const struct progress *p, const struct lk_event *e,
                        char fields[FIELDS][FIELD_BYTES])
{
    char time[32], rate[32];
    snprintf(fields[0], FIELD_BYTES, "epoch %" PRId64 "/%" PRId64, e->epoch + 1, e->epochs);
    snprintf(fields[1], FIELD_BYTES, "%.0f%%", floor(100 * share(e)));
    snprintf(fields[2], FIELD_BYTES, "loss %s", loss_text(p->loss, time));
    accuracy_text(p->accuracy, fields[3]);
    snprintf(fields[4], FIELD_BYTES, "%s samples/s", rate_text(p->samples_per_s, rate));
    snprintf(fields[5], FIELD_BYTES, "ETA %s", duration_text(eta(p, e), time));
    share_text(e, fields[6]);
}

/* Leaves out the least important fields until the bar has room. Fields count with the width
 * they may grow to, so that the bar keeps its length. */
static void draw_bar(const void *from, int columns, char line[STATUS_TEXT])
{
    static const int least_important_first[FIELDS] = {6, 4, 0, 3, 2, 5, 1};
    static const int widest[FIELDS] = {0, 4, 11, 10, 15, 11, 0};
    struct bar shown = *(const struct bar *)from;
    char bar[4 * BAR_MOST + 1];
    int width[FIELDS], room = columns;
    for (int i = 0; i < FIELDS; i++) {
        const int length = (int)strlen(shown.fields[i]);
        width[i] = length == 0 ? 0 : 2 + (length > widest[i] ? length : widest[i]);
        room -= width[i];
    }
    for (int i = 0; i < FIELDS && room < BAR_LEAST; i++) {
        const int field = least_important_first[i];
        room += width[field];
        shown.fields[field][0] = '\0';
    }
    bar_text(bar, room < 0 ? 0 : room > BAR_MOST ? BAR_MOST : room, shown.share);
    int used = snprintf(line, STATUS_TEXT, "%s%s%s", shown.fields[0],
                        *shown.fields[0] ? "  " : "", bar);
    for (int i = 1; i < FIELDS; i++)
        if (*shown.fields[i])
            used += snprintf(line + used, STATUS_TEXT - (size_t)used, "  %s", shown.fields[i]);
}

/* On some platforms kernels are compiled when they run first, so the first step takes long. */
static void show_bar(const struct progress *p, const struct lk_event *e)
{
    struct bar bar = {.share = share(e)};
    field_texts(p, e, bar.fields);
    if (!p->seen) {
        memset(bar.fields[2], 0, sizeof bar.fields - 2 * sizeof *bar.fields);
        snprintf(bar.fields[2], FIELD_BYTES, "first step");
    }
    status_show(STATUS_MAIN, draw_bar, &bar, sizeof bar);
}

/* Prints fields as one line; on a narrow terminal the line breaks between them. */
static void print_fields(char fields[][FIELD_BYTES], int count)
{
    char line[FIELDS * (FIELD_BYTES + 4)];
    const int room = terminal_has_status() ? terminal_columns() - 1 : INT_MAX;
    int used = 0, column = 0;
    for (int i = 0; i < count; i++) {
        const int length = (int)strlen(fields[i]);
        if (length == 0)
            continue;
        const bool breaks = column && column + 2 + length > room;
        used += snprintf(line + used, sizeof line - (size_t)used, "%s%s",
                         breaks   ? "\n  "
                         : column ? "  "
                                  : "",
                         fields[i]);
        column = breaks ? 2 + length : column ? column + 2 + length : length;
    }
    say_plain("%s", line);
}

/* Where the time of the last steps went, a line for each of several devices. */
static void print_devices(const struct progress *p)
{
    char rate[32];
    for (int i = 0; i < p->devices; i++) {
        const struct device_means *m = &p->means[i];
        char fields[8][FIELD_BYTES] = {""};
        snprintf(fields[0], FIELD_BYTES, "  device %d", i);
        if (!m->is_left) {
            snprintf(fields[1], FIELD_BYTES, "takes no part");
        } else if (!m->seen) {
            snprintf(fields[1], FIELD_BYTES, "no samples yet");
        } else {
            const double samples_per_s = m->seconds > 0 ? m->samples / m->seconds : 0;
            snprintf(fields[1], FIELD_BYTES, "%s samples/s", rate_text(samples_per_s, rate));
            snprintf(fields[2], FIELD_BYTES, "share %.0f%%", 100 * m->share);
            snprintf(fields[3], FIELD_BYTES, "compute %.1f", m->compute_ms);
            snprintf(fields[4], FIELD_BYTES, "transfer %.1f", m->transfer_ms);
            snprintf(fields[5], FIELD_BYTES, "reduce %.1f", m->reduce_ms);
            snprintf(fields[6], FIELD_BYTES, "wait %.1f", m->wait_ms);
            snprintf(fields[7], FIELD_BYTES, "input %.1f ms", m->input_ms);
        }
        print_fields(fields, 8);
    }
}

static void print_line(const struct progress *p, const struct lk_event *e)
{
    char fields[FIELDS][FIELD_BYTES];
    field_texts(p, e, fields);
    snprintf(fields[1], FIELD_BYTES, "step %" PRId64 "/%" PRId64, e->step, e->steps);
    print_fields(fields, *fields[6] ? FIELDS : FIELDS - 1);
    print_devices(p);
}

/* Where this run has trained nothing yet, there are no figures of training. */
static void print_evaluation(const struct progress *p, const struct lk_event *e)
{
    char fields[5][FIELD_BYTES], figure[32];
    int count = 0;
    snprintf(fields[count++], FIELD_BYTES, "step %" PRId64 "/%" PRId64, e->step, e->steps);
    if (p->seen) {
        snprintf(fields[count++], FIELD_BYTES, "loss %s", loss_text(p->loss, figure));
        accuracy_text(p->accuracy, fields[count]);
        count += *fields[count] != '\0';
    }
    snprintf(fields[count++], FIELD_BYTES, "validation loss %s", loss_text(e->loss, figure));
    accuracy_text(e->accuracy, fields[count]);
    count += *fields[count] != '\0';
    print_fields(fields, count);
    print_devices(p);
}

static void add(double *mean, double value, int64_t seen)
{
    *mean += (value - *mean) / (double)seen;
}

static void add_device(struct device_means *m, const struct lk_device_times *t)
{
    m->is_left = t->is_left;
    if (!t->is_left || t->samples == 0)
        return;
    m->seen += m->seen < MEAN_STEPS;
    m->share = t->share;
    add(&m->samples, (double)t->samples, m->seen);
    add(&m->seconds, t->samples_per_s > 0 ? (double)t->samples / t->samples_per_s : 0, m->seen);
    add(&m->compute_ms, t->compute_ms, m->seen);
    add(&m->transfer_ms, t->transfer_ms, m->seen);
    add(&m->reduce_ms, t->reduce_ms, m->seen);
    add(&m->wait_ms, t->wait_ms, m->seen);
    add(&m->input_ms, t->input_ms, m->seen);
}

static void step_event(struct progress *p, const struct lk_event *e)
{
    p->seen += p->seen < MEAN_STEPS;
    p->since.samples += e->samples;
    p->since.loss += e->loss * (double)e->samples;
    p->since.accuracy += e->accuracy * (double)e->samples;
    add(&p->loss, e->loss, p->seen);
    add(&p->accuracy, e->accuracy, p->seen);
    add(&p->samples_per_s, e->samples_per_s, p->seen);
    p->devices = e->devices > 1 && e->devices <= PROGRESS_DEVICES ? e->devices : 0;
    for (int i = 0; i < p->devices; i++)
        add_device(&p->means[i], &e->device_times[i]);
    const double time = now();
    if (p->style != PROGRESS_FULL || time - p->shown < (p->has_bar ? redraw_s : line_s))
        return;
    p->shown = time;
    if (p->has_bar)
        show_bar(p, e);
    else
        print_line(p, e);
}

static void start_event(struct progress *p, const struct lk_event *e)
{
    p->began = now();
    p->first_step = e->step;
    if (e->start && p->has_bar && p->settings)
        table_of_start(e, p->settings);
    else if (e->text)
        say("%s", e->text);
    if (p->has_bar && e->step < e->steps)
        show_bar(p, e);
}

void progress_event(struct progress *progress, const struct lk_event *event)
{
    if (progress->style == PROGRESS_SILENT)
        return;
    switch (event->kind) {
    case LK_EVENT_START:
        start_event(progress, event);
        break;
    case LK_EVENT_STEP:
        step_event(progress, event);
        break;
    case LK_EVENT_EVALUATION:
        if (progress->has_bar)
            row_of_evaluation(progress, event);
        else
            print_evaluation(progress, event);
        break;
    case LK_EVENT_CHECKPOINT:
    case LK_EVENT_DEVICES: /* warnings have said it */
        break;
    case LK_EVENT_CALLBACK:
        say("%s", event->text);
        break;
    case LK_EVENT_SETTINGS:
        say("going on with other settings: %s", event->text);
        break;
    case LK_EVENT_END:
        terminal_status(NULL);
        break;
    }
}
