/* Describes the numbers of fields: count, mean, deviation, smallest and largest. */
#include "data/survey/survey.h"

#include "base/fail.h"
#include "data/sources/field.h"
#include "data/stages/moments.h"

#include <stdlib.h>

/* A field with more numbers than these is described as a whole. */
enum { MOST_ELEMENTS = 64 };

static bool is_described(const struct lk_field *field)
{
    return field->dtype == LK_F32;
}

/* How many descriptions a field gets. */
static int64_t count_rows(const struct lk_field *field)
{
    const int64_t elements = lk_field_count(field);
    return elements > MOST_ELEMENTS ? 1 : elements;
}

static void add_sample(const struct lk_data *data, void *const to[], struct lk_moments *moments)
{
    for (int f = 0; f < data->info.field_count; f++) {
        const struct lk_field *field = &data->info.fields[f];
        const float *x = to[f];
        if (!is_described(field))
            continue;
        const int64_t rows = count_rows(field);
        for (int64_t e = 0; e < lk_field_count(field); e++)
            lk_moments_add(&moments[rows == 1 ? 0 : e], x[e]);
        moments += rows;
    }
}

static enum lk_status read_all(const struct lk_survey_scan *scan, void *const fields[],
                               struct lk_moments *moments)
{
    const struct lk_data *data = scan->data;
    void *to[LK_MOST_FIELDS] = {NULL};
    for (int f = 0; f < data->info.field_count; f++)
        to[f] = is_described(&data->info.fields[f]) ? fields[f] : NULL;
    for (int64_t n = 0; n < scan->total; n++) {
        const int64_t index = lk_survey_index(scan, n);
        if (data->broken && lk_broken_has(data->broken, index))
            continue;
        LK_TRY(data->source->read(data->state, index, to));
        add_sample(data, to, moments);
    }
    return LK_OK;
}

static void describe(const struct lk_data *data, const struct lk_moments *moments,
                     struct lk_survey_numbers *numbers)
{
    for (int f = 0; f < data->info.field_count; f++) {
        const struct lk_field *field = &data->info.fields[f];
        const int64_t rows = is_described(field) ? count_rows(field) : 0;
        for (int64_t r = 0; r < rows; r++, moments++, numbers++)
            *numbers =
                (struct lk_survey_numbers){.field = f,
                                           .element = lk_field_count(field) > rows ? -1 : r,
                                           .count = moments->count,
                                           .mean = moments->mean,
                                           .deviation = lk_moments_deviation(moments),
                                           .smallest = moments->least,
                                           .largest = moments->most};
    }
}

enum lk_status lk_survey_measure(struct lk_survey_scan *scan, struct lk_survey_finder *finder)
{
    const struct lk_data *data = scan->data;
    int64_t rows = 0;
    for (int f = 0; f < data->info.field_count; f++)
        rows += is_described(&data->info.fields[f]) ? count_rows(&data->info.fields[f]) : 0;
    if (rows == 0)
        return LK_OK;
    struct lk_moments *moments = calloc((size_t)rows, sizeof *moments);
    struct lk_survey_numbers *numbers = calloc((size_t)rows, sizeof *numbers);
    enum lk_status status = moments && numbers
                                ? read_all(scan, finder->fields, moments)
                                : lk_fail_memory("means", (size_t)rows * sizeof *numbers);
    if (status == LK_OK) {
        describe(data, moments, numbers);
        scan->survey->numbers = numbers;
        scan->survey->number_count = (int)rows;
    } else {
        free(numbers);
    }
    free(moments);
    return status;
}
