/* What one thread does with one sample. */
#include "data/survey/survey.h"

#include "base/clock.h"
#include "base/fail.h"
#include "data/sources/field.h"
#include "data/sources/files.h"
#include "io/image/image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Adds the time since `begin` to a stage. */
static void note_time(struct lk_survey_finder *finder, enum lk_survey_stage stage, double begin)
{
    finder->seconds[stage] += lk_seconds() - begin;
    finder->passed[stage]++;
}

static void count_label(struct lk_survey_finder *finder, int64_t label)
{
    if (finder->scan->label < 0)
        return;
    if (label >= 0 && label < finder->scan->data->info.classes)
        finder->class_counts[label]++;
    else
        finder->unlabelled++;
}

/* Counts the labels of the sample that was read: one, or one for each time step. */
static void count_labels(struct lk_survey_finder *finder)
{
    const int field = finder->scan->label;
    const int32_t *labels = field < 0 ? NULL : finder->fields[field];
    const int64_t count =
        field < 0 ? 0 : lk_field_count(&finder->scan->data->info.fields[field]);
    for (int64_t i = 0; i < count; i++)
        count_label(finder, labels[i]);
}

static enum lk_status add_note(struct lk_survey_scan *scan, struct lk_survey_notes *notes,
                               int64_t index, const char *text)
{
    enum lk_status status = LK_OK;
    char *copy = strdup(text);
    pthread_mutex_lock(&scan->mutex);
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
    pthread_mutex_unlock(&scan->mutex);
    return status;
}

/* Notes a file whose ending says one format and whose bytes are of another, which reads just as
 * well. */
static enum lk_status check_name(struct lk_survey_finder *finder, int64_t index,
                                 const char *where, const char *format)
{
    struct lk_survey_scan *scan = finder->scan;
    char text[640];
    if (!lk_files_is_image(where) ||
        (strcasecmp(strrchr(where, '.'), ".png") == 0) == (strcmp(format, "PNG") == 0))
        return LK_OK;
    snprintf(text, sizeof text, "'%s' is a %s file", where, format);
    return add_note(scan, &scan->survey->misnamed, index, text);
}

static enum lk_status measure(struct lk_survey_finder *finder, int64_t number,
                              const struct lk_encoded *encoded)
{
    int shape[3];
    LK_TRY(lk_image_measure(encoded->data, encoded->bytes, encoded->where, shape));
    finder->scan->sizes[number] = (struct lk_survey_size){shape[0], shape[1]};
    finder->channels[shape[2] < 1 || shape[2] > LK_SURVEY_CHANNELS ? 0 : shape[2]]++;
    const char *format = lk_image_format(encoded->data, encoded->bytes);
    *(strcmp(format, "PNG") == 0 ? &finder->pngs : &finder->jpegs) += 1;
    return LK_OK;
}

/* Decodes into the finder's image, stage by stage. */
static enum lk_status decode(struct lk_survey_finder *finder, const struct lk_encoded *encoded)
{
    const struct lk_data_info *info = &finder->scan->data->info;
    struct lk_image image;
    double begin = lk_seconds();
    int least[2];
    const struct lk_decoding decoding = lk_images_decoding(finder->scan->data->images);
    lk_decode_least(&decoding, least);
    LK_TRY(lk_image_decode_least(encoded->data, encoded->bytes, info->channels, least,
                                 encoded->where, &image));
    note_time(finder, LK_SURVEY_DECODE, begin);
    begin = lk_seconds();
    const enum lk_status status = lk_image_resize(&image, NULL, info->height, info->width,
                                                  finder->fields[finder->scan->data->image]);
    note_time(finder, LK_SURVEY_RESIZE, begin);
    lk_image_clear(&image);
    return status;
}

static enum lk_status look_at_file(struct lk_survey_finder *finder, int64_t number,
                                   int64_t index)
{
    const struct lk_survey_scan *scan = finder->scan;
    const struct lk_data *data = scan->data;
    struct lk_encoded encoded = {.label = -1};
    const double begin = lk_seconds();
    enum lk_status status = data->source->fetch(data->state, index, &encoded);
    note_time(finder, LK_SURVEY_READ, begin);
    if (scan->counts_labels && !data->source->read)
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

/* Fields that lie beside an image: `to` is where they all go, but the image. */
static enum lk_status look_beside(struct lk_survey_finder *finder, int64_t index)
{
    const struct lk_data *data = finder->scan->data;
    void *to[LK_MOST_FIELDS];
    if (!data->source->read)
        return LK_OK;
    memcpy(to, finder->fields, sizeof to);
    to[data->image] = NULL;
    const enum lk_status status = data->source->read(data->state, index, to);
    if (finder->scan->counts_labels && status == LK_OK)
        count_labels(finder);
    else if (finder->scan->counts_labels)
        count_label(finder, -1);
    return status;
}

static enum lk_status look_at_image(struct lk_survey_finder *finder, int64_t number,
                                    int64_t index)
{
    const enum lk_status beside = look_beside(finder, index);
    const enum lk_status file = look_at_file(finder, number, index);
    return beside == LK_OK ? file : beside;
}

static enum lk_status look_at_fields(struct lk_survey_finder *finder, int64_t number,
                                     int64_t index)
{
    const struct lk_survey_scan *scan = finder->scan;
    const struct lk_data *data = scan->data;
    const double begin = lk_seconds();
    const enum lk_status status = data->source->read(data->state, index, finder->fields);
    note_time(finder, LK_SURVEY_READ, begin);
    if (scan->counts_labels && status == LK_OK)
        count_labels(finder);
    else if (scan->counts_labels)
        count_label(finder, -1);
    LK_TRY(status);
    scan->sizes[number] = (struct lk_survey_size){data->info.height, data->info.width};
    return LK_OK;
}

static void count_values(struct lk_survey_finder *finder)
{
    const struct lk_data *data = finder->scan->data;
    const int channels = data->info.channels;
    const uint8_t *image = data->image < 0 ? NULL : finder->fields[data->image];
    for (int c = 0; c < channels && c < LK_SURVEY_CHANNELS; c++)
        for (size_t i = (size_t)c; i < data->sample_bytes; i += (size_t)channels)
            finder->values[c][image[i]]++;
    finder->good++;
}

int64_t lk_survey_index(const struct lk_survey_scan *scan, int64_t number)
{
    const int64_t count = scan->data->info.count;
    return scan->total == count ? number : number * count / scan->total;
}

enum lk_status lk_survey_inspect(struct lk_survey_finder *finder, int64_t number)
{
    struct lk_survey_scan *scan = finder->scan;
    const struct lk_data *data = scan->data;
    const int64_t index = lk_survey_index(scan, number);
    const enum lk_status status =
        (data->images ? look_at_image : look_at_fields)(finder, number, index);
    if (status == LK_OK)
        count_values(finder);
    if (!data->broken || (status != LK_E_DATA && !(status == LK_E_IO && data->images)))
        return status;
    lk_broken_mark(data->broken, index);
    char why[1024];
    snprintf(why, sizeof why, "%s", lk_error_text());
    lk_error_clear();
    return add_note(scan, &scan->survey->bad, index, why);
}

/* Reads the labels of a source that has fields; a broken sample has none. */
static enum lk_status read_labels(struct lk_survey_finder *finder, int64_t index)
{
    const struct lk_survey_scan *scan = finder->scan;
    const struct lk_data *data = scan->data;
    void *to[LK_MOST_FIELDS] = {NULL};
    if (scan->label < 0)
        return LK_OK;
    to[scan->label] = finder->fields[scan->label];
    const enum lk_status status = data->source->read(data->state, index, to);
    if (status == LK_OK)
        count_labels(finder);
    if (status != LK_E_DATA || !data->broken)
        return status;
    lk_error_clear();
    count_label(finder, -1);
    return LK_OK;
}

enum lk_status lk_survey_find_label(struct lk_survey_finder *finder, int64_t index)
{
    const struct lk_data *data = finder->scan->data;
    const struct lk_source *source = data->source;
    struct lk_encoded encoded = {.label = -1};
    if (source->read)
        return read_labels(finder, index);
    if (source->label) {
        encoded.label = source->label(data->state, index);
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
