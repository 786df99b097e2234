/* Looking at all samples of a data set on several threads, and adding up what they find. */
#include "data/survey/survey.h"

#include "base/fail.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_THREADS = 64 };

static void *work(void *argument)
{
    struct lk_survey_finder *finder = argument;
    struct lk_survey_scan *scan = finder->scan;
    const struct lk_survey_options *options = scan->options;
    while (!atomic_load(&scan->has_failed)) {
        const int64_t number = atomic_fetch_add(&scan->next, 1);
        if (number >= scan->total)
            break;
        const enum lk_status status = finder->visit(finder, number);
        const int64_t done = atomic_fetch_add(&scan->done, 1) + 1;
        if (status != LK_OK && !atomic_exchange(&scan->has_failed, true)) {
            pthread_mutex_lock(&scan->mutex);
            scan->status = status;
            snprintf(scan->text, sizeof scan->text, "%s", lk_error_text());
            pthread_mutex_unlock(&scan->mutex);
        }
        if (finder->is_caller && options->progress)
            options->progress(options->context, done, scan->total);
    }
    return NULL;
}

static enum lk_status start_finder(struct lk_survey_finder *finder, struct lk_survey_scan *scan)
{
    const struct lk_data *data = scan->data;
    finder->scan = scan;
    finder->class_counts = calloc((size_t)data->info.classes + 1, sizeof(int64_t));
    if (!finder->class_counts)
        return lk_fail_memory("counts of classes", (size_t)data->info.classes);
    for (int f = 0; f < data->info.field_count; f++) {
        finder->fields[f] = malloc(data->field_bytes[f]);
        if (!finder->fields[f])
            return lk_fail_memory("a sample", data->field_bytes[f]);
    }
    return LK_OK;
}

/* Runs the scan on the caller's thread and others; where those do not start, with fewer. */
static enum lk_status run_scan(struct lk_survey_scan *scan, struct lk_survey_finder *finders,
                               enum lk_status (*visit)(struct lk_survey_finder *, int64_t))
{
    pthread_t threads[MOST_THREADS];
    int started = 1;
    atomic_store(&scan->next, 0);
    atomic_store(&scan->done, 0);
    for (int i = 0; i < scan->survey->threads; i++) {
        finders[i].visit = visit;
        finders[i].is_caller = i == 0;
    }
    while (started < scan->survey->threads &&
           pthread_create(&threads[started], NULL, work, &finders[started]) == 0)
        started++;
    work(&finders[0]);
    for (int i = 1; i < started; i++)
        pthread_join(threads[i], NULL);
    return scan->status == LK_OK ? LK_OK : lk_fail(scan->status, "%s", scan->text);
}

/* Mean and deviation of values that are there counts[v] times each. */
static void describe_values(const int64_t counts[LK_SURVEY_VALUES], double *mean,
                            double *deviation)
{
    double all = 0, sum = 0, squares = 0;
    for (int v = 0; v < LK_SURVEY_VALUES; v++) {
        all += (double)counts[v];
        sum += (double)counts[v] * v;
    }
    *mean = all > 0 ? sum / all : 0;
    for (int v = 0; v < LK_SURVEY_VALUES; v++)
        squares += (double)counts[v] * (v - *mean) * (v - *mean);
    *deviation = all > 0 ? sqrt(squares / all) : 0;
}

static void add_finder(struct lk_survey_finder *sum, const struct lk_survey_finder *one,
                       int classes)
{
    for (int i = 0; i < classes; i++)
        sum->class_counts[i] += one->class_counts[i];
    sum->unlabelled += one->unlabelled;
    sum->good += one->good;
    sum->jpegs += one->jpegs;
    sum->pngs += one->pngs;
    for (int c = 0; c <= LK_SURVEY_CHANNELS; c++)
        sum->channels[c] += one->channels[c];
    for (int c = 0; c < LK_SURVEY_CHANNELS; c++)
        for (int v = 0; v < LK_SURVEY_VALUES; v++)
            sum->values[c][v] += one->values[c][v];
    for (int s = 0; s < LK_SURVEY_STAGES; s++) {
        sum->seconds[s] += one->seconds[s];
        sum->passed[s] += one->passed[s];
    }
}

static int compare_sizes(const void *a, const void *b)
{
    const struct lk_survey_size *x = a, *y = b;
    const int64_t areas[] = {(int64_t)x->height * x->width, (int64_t)y->height * y->width};
    return areas[0] != areas[1] ? (areas[0] > areas[1]) - (areas[0] < areas[1])
                                : (x->height > y->height) - (x->height < y->height);
}

static int compare_notes(const void *a, const void *b)
{
    const struct lk_survey_note *x = a, *y = b;
    return (x->index > y->index) - (x->index < y->index);
}

static void sort_notes(struct lk_survey_notes *notes)
{
    if (notes->count > 0)
        qsort(notes->items, (size_t)notes->count, sizeof *notes->items, compare_notes);
}

/* Finds the smallest, median and largest size; unknown sizes are sorted to the front. */
static void describe_sizes(struct lk_survey_scan *scan)
{
    struct lk_survey *survey = scan->survey;
    int64_t first = 0;
    qsort(scan->sizes, (size_t)scan->total, sizeof *scan->sizes, compare_sizes);
    while (first < scan->total && scan->sizes[first].height == 0)
        first++;
    if (first == scan->total)
        return;
    survey->smallest = scan->sizes[first];
    survey->median = scan->sizes[first + (scan->total - 1 - first) / 2];
    survey->largest = scan->sizes[scan->total - 1];
}

static void describe(struct lk_survey_scan *scan, struct lk_survey_finder *finders)
{
    struct lk_survey *survey = scan->survey;
    const struct lk_broken *broken = scan->data->broken;
    struct lk_survey_finder *sum = &finders[0];
    for (int i = 1; i < survey->threads; i++)
        add_finder(sum, &finders[i], scan->data->info.classes);
    survey->samples = scan->total;
    survey->good = sum->good;
    survey->class_counts = sum->class_counts;
    sum->class_counts = NULL;
    survey->unlabelled = sum->unlabelled;
    sort_notes(&survey->bad);
    sort_notes(&survey->misnamed);
    survey->lost = broken ? lk_broken_lost(broken) : 0;
    survey->most_bad = broken ? lk_broken_most(broken, scan->total) : 0;
    describe_sizes(scan);
    survey->jpegs = sum->jpegs;
    survey->pngs = sum->pngs;
    memcpy(survey->channels, sum->channels, sizeof survey->channels);
    for (int c = 0; c < LK_SURVEY_CHANNELS; c++)
        describe_values(sum->values[c], &survey->mean[c], &survey->deviation[c]);
    for (int s = 0; s < LK_SURVEY_STAGES; s++)
        survey->samples_per_s[s] =
            sum->seconds[s] > 0 ? (double)sum->passed[s] / sum->seconds[s] : 0;
}

static void find_label(struct lk_survey_scan *scan)
{
    const struct lk_data_info *info = &scan->data->info;
    scan->label = -1;
    for (int f = info->field_count - 1; f >= 0; f--)
        if (info->fields[f].role == LK_FIELD_LABEL && info->fields[f].classes > 0)
            scan->label = f;
}

static enum lk_status run(struct lk_survey_scan *scan, struct lk_survey_finder *finders)
{
    const int64_t count = scan->data->info.count, wanted = scan->options->samples;
    const bool is_part = wanted > 0 && wanted < count;
    scan->sizes = calloc((size_t)(is_part ? wanted : count), sizeof *scan->sizes);
    if (!scan->sizes)
        return lk_fail_memory("sizes of images", (size_t)count * sizeof *scan->sizes);
    find_label(scan);
    for (int i = 0; i < scan->survey->threads; i++)
        LK_TRY(start_finder(&finders[i], scan));
    scan->total = count;
    if (is_part) {
        LK_TRY(run_scan(scan, finders, lk_survey_find_label));
        scan->total = wanted;
    }
    scan->counts_labels = !is_part;
    LK_TRY(run_scan(scan, finders, lk_survey_inspect));
    describe(scan, finders);
    return lk_survey_measure(scan, &finders[0]);
}

static int count_threads(const struct lk_survey_options *options)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const long wanted = options->threads ? options->threads : cores;
    return wanted < 1 ? 1 : wanted > MOST_THREADS ? MOST_THREADS : (int)wanted;
}

enum lk_status lk_survey_create(const struct lk_data *data,
                                const struct lk_survey_options *options,
                                struct lk_survey **survey)
{
    enum { MOST_SAMPLES = INT32_MAX }; /* times 2^32 of them, it fits */
    if (options->samples < 0 || options->samples > MOST_SAMPLES || options->threads < 0)
        return lk_fail(LK_E_ARGUMENT, "%lld samples on %d threads: expected 0..%d and 0..%d",
                       (long long)options->samples, options->threads, MOST_SAMPLES,
                       MOST_THREADS);
    struct lk_survey *made = calloc(1, sizeof *made);
    struct lk_survey_finder *finders = calloc(MOST_THREADS, sizeof *finders);
    enum lk_status status = LK_OK;
    struct lk_survey_scan scan = {.data = data, .options = options, .survey = made};
    pthread_mutex_init(&scan.mutex, NULL);
    if (!made || !finders) {
        status = lk_fail_memory("a survey", MOST_THREADS * sizeof *finders);
    } else {
        made->threads = count_threads(options);
        status = run(&scan, finders);
    }
    for (int i = 0; finders && i < MOST_THREADS; i++) {
        for (int f = 0; f < LK_MOST_FIELDS; f++)
            free(finders[i].fields[f]);
        free(finders[i].class_counts);
    }
    free(finders);
    free(scan.sizes);
    pthread_mutex_destroy(&scan.mutex);
    if (status == LK_OK)
        *survey = made;
    else
        lk_survey_destroy(made);
    return status;
}

static void clear_notes(struct lk_survey_notes *notes)
{
    for (int64_t i = 0; i < notes->count; i++)
        free((void *)notes->items[i].text);
    free(notes->items);
}

void lk_survey_destroy(struct lk_survey *survey)
{
    if (!survey)
        return;
    clear_notes(&survey->bad);
    clear_notes(&survey->misnamed);
    free(survey->class_counts);
    free(survey->numbers);
    free(survey);
}
