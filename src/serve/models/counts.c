/* Counts and histograms of a served model. source: Prometheus, "Exposition formats" */
#include "serve/models/counts.h"

#include "base/number.h"
#include <string.h>

static const double times[LK_COUNT_TIMES] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                             0.25,  0.5,    1,     2.5,  5,     10,   30};

void lk_counts_add_request(struct lk_counts *counts, int status, double seconds)
{
    int place = 0;
    while (place < LK_COUNT_TIMES && seconds > times[place])
        place++;
    pthread_mutex_lock(&counts->mutex);
    counts->requests[status >= 100 && status < 600 ? status / 100 : 0]++;
    counts->times[place]++;
    counts->seconds += seconds;
    pthread_mutex_unlock(&counts->mutex);
}

void lk_counts_add_batch(struct lk_counts *counts, int64_t samples, double seconds)
{
    int place = 0;
    while (place < LK_COUNT_SIZES && samples > (int64_t)1 << place)
        place++;
    pthread_mutex_lock(&counts->mutex);
    counts->sizes[place]++;
    counts->batches++;
    counts->samples += samples;
    counts->batch_seconds += seconds;
    pthread_mutex_unlock(&counts->mutex);
}

void lk_counts_add_refused(struct lk_counts *counts)
{
    pthread_mutex_lock(&counts->mutex);
    counts->refused++;
    pthread_mutex_unlock(&counts->mutex);
}

void lk_counts_add_reopened(struct lk_counts *counts)
{
    pthread_mutex_lock(&counts->mutex);
    counts->reopened++;
    pthread_mutex_unlock(&counts->mutex);
}

void lk_counts_add_waiting(struct lk_counts *counts, int64_t samples)
{
    pthread_mutex_lock(&counts->mutex);
    counts->waiting += samples;
    pthread_mutex_unlock(&counts->mutex);
}

static const char *print(double number, char text[32])
{
    lk_number_print(number, text, 32);
    return text;
}

static void print_requests(const struct lk_counts *c, const char *name, struct lk_text *text)
{
    static const char *const codes[] = {"none", "1xx", "2xx", "3xx", "4xx", "5xx"};
    for (int i = 0; i < 6; i++)
        if (c->requests[i] > 0)
            lk_text_append(text, "lockstep_requests_total{model=\"%s\",code=\"%s\"} %lld\n",
                           name, codes[i], (long long)c->requests[i]);
}

static void print_times(const struct lk_counts *c, const char *name, struct lk_text *text)
{
    static const char title[] = "lockstep_request_duration_seconds";
    char number[32];
    int64_t sum = 0;
    for (int i = 0; i < LK_COUNT_TIMES; i++) {
        sum += c->times[i];
        lk_text_append(text, "%s_bucket{model=\"%s\",le=\"%s\"} %lld\n", title, name,
                       print(times[i], number), (long long)sum);
    }
    sum += c->times[LK_COUNT_TIMES];
    lk_text_append(text, "%s_bucket{model=\"%s\",le=\"+Inf\"} %lld\n", title, name,
                   (long long)sum);
    lk_text_append(text, "%s_sum{model=\"%s\"} %s\n", title, name, print(c->seconds, number));
    lk_text_append(text, "%s_count{model=\"%s\"} %lld\n", title, name, (long long)sum);
}

static void print_sizes(const struct lk_counts *c, const char *name, struct lk_text *text)
{
    static const char title[] = "lockstep_batch_samples";
    int64_t sum = 0;
    for (int i = 0; i < LK_COUNT_SIZES; i++) {
        sum += c->sizes[i];
        lk_text_append(text, "%s_bucket{model=\"%s\",le=\"%d\"} %lld\n", title, name, 1 << i,
                       (long long)sum);
    }
    lk_text_append(text, "%s_bucket{model=\"%s\",le=\"+Inf\"} %lld\n", title, name,
                   (long long)c->batches);
    lk_text_append(text, "%s_sum{model=\"%s\"} %lld\n", title, name, (long long)c->samples);
    lk_text_append(text, "%s_count{model=\"%s\"} %lld\n", title, name, (long long)c->batches);
}

static void print_seconds(const struct lk_counts *c, const char *name, struct lk_text *text)
{
    char number[32];
    lk_text_append(text, "lockstep_batch_seconds_total{model=\"%s\"} %s\n", name,
                   print(c->batch_seconds, number));
}

static void print_waiting(const struct lk_counts *c, const char *name, struct lk_text *text)
{
    lk_text_append(text, "lockstep_queue_samples{model=\"%s\"} %lld\n", name,
                   (long long)c->waiting);
}

static void print_refused(const struct lk_counts *c, const char *name, struct lk_text *text)
{
    lk_text_append(text, "lockstep_queue_refused_total{model=\"%s\"} %lld\n", name,
                   (long long)c->refused);
}

static void print_reopened(const struct lk_counts *c, const char *name, struct lk_text *text)
{
    lk_text_append(text, "lockstep_device_reopened_total{model=\"%s\"} %lld\n", name,
                   (long long)c->reopened);
}

void lk_counts_print(struct lk_counts *const *counts, const char *const *names, int count,
                     struct lk_text *text)
{
    static const struct {
        const char *name, *type, *help;
        void (*print)(const struct lk_counts *, const char *, struct lk_text *);
    } rows[] = {
        {"lockstep_requests_total", "counter", "Requests answered, by status.", print_requests},
        {"lockstep_request_duration_seconds", "histogram",
         "From a request's head to the end of its answer.", print_times},
        {"lockstep_batch_samples", "histogram", "Samples computed together.", print_sizes},
        {"lockstep_batch_seconds_total", "counter", "Time spent computing.", print_seconds},
        {"lockstep_queue_samples", "gauge", "Samples that wait.", print_waiting},
        {"lockstep_queue_refused_total", "counter", "Requests refused as the queue was full.",
         print_refused},
        {"lockstep_device_reopened_total", "counter", "Devices that failed and were replaced.",
         print_reopened},
    };
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
        lk_text_append(text, "# HELP %s %s\n# TYPE %s %s\n", rows[row].name, rows[row].help,
                       rows[row].name, rows[row].type);
        for (int i = 0; i < count; i++) {
            pthread_mutex_lock(&counts[i]->mutex);
            rows[row].print(counts[i], names[i], text);
            pthread_mutex_unlock(&counts[i]->mutex);
        }
    }
}
