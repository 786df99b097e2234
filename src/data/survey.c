#include "base/fail.h"
#include "data/data.h"
#include "data/files.h"
#include "io/image.h"

#include <lockstep/survey.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

enum { MOST_THREADS = 64, VALUES = 256 };

/* One pass over samples, shared by threads that take the next number each. */
struct pass {
    const struct lk_data *data;
    const struct lk_survey_options *options;
    struct lk_survey *survey;
    int64_t total;                /* numbers to visit */
    bool counts_labels;           /* while it looks at samples */
    struct lk_survey_size *sizes; /* [total] */
    atomic_llong next, done;
    atomic_bool has_failed;
    pthread_mutex_t mutex; /* of the survey's notes and sums, and of: */
    enum lk_status status;
    char text[1024];
};

/* What one thread has found. */
struct finder {
    struct pass *pass;
    enum lk_status (*visit)(struct finder *finder, int64_t number);
    bool is_caller;
    uint8_t *sample;
    int64_t *class_counts; /* [classes] */
    int64_t unlabelled, good, jpegs, pngs, channels[LK_SURVEY_CHANNELS + 1];
    int64_t values[LK_SURVEY_CHANNELS][VALUES]; /* how often each is there */
    double seconds[LK_SURVEY_STAGES];
    int64_t passed[LK_SURVEY_STAGES]; /* samples */
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Adds the time since `begin` to a stage. */
static void note_time(struct finder *finder, enum lk_survey_stage stage, double begin)
{
    finder->seconds[stage] += now() - begin;
    finder->passed[stage]++;
}

static void count_label(struct finder *finder, int64_t label)
{
    if (label >= 0 && label < finder->pass->data->info.classes)
        finder->class_counts[label]++;
    else
        finder->unlabelled++;
}

static enum lk_status add_note(struct pass *pass, struct lk_survey_notes *notes, int64_t index,
                               const char *text)
{
    enum lk_status status = LK_OK;
    char *copy = strdup(text);
    pthread_mutex_lock(&pass->mutex);
    if ((notes->count & (notes->count - 1)) == 0) { /* full: room is a power of two */
        const size_t room = notes->count ? 2 * (size_t)notes->count : 1;
        void *items = realloc(notes->items, room * sizeof *notes->items);
        if (items)
            notes->items = items;
        else
            status = lk_fail_memory("notes on samples", room * sizeof *notes->items);
    }
    if (!copy)
        status = lk_fail_memory("a note on a sample", strlen(text));
    if (status == LK_OK)
        notes->items[notes->count++] = (struct lk_survey_note){index, copy};
    else
        free(copy);
    pthread_mutex_unlock(&pass->mutex);
    return status;
}

/* A file with the ending of one format may hold the other one, which reads just as well. */
static enum lk_status check_name(struct finder *finder, int64_t index, const char *where,
                                 const char *format)
{
    struct pass *pass = finder->pass;
    char text[640];
    if (!lk_files_is_image(where) ||
        (strcasecmp(strrchr(where, '.'), ".png") == 0) == (strcmp(format, "PNG") == 0))
        return LK_OK;
    snprintf(text, sizeof text, "'%s' is a %s file", where, format);
    return add_note(pass, &pass->survey->misnamed, index, text);
}

static enum lk_status measure(struct finder *finder, int64_t number,
                              const struct lk_encoded *encoded)
{
    int shape[3];
    LK_TRY(lk_image_measure(encoded->data, encoded->bytes, encoded->where, shape));
    finder->pass->sizes[number] = (struct lk_survey_size){shape[0], shape[1]};
    finder->channels[shape[2] < 1 || shape[2] > LK_SURVEY_CHANNELS ? 0 : shape[2]]++;
    const char *format = lk_image_format(encoded->data, encoded->bytes);
    *(strcmp(format, "PNG") == 0 ? &finder->pngs : &finder->jpegs) += 1;
    return LK_OK;
}

/* Decodes into finder->sample, stage by stage. */
static enum lk_status decode(struct finder *finder, const struct lk_encoded *encoded)
{
    const struct lk_data_info *info = &finder->pass->data->info;
    struct lk_image image;
    double begin = now();
    int least[2];
    const struct lk_decoding decoding = lk_images_decoding(finder->pass->data->images);
    lk_decode_least(&decoding, least);
    LK_TRY(lk_image_decode_least(encoded->data, encoded->bytes, info->channels, least,
                                 encoded->where, &image));
    note_time(finder, LK_SURVEY_DECODE, begin);
    begin = now();
    const enum lk_status status =
        lk_image_resize(&image, NULL, info->height, info->width, finder->sample);
    note_time(finder, LK_SURVEY_RESIZE, begin);
    lk_image_clear(&image);
    return status;
}

static enum lk_status look_at_file(struct finder *finder, int64_t number, int64_t index)
{
    const struct pass *pass = finder->pass;
    const struct lk_data *data = pass->data;
    struct lk_encoded encoded = {.label = -1};
    const double begin = now();
    enum lk_status status = data->source->fetch(data->state, index, &encoded);
    note_time(finder, LK_SURVEY_READ, begin);
    if (pass->counts_labels)
        count_label(finder, encoded.label);
    LK_TRY(status);
    status = measure(finder, number, &encoded);
    if (status == LK_OK)
        status = lk_images_check_label(data->images, &encoded);
    if (status == LK_OK)
        status = decode(finder, &encoded);
    if (status == LK_OK)
        status = check_name(finder, index, encoded.where,
                            lk_image_format(encoded.data, encoded.bytes));
    free(encoded.data);
    return status;
}

static enum lk_status look_at_pixels(struct finder *finder, int64_t number, int64_t index)
{
    const struct pass *pass = finder->pass;
    const struct lk_data *data = pass->data;
    int32_t label = -1;
    const double begin = now();
    LK_TRY(data->source->read(data->state, index, finder->sample, &label));
    note_time(finder, LK_SURVEY_READ, begin);
    pass->sizes[number] = (struct lk_survey_size){data->info.height, data->info.width};
    if (pass->counts_labels)
        count_label(finder, label);
    return LK_OK;
}

static void count_values(struct finder *finder)
{
    const struct lk_data *data = finder->pass->data;
    const int channels = data->info.channels;
    for (int c = 0; c < channels; c++)
        for (size_t i = (size_t)c; i < data->sample_bytes; i += (size_t)channels)
            finder->values[c][finder->sample[i]]++;
    finder->good++;
}

/* Looks at the sample that is number `number` of those chosen. */
static enum lk_status look(struct finder *finder, int64_t number)
{
    struct pass *pass = finder->pass;
    const struct lk_data *data = pass->data;
    const int64_t index =
        pass->total == data->info.count ? number : number * data->info.count / pass->total;
    const enum lk_status status =
        (data->images ? look_at_file : look_at_pixels)(finder, number, index);
    if (status == LK_OK)
        count_values(finder);
    if (!data->images || (status != LK_E_DATA && status != LK_E_IO))
        return status;
    lk_images_mark_bad(data->images, index);
    char why[1024];
    snprintf(why, sizeof why, "%s", lk_error_text());
    lk_error_clear();
    return add_note(pass, &pass->survey->bad, index, why);
}

/* Finds the label of sample `index`, as cheaply as its source can. */
static enum lk_status find_label(struct finder *finder, int64_t index)
{
    const struct lk_data *data = finder->pass->data;
    const struct lk_source *source = data->source;
    struct lk_encoded encoded = {.label = -1};
    int32_t label = -1;
    if (source->label) {
        encoded.label = source->label(data->state, index);
    } else if (!source->fetch) {
        LK_TRY(source->read(data->state, index, finder->sample, &label));
        encoded.label = label;
    } else {
        const enum lk_status status = source->fetch(data->state, index, &encoded);
        if (status == LK_OK)
            free(encoded.data);
        else if (status != LK_E_DATA && status != LK_E_IO)
            return status;
        lk_error_clear();
    }
    count_label(finder, encoded.label);
    return LK_OK;
}

static void *work(void *argument)
{
    struct finder *finder = argument;
    struct pass *pass = finder->pass;
    const struct lk_survey_options *options = pass->options;
    while (!atomic_load(&pass->has_failed)) {
        const int64_t number = atomic_fetch_add(&pass->next, 1);
        if (number >= pass->total)
            break;
        const enum lk_status status = finder->visit(finder, number);
        const int64_t done = atomic_fetch_add(&pass->done, 1) + 1;
        if (status != LK_OK && !atomic_exchange(&pass->has_failed, true)) {
            pthread_mutex_lock(&pass->mutex);
            pass->status = status;
            snprintf(pass->text, sizeof pass->text, "%s", lk_error_text());
            pthread_mutex_unlock(&pass->mutex);
        }
        if (finder->is_caller && options->progress)
            options->progress(options->context, done, pass->total);
    }
    return NULL;
}

static enum lk_status start_finder(struct finder *finder, struct pass *pass)
{
    const struct lk_data *data = pass->data;
    finder->pass = pass;
    finder->sample = malloc(data->sample_bytes);
    finder->class_counts = calloc((size_t)data->info.classes, sizeof(int64_t));
    if (!finder->sample || !finder->class_counts)
        return lk_fail_memory("a thread that looks at samples", data->sample_bytes);
    return LK_OK;
}

/* Runs the pass on the caller's thread and others; where those do not start, with fewer. */
static enum lk_status run_pass(struct pass *pass, struct finder *finders,
                               enum lk_status (*visit)(struct finder *, int64_t))
{
    pthread_t threads[MOST_THREADS];
    int started = 1;
    atomic_store(&pass->next, 0);
    atomic_store(&pass->done, 0);
    for (int i = 0; i < pass->survey->threads; i++) {
        finders[i].visit = visit;
        finders[i].is_caller = i == 0;
    }
    while (started < pass->survey->threads &&
           pthread_create(&threads[started], NULL, work, &finders[started]) == 0)
        started++;
    work(&finders[0]);
    for (int i = 1; i < started; i++)
        pthread_join(threads[i], NULL);
    return pass->status == LK_OK ? LK_OK : lk_fail(pass->status, "%s", pass->text);
}

/* Mean and deviation of values that are there counts[v] times each. */
static void describe_values(const int64_t counts[VALUES], double *mean, double *deviation)
{
    double all = 0, sum = 0, squares = 0;
    for (int v = 0; v < VALUES; v++) {
        all += (double)counts[v];
        sum += (double)counts[v] * v;
    }
    *mean = all > 0 ? sum / all : 0;
    for (int v = 0; v < VALUES; v++)
        squares += (double)counts[v] * (v - *mean) * (v - *mean);
    *deviation = all > 0 ? sqrt(squares / all) : 0;
}

static void add_finder(struct finder *sum, const struct finder *one, int classes)
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
        for (int v = 0; v < VALUES; v++)
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

/* Those not known are sorted to the front. */
static void describe_sizes(struct pass *pass)
{
    struct lk_survey *survey = pass->survey;
    int64_t first = 0;
    qsort(pass->sizes, (size_t)pass->total, sizeof *pass->sizes, compare_sizes);
    while (first < pass->total && pass->sizes[first].height == 0)
        first++;
    if (first == pass->total)
        return;
    survey->smallest = pass->sizes[first];
    survey->median = pass->sizes[first + (pass->total - 1 - first) / 2];
    survey->largest = pass->sizes[pass->total - 1];
}

static void describe(struct pass *pass, struct finder *finders)
{
    struct lk_survey *survey = pass->survey;
    const struct lk_images *images = pass->data->images;
    struct finder *sum = &finders[0];
    for (int i = 1; i < survey->threads; i++)
        add_finder(sum, &finders[i], pass->data->info.classes);
    survey->samples = pass->total;
    survey->good = sum->good;
    survey->class_counts = sum->class_counts;
    sum->class_counts = NULL;
    survey->unlabelled = sum->unlabelled;
    sort_notes(&survey->bad);
    sort_notes(&survey->misnamed);
    survey->lost = images ? lk_images_lost(images) : 0;
    survey->most_bad = images ? lk_images_most_bad(images, pass->total) : 0;
    describe_sizes(pass);
    survey->jpegs = sum->jpegs;
    survey->pngs = sum->pngs;
    memcpy(survey->channels, sum->channels, sizeof survey->channels);
    for (int c = 0; c < LK_SURVEY_CHANNELS; c++)
        describe_values(sum->values[c], &survey->mean[c], &survey->deviation[c]);
    for (int s = 0; s < LK_SURVEY_STAGES; s++)
        survey->samples_per_s[s] =
            sum->seconds[s] > 0 ? (double)sum->passed[s] / sum->seconds[s] : 0;
}

static enum lk_status run(struct pass *pass, struct finder *finders)
{
    const int64_t count = pass->data->info.count, wanted = pass->options->samples;
    const bool is_part = wanted > 0 && wanted < count;
    pass->sizes = calloc((size_t)(is_part ? wanted : count), sizeof *pass->sizes);
    if (!pass->sizes)
        return lk_fail_memory("sizes of images", (size_t)count * sizeof *pass->sizes);
    for (int i = 0; i < pass->survey->threads; i++)
        LK_TRY(start_finder(&finders[i], pass));
    pass->total = count;
    if (is_part) {
        LK_TRY(run_pass(pass, finders, find_label));
        pass->total = wanted;
    }
    pass->counts_labels = !is_part;
    LK_TRY(run_pass(pass, finders, look));
    describe(pass, finders);
    return LK_OK;
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
    struct finder *finders = calloc(MOST_THREADS, sizeof *finders);
    enum lk_status status = LK_OK;
    struct pass pass = {.data = data, .options = options, .survey = made};
    pthread_mutex_init(&pass.mutex, NULL);
    if (!made || !finders) {
        status = lk_fail_memory("a survey", MOST_THREADS * sizeof *finders);
    } else {
        made->threads = count_threads(options);
        status = run(&pass, finders);
    }
    for (int i = 0; finders && i < MOST_THREADS; i++) {
        free(finders[i].sample);
        free(finders[i].class_counts);
    }
    free(finders);
    free(pass.sizes);
    pthread_mutex_destroy(&pass.mutex);
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
    free(survey);
}
