/* Prints what `lockstep data` has found, as tables or as JSON. */
#include "data/data.h"

#include "command.h"
#include "terminal/json.h"
#include "terminal/terminal.h"
#include "train/progress.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    NAME_MOST = 34,
    NAME_MOST_OF_THREE = 20,
    FIRST_COLUMN = 20,
    COLUMN = 14,
    MOST_SHOWN = 20,
    MOST_MISNAMED = 5
};

static const char *const format_names[] = {"JPEG", "PNG"};
static const char *const channel_names[] = {NULL, "grey", "grey and alpha", "RGB", "RGBA"};
static const char *const stage_names[] = {"read", "decode", "resize"};

static const struct lk_data_info *info_of(const struct data_report *report)
{
    return lk_data_info(report->parts[0].data);
}

static const char *class_name(const struct lk_data_info *info, int class, char text[32])
{
    if (info->class_names)
        return info->class_names[class];
    snprintf(text, 32, "%d", class);
    return text;
}

static const char *value_name(const struct lk_data_info *info, int channel)
{
    static const char *const colours[] = {"red", "green", "blue", "alpha"};
    return info->channels < 3 ? "grey" : colours[channel];
}

/* Labels that are known, all classes together. */
static int64_t labels_of(const struct data_part *part)
{
    int64_t sum = 0;
    for (int i = 0; i < lk_data_info(part->data)->classes; i++)
        sum += part->survey->class_counts[i];
    return sum;
}

static int64_t unlabelled_of(const struct data_part *part)
{
    return part->survey->unlabelled;
}

/* The class with most samples; of equal ones the first. */
static int majority(const struct data_part *part)
{
    int most = 0;
    for (int i = 1; i < lk_data_info(part->data)->classes; i++)
        if (part->survey->class_counts[i] > part->survey->class_counts[most])
            most = i;
    return most;
}

static double share(const struct data_part *part, int class)
{
    const int64_t all = labels_of(part);
    return all ? (double)part->survey->class_counts[class] / (double)all : 0;
}

static void print_heading(const struct data_report *report, const char *what, int width,
                          int column)
{
    printf("\n");
    terminal_print(what, width);
    for (int i = 0; i < report->count; i++)
        printf("%*s", column, report->parts[i].name);
    printf("\n");
}

/* Mean and deviation are measured of so many. */
static int channels_of_values(const struct lk_data_info *info)
{
    return info->channels < LK_SURVEY_CHANNELS ? info->channels : LK_SURVEY_CHANNELS;
}

static int name_width(const struct data_report *report)
{
    const struct lk_data_info *info = info_of(report);
    const int most = report->count > 2 ? NAME_MOST_OF_THREE : NAME_MOST;
    char text[32];
    int width = 10;
    for (int i = 0; i < info->classes; i++) {
        const int columns = terminal_width(class_name(info, i, text));
        width = columns > width ? columns : width;
    }
    return width > most ? most : width;
}

/* A row below those of the classes. */
static void print_sum(const struct data_report *report, const char *what, int width,
                      int64_t (*count)(const struct data_part *))
{
    terminal_print(what, width);
    for (int i = 0; i < report->count; i++)
        printf("%*" PRId64, i ? 20 : 11, count(&report->parts[i]));
    printf("\n");
}

/* Of two parts in one line, of three in a line each. */
static void print_majority(const struct data_report *report)
{
    const char *between = report->count > 2 ? ",\n                " : ", ";
    printf("majority class: ");
    for (int i = 0; i < report->count; i++) {
        const struct data_part *part = &report->parts[i];
        char text[32];
        const char *name = class_name(info_of(report), majority(part), text);
        const int columns = terminal_width(name);
        printf("%s%s ", i ? between : "", part->name);
        terminal_print(name, columns > NAME_MOST / 2 ? NAME_MOST / 2 : columns);
        printf(" %.2f %%", 100 * share(part, majority(part)));
    }
    printf("\n");
}

static void print_classes(const struct data_report *report)
{
    const struct lk_data_info *info = info_of(report);
    const int width = name_width(report);
    int64_t unlabelled = 0;
    char text[32];
    print_heading(report, "class", width, 20);
    for (int class = 0; class < info->classes; class ++) {
        terminal_print(class_name(info, class, text), width);
        for (int i = 0; i < report->count; i++)
            printf("%11" PRId64 " %6.2f %%", report->parts[i].survey->class_counts[class],
                   100 * share(&report->parts[i], class));
        printf("\n");
    }
    print_sum(report, "all", width, labels_of);
    for (int i = 0; i < report->count; i++)
        unlabelled += unlabelled_of(&report->parts[i]);
    if (unlabelled)
        print_sum(report, "no class", width, unlabelled_of);
    print_majority(report);
}

/* A row of numbers, left out where all of them are 0. */
static void print_counts(const struct data_report *report, const char *what,
                         int64_t (*count)(const struct lk_survey *, int), int which)
{
    int64_t sum = 0;
    for (int i = 0; i < report->count; i++)
        sum += count(report->parts[i].survey, which);
    if (!sum)
        return;
    terminal_print(what, FIRST_COLUMN);
    for (int i = 0; i < report->count; i++)
        printf("%*" PRId64, COLUMN, count(report->parts[i].survey, which));
    printf("\n");
}

static int64_t files_of(const struct lk_survey *survey, int format)
{
    return format == 0 ? survey->jpegs : survey->pngs;
}

static int64_t channels_of(const struct lk_survey *survey, int channels)
{
    return survey->channels[channels];
}

static int64_t bad_of(const struct lk_survey *survey, int which)
{
    (void)which;
    return data_bad(survey);
}

static struct lk_survey_size size_of(const struct lk_survey *survey, int which)
{
    return which == 0 ? survey->smallest : which == 1 ? survey->median : survey->largest;
}

static void print_files(const struct data_report *report)
{
    static const char *const sizes[] = {"smallest, h x w", "median, h x w", "largest, h x w"};
    print_heading(report, "images", FIRST_COLUMN, COLUMN);
    for (int f = 0; f < 2; f++)
        print_counts(report, format_names[f], files_of, f);
    for (int c = 1; c <= LK_SURVEY_CHANNELS; c++)
        print_counts(report, channel_names[c], channels_of, c);
    print_counts(report, "broken", bad_of, 0);
    for (int s = 0; s < 3; s++) {
        terminal_print(sizes[s], FIRST_COLUMN);
        for (int i = 0; i < report->count; i++) {
            const struct lk_survey_size size = size_of(report->parts[i].survey, s);
            char text[32];
            snprintf(text, sizeof text, "%dx%d", size.height, size.width);
            printf("%*s", COLUMN, text);
        }
        printf("\n");
    }
}

static void print_values(const struct data_report *report)
{
    const struct lk_data_info *info = info_of(report);
    printf("\n%-*s%12s%12s%15s%15s\n", FIRST_COLUMN, "values 0..255", "mean", "deviation",
           "mean/255", "deviation/255");
    for (int i = 0; i < report->count; i++)
        for (int c = 0; c < channels_of_values(info); c++) {
            const struct lk_survey *s = report->parts[i].survey;
            char text[32];
            snprintf(text, sizeof text, "%s, %s", report->parts[i].name, value_name(info, c));
            printf("%-*s%12.3f%12.3f%15.6f%15.6f\n", FIRST_COLUMN, text, s->mean[c],
                   s->deviation[c], s->mean[c] / 255, s->deviation[c] / 255);
        }
}

/* "numbers[3]"; "numbers": all of the field. */
static void numbers_name(const struct lk_data_info *info,
                         const struct lk_survey_numbers *numbers, char name[192])
{
    const struct lk_field *field = &info->fields[numbers->field];
    if (numbers->element < 0 || field->shape.rank == 0)
        snprintf(name, 192, "%s", field->name);
    else
        snprintf(name, 192, "%s[%" PRId64 "]", field->name, numbers->element);
}

static void print_numbers(const struct data_report *report)
{
    const struct lk_data_info *info = info_of(report);
    printf("\n%-*s%10s%12s%12s%12s%12s\n", FIRST_COLUMN, "numbers", "count", "mean",
           "deviation", "smallest", "largest");
    for (int i = 0; i < report->count; i++)
        for (int k = 0; k < report->parts[i].survey->number_count; k++) {
            const struct lk_survey_numbers *n = &report->parts[i].survey->numbers[k];
            char name[192], text[256];
            numbers_name(info, n, name);
            snprintf(text, sizeof text, "%s, %s", report->parts[i].name, name);
            printf("%-*s%10" PRId64 "%12.6g%12.6g%12.6g%12.6g\n", FIRST_COLUMN, text, n->count,
                   n->mean, n->deviation, n->smallest, n->largest);
        }
}

static double rate_of(const struct data_part *part, int row)
{
    return row == 0                  ? part->list_per_s
           : row <= LK_SURVEY_STAGES ? part->survey->samples_per_s[row - 1]
                                     : part->batches_per_s;
}

static void row_name(const struct data_part *part, int row, char name[64])
{
    if (row == 0)
        snprintf(name, 64, "list");
    else if (row <= LK_SURVEY_STAGES)
        snprintf(name, 64, "%s, 1 thread", stage_names[row - 1]);
    else
        snprintf(name, 64, "batches, %d thread%s", part->batch_threads,
                 part->batch_threads == 1 ? "" : "s");
}

static void print_rates(const struct data_report *report)
{
    print_heading(report, "samples/s", FIRST_COLUMN, COLUMN);
    for (int row = 0; row < LK_SURVEY_STAGES + 2; row++) {
        char name[64], rate[32];
        double sum = 0;
        for (int i = 0; i < report->count; i++)
            sum += rate_of(&report->parts[i], row);
        if (sum == 0)
            continue;
        row_name(&report->parts[0], row, name);
        terminal_print(name, FIRST_COLUMN);
        for (int i = 0; i < report->count; i++)
            printf("%*s", COLUMN, rate_text(rate_of(&report->parts[i], row), rate));
        printf("\n");
    }
}

static void print_notes(const struct data_part *part, const struct lk_survey_notes *notes,
                        const char *what, int64_t most)
{
    if (!notes->count)
        return;
    printf("\n%s: %s, %" PRId64 " of %" PRId64 "\n", what, part->name, notes->count,
           part->survey->samples);
    for (int64_t i = 0; i < notes->count && i < most; i++) {
        printf("%7" PRId64 "  ", notes->items[i].index);
        terminal_print(notes->items[i].text, 0);
        printf("\n");
    }
    if (notes->count > most)
        printf("  and %" PRId64 " more, which --json names\n", notes->count - most);
}

static const char *dtype_name(enum lk_dtype dtype)
{
    return dtype == LK_U8 ? "u8" : dtype == LK_I32 ? "i32" : "f32";
}

/* "numbers f32 [4], label i32 []" */
static void print_fields(const struct lk_data_info *info)
{
    for (int i = 0; i < info->field_count; i++) {
        const struct lk_field *field = &info->fields[i];
        printf("%s%s %s [", i ? ", " : "", field->name, dtype_name(field->dtype));
        for (int k = 0; k < field->shape.rank; k++)
            printf("%s%" PRId64, k ? ", " : "", field->shape.dim[k]);
        printf("]");
    }
}

void data_print(const struct data_report *report)
{
    const struct lk_data_info *info = info_of(report);
    const bool has_image = info->channels > 0;
    terminal_print(info->name, 0);
    printf(": %d classes, samples of ", info->classes);
    if (has_image)
        printf("%dx%dx%d", info->height, info->width, info->channels);
    else
        print_fields(info);
    for (int i = 0; i < report->count; i++) {
        const struct data_part *part = &report->parts[i];
        const int64_t count = lk_data_info(part->data)->count;
        if (part->survey->samples < count)
            printf("%s%" PRId64 " of %" PRId64 " %s", i ? ", " : "\nlooked at ",
                   part->survey->samples, count, part->name);
    }
    printf("\n");
    if (info->classes > 0)
        print_classes(report);
    if (has_image)
        print_files(report);
    if (has_image)
        print_values(report);
    if (report->parts[0].survey->number_count > 0)
        print_numbers(report);
    print_rates(report);
    for (int i = 0; i < report->count; i++) {
        const struct data_part *part = &report->parts[i];
        print_notes(part, &part->survey->bad, "broken", MOST_SHOWN);
        print_notes(part, &part->survey->misnamed, "named as another format", MOST_MISNAMED);
    }
}

static json_t *size_json(struct lk_survey_size size)
{
    return size.height ? json_pack("[i, i]", size.height, size.width) : json_null();
}

static json_t *notes_json(const struct lk_survey_notes *notes)
{
    json_t *items = json_array();
    for (int64_t i = 0; i < notes->count; i++)
        json_array_append_new(items, json_pack("{s:I, s:o}", "sample",
                                               (json_int_t)notes->items[i].index, "text",
                                               json_text(notes->items[i].text)));
    return items;
}

static json_t *numbers_json(const double *numbers, int count, double scale)
{
    json_t *items = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(items, json_real(numbers[i] * scale));
    return items;
}

/* A stage that there is not has no rate. */
static json_t *rate_json(double rate)
{
    return rate > 0 ? json_real(rate) : json_null();
}

static json_t *rates_json(const struct data_part *part)
{
    json_t *rates = json_object();
    json_object_set_new(rates, "list", rate_json(part->list_per_s));
    for (int s = 0; s < LK_SURVEY_STAGES; s++)
        json_object_set_new(rates, stage_names[s], rate_json(part->survey->samples_per_s[s]));
    json_object_set_new(rates, "batches", rate_json(part->batches_per_s));
    return rates;
}

static json_t *files_json(const struct lk_survey *survey)
{
    json_t *channels = json_object();
    for (int c = 1; c <= LK_SURVEY_CHANNELS; c++)
        json_object_set_new(channels, channel_names[c], json_integer(survey->channels[c]));
    return json_pack("{s:I, s:I, s:o, s:o, s:o, s:o}", "JPEG", (json_int_t)survey->jpegs, "PNG",
                     (json_int_t)survey->pngs, "channels", channels, "smallest",
                     size_json(survey->smallest), "median", size_json(survey->median),
                     "largest", size_json(survey->largest));
}

static json_t *survey_numbers_json(const struct data_part *part)
{
    json_t *items = json_array();
    for (int k = 0; k < part->survey->number_count; k++) {
        const struct lk_survey_numbers *n = &part->survey->numbers[k];
        char name[192];
        numbers_name(lk_data_info(part->data), n, name);
        json_array_append_new(items, json_pack("{s:o, s:I, s:f, s:f, s:f, s:f}", "name",
                                               json_text(name), "count", (json_int_t)n->count,
                                               "mean", n->mean, "deviation", n->deviation,
                                               "smallest", n->smallest, "largest", n->largest));
    }
    return items;
}

static json_t *part_json(const struct data_part *part)
{
    const struct lk_survey *survey = part->survey;
    const struct lk_data_info *info = lk_data_info(part->data);
    json_t *counts = json_array();
    const int most = info->classes ? majority(part) : 0;
    for (int i = 0; i < info->classes; i++)
        json_array_append_new(counts, json_integer(survey->class_counts[i]));
    return json_pack(
        "{s:s, s:I, s:I, s:I, s:o, s:I, s:i, s:f, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:o, s:I, "
        "s:o, s:i, s:o, s:o}",
        "part", part->name, "samples", (json_int_t)info->count, "looked_at",
        (json_int_t)survey->samples, "good", (json_int_t)survey->good, "class_counts", counts,
        "without_class", (json_int_t)survey->unlabelled, "majority_class", most,
        "majority_share", info->classes ? share(part, most) : 0.0, "files", files_json(survey),
        "mean", numbers_json(survey->mean, channels_of_values(info), 1), "deviation",
        numbers_json(survey->deviation, channels_of_values(info), 1), "scaled_mean",
        numbers_json(survey->mean, channels_of_values(info), 1 / 255.0), "scaled_deviation",
        numbers_json(survey->deviation, channels_of_values(info), 1 / 255.0), "bad_count",
        (json_int_t)data_bad(survey), "most_bad", (json_int_t)survey->most_bad, "bad",
        notes_json(&survey->bad), "cut_off", (json_int_t)survey->lost, "misnamed",
        notes_json(&survey->misnamed), "batch_threads", part->batch_threads, "samples_per_s",
        rates_json(part), "numbers", survey_numbers_json(part));
}

static json_t *fields_json(const struct lk_data_info *info)
{
    json_t *items = json_array();
    for (int i = 0; i < info->field_count; i++) {
        const struct lk_field *field = &info->fields[i];
        json_t *shape = json_array();
        for (int k = 0; k < field->shape.rank; k++)
            json_array_append_new(shape, json_integer(field->shape.dim[k]));
        json_array_append_new(
            items, json_pack("{s:o, s:s, s:o, s:s, s:I}", "name", json_text(field->name),
                             "type", dtype_name(field->dtype), "shape", shape, "role",
                             field->role == LK_FIELD_INPUT ? "input" : "label", "classes",
                             (json_int_t)field->classes));
    }
    return items;
}

int data_print_json(const struct data_report *report)
{
    const struct lk_data_info *info = info_of(report);
    json_t *classes = json_array(), *parts = json_array();
    char text[32];
    for (int i = 0; i < info->classes; i++)
        json_array_append_new(classes, json_text(class_name(info, i, text)));
    for (int i = 0; i < report->count; i++)
        json_array_append_new(parts, part_json(&report->parts[i]));
    return json_print(json_pack("{s:o, s:o, s:[i, i, i], s:o, s:o, s:o}", "data",
                                json_text(report->spec), "name", json_text(info->name), "shape",
                                info->height, info->width, info->channels, "classes", classes,
                                "parts", parts, "fields", fields_json(info)),
                      JSON_INDENT(2));
}
