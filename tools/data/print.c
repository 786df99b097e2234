/* Prints what `lockstep data` has found, as tables. */
#include "data/data.h"

#include "command.h"
#include "data/text.h"
#include "terminal/character.h"
#include "terminal/table.h"
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
const char *const data_channel_names[] = {NULL, "grey", "grey and alpha", "RGB", "RGBA"};
const char *const data_stage_names[] = {"read", "decode", "resize"};

static const struct lk_data_info *info_of(const struct data_report *report)
{
    return lk_data_info(report->parts[0].data);
}

const char *data_class_name(const struct lk_data_info *info, int class, char text[32])
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
int data_majority(const struct data_part *part)
{
    int most = 0;
    for (int i = 1; i < lk_data_info(part->data)->classes; i++)
        if (part->survey->class_counts[i] > part->survey->class_counts[most])
            most = i;
    return most;
}

double data_share(const struct data_part *part, int class)
{
    const int64_t all = labels_of(part);
    return all ? (double)part->survey->class_counts[class] / (double)all : 0;
}

/* A table with a column for each part; `share` is what stands before each of them. */
static void start_parts(struct table *table, struct table_column columns[TABLE_COLUMNS],
                        const struct data_report *report, struct table_column first)
{
    columns[0] = first;
    for (int i = 0; i < report->count; i++)
        columns[i + 1] = (struct table_column){report->parts[i].name, 0, .width = COLUMN};
    printf("\n");
    table_start(table, columns, report->count + 1);
}

/* Mean and deviation are measured of so many. */
int data_value_channels(const struct lk_data_info *info)
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
        const int columns = terminal_width(data_class_name(info, i, text));
        width = columns > width ? columns : width;
    }
    return width > most ? most : width;
}

/* A row below those of the classes. */
static void add_sum(struct table *table, const struct data_report *report, const char *what,
                    int64_t (*count)(const struct data_part *))
{
    table_cell(table, "%s", what);
    for (int i = 0; i < report->count; i++) {
        table_cell(table, "%" PRId64, count(&report->parts[i]));
        table_cell(table, "%s", "");
    }
}

/* Of two parts in one line, of three in a line each. */
static void print_majority(const struct data_report *report)
{
    const char *between = report->count > 2 ? ",\n                " : ", ";
    char line[1024] = "majority class: ";
    for (int i = 0; i < report->count; i++) {
        const struct data_part *part = &report->parts[i];
        const size_t used = strlen(line);
        char text[32];
        const char *end = data_class_name(info_of(report), data_majority(part), text);
        const char *name = end;
        uint32_t code;
        for (int k = 0; k < NAME_MOST / 2 && *end; k++)
            end += character_read(end, &code);
        snprintf(line + used, sizeof line - used, "%s%s %.*s %.2f %%", i ? between : "",
                 part->name, (int)(end - name), name,
                 100 * data_share(part, data_majority(part)));
    }
    print_lines("%s\n", line);
}

/* Counts and percents of each part. */
static void print_classes(const struct data_report *report)
{
    const struct lk_data_info *info = info_of(report);
    struct table_column columns[1 + 2 * DATA_PARTS] = {
        {"class", 0, name_width(report), .is_left = true, .is_name = true}};
    struct table table;
    int64_t unlabelled = 0;
    char text[32];
    for (int i = 0; i < report->count; i++) {
        columns[1 + 2 * i] = (struct table_column){report->parts[i].name, 0, 11, .spans = true};
        columns[2 + 2 * i] = (struct table_column){NULL, 1, 8, .rank = 1};
        unlabelled += unlabelled_of(&report->parts[i]);
    }
    printf("\n");
    table_start(&table, columns, 1 + 2 * report->count);
    for (int class = 0; class < info->classes; class ++) {
        table_cell(&table, "%s", data_class_name(info, class, text));
        for (int i = 0; i < report->count; i++) {
            table_cell(&table, "%" PRId64, report->parts[i].survey->class_counts[class]);
            table_cell(&table, "%.2f %%", 100 * data_share(&report->parts[i], class));
        }
    }
    add_sum(&table, report, "all", labels_of);
    if (unlabelled)
        add_sum(&table, report, "no class", unlabelled_of);
    table_end(&table);
    print_majority(report);
}

/* A row of numbers, left out where all of them are 0. */
static void add_counts(struct table *table, const struct data_report *report, const char *what,
                       int64_t (*count)(const struct lk_survey *, int), int which)
{
    int64_t sum = 0;
    for (int i = 0; i < report->count; i++)
        sum += count(report->parts[i].survey, which);
    if (!sum)
        return;
    table_cell(table, "%s", what);
    for (int i = 0; i < report->count; i++)
        table_cell(table, "%" PRId64, count(report->parts[i].survey, which));
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
    struct table_column columns[TABLE_COLUMNS];
    struct table table;
    start_parts(&table, columns, report,
                (struct table_column){"images", 0, FIRST_COLUMN, .is_left = true});
    for (int f = 0; f < 2; f++)
        add_counts(&table, report, format_names[f], files_of, f);
    for (int c = 1; c <= LK_SURVEY_CHANNELS; c++)
        add_counts(&table, report, data_channel_names[c], channels_of, c);
    add_counts(&table, report, "broken", bad_of, 0);
    for (int s = 0; s < 3; s++) {
        table_cell(&table, "%s", sizes[s]);
        for (int i = 0; i < report->count; i++) {
            const struct lk_survey_size size = size_of(report->parts[i].survey, s);
            table_cell(&table, "%dx%d", size.height, size.width);
        }
    }
    table_end(&table);
}

static void print_values(const struct data_report *report)
{
    static const struct table_column columns[] = {
        {"values 0..255", 0, FIRST_COLUMN, .is_left = true},
        {"mean", 0, .width = 12},
        {"deviation", 0, .width = 12},
        {"mean/255", 0, 15, .rank = 1},
        {"deviation/255", 0, 15, .rank = 1},
    };
    const struct lk_data_info *info = info_of(report);
    struct table table;
    printf("\n");
    table_start(&table, columns, 5);
    for (int i = 0; i < report->count; i++)
        for (int c = 0; c < data_value_channels(info); c++) {
            const struct lk_survey *s = report->parts[i].survey;
            table_cell(&table, "%s, %s", report->parts[i].name, value_name(info, c));
            table_cell(&table, "%.3f", s->mean[c]);
            table_cell(&table, "%.3f", s->deviation[c]);
            table_cell(&table, "%.6f", s->mean[c] / 255);
            table_cell(&table, "%.6f", s->deviation[c] / 255);
        }
    table_end(&table);
}

/* What the pipeline's normalize makes of them, in the order in which the model gets them. */
static void print_normalized(const struct data_report *report)
{
    static const struct table_column columns[] = {
        {"normalized", 0, FIRST_COLUMN, .is_left = true},
        {"0 becomes", 0, .width = 12},
        {"255 becomes", 0, .width = 12},
        {"mean", 0, .width = 15},
        {"deviation", 0, 15, .rank = 1},
    };
    const struct lk_normalization *n = &report->normalization;
    const struct lk_survey *s = report->parts[0].survey;
    const int count = data_value_channels(info_of(report));
    struct table table;
    printf("\n");
    table_start(&table, columns, 5);
    for (int c = 0; c < count; c++) {
        const int from = n->is_reversed ? count - 1 - c : c;
        table_cell(&table, "%s, %s", report->parts[0].name, value_name(info_of(report), from));
        table_cell(&table, "%.4f", n->shift[c]);
        table_cell(&table, "%.4f", 255 * n->scale[c] + n->shift[c]);
        table_cell(&table, "%.4f", s->mean[from] * n->scale[c] + n->shift[c]);
        table_cell(&table, "%.4f", s->deviation[from] * n->scale[c]);
    }
    table_end(&table);
}

/* "numbers[3]"; "numbers": all of the field. */
void data_numbers_name(const struct lk_data_info *info, const struct lk_survey_numbers *numbers,
                       char name[192])
{
    const struct lk_field *field = &info->fields[numbers->field];
    if (numbers->element >= 0 && field->element_names)
        snprintf(name, 192, "%s", field->element_names[numbers->element]);
    else if (numbers->element < 0 || field->shape.rank == 0)
        snprintf(name, 192, "%s", field->name);
    else
        snprintf(name, 192, "%s[%" PRId64 "]", field->name, numbers->element);
}

/* Room for the longest of their names. */
static int numbers_width(const struct data_report *report)
{
    int width = FIRST_COLUMN;
    for (int i = 0; i < report->count; i++)
        for (int k = 0; k < report->parts[i].survey->number_count; k++) {
            char name[192];
            data_numbers_name(info_of(report), &report->parts[i].survey->numbers[k], name);
            const int found = terminal_width(report->parts[i].name) + 2 + terminal_width(name);
            width = found > width ? found : width;
        }
    return width;
}

static void print_numbers(const struct data_report *report)
{
    const struct table_column columns[] = {
        {"numbers", 0, numbers_width(report), .is_left = true, .is_name = true},
        {"count", 1, 9, .rank = 1},
        {"mean", 1, .width = 11},
        {"deviation", 1, .width = 11},
        {"smallest", 1, 11, .rank = 2},
        {"largest", 1, 11, .rank = 2},
    };
    const struct lk_data_info *info = info_of(report);
    struct table table;
    printf("\n");
    table_start(&table, columns, 6);
    for (int i = 0; i < report->count; i++)
        for (int k = 0; k < report->parts[i].survey->number_count; k++) {
            const struct lk_survey_numbers *n = &report->parts[i].survey->numbers[k];
            char name[192];
            data_numbers_name(info, n, name);
            table_cell(&table, "%s, %s", report->parts[i].name, name);
            table_cell(&table, "%" PRId64, n->count);
            table_cell(&table, "%.6g", n->mean);
            table_cell(&table, "%.6g", n->deviation);
            table_cell(&table, "%.6g", n->smallest);
            table_cell(&table, "%.6g", n->largest);
        }
    table_end(&table);
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
        snprintf(name, 64, "%s, 1 thread", data_stage_names[row - 1]);
    else
        snprintf(name, 64, "batches, %d thread%s", part->batch_threads,
                 part->batch_threads == 1 ? "" : "s");
}

static void print_rates(const struct data_report *report)
{
    struct table_column columns[TABLE_COLUMNS];
    struct table table;
    start_parts(&table, columns, report,
                (struct table_column){"samples/s", 0, FIRST_COLUMN, .is_left = true});
    for (int row = 0; row < LK_SURVEY_STAGES + 2; row++) {
        char name[64], rate[32];
        double sum = 0;
        for (int i = 0; i < report->count; i++)
            sum += rate_of(&report->parts[i], row);
        if (sum == 0)
            continue;
        row_name(&report->parts[0], row, name);
        table_cell(&table, "%s", name);
        for (int i = 0; i < report->count; i++)
            table_cell(&table, "%s", rate_text(rate_of(&report->parts[i], row), rate));
    }
    table_end(&table);
}

static void print_notes(const struct data_part *part, const struct lk_survey_notes *notes,
                        const char *what, int64_t most)
{
    if (!notes->count)
        return;
    printf("\n%s: %s, %" PRId64 " of %" PRId64 "\n", what, part->name, notes->count,
           part->survey->samples);
    for (int64_t i = 0; i < notes->count && i < most; i++) {
        print_lines("%7" PRId64 "  %s\n", notes->items[i].index, notes->items[i].text);
    }
    if (notes->count > most)
        print_lines("  and %" PRId64 " more, which --json names\n", notes->count - most);
}

const char *data_dtype_name(enum lk_dtype dtype)
{
    return dtype == LK_U8 ? "u8" : dtype == LK_I32 ? "i32" : "f32";
}

/* "numbers f32 [4], label i32 []" */
static void fields_text(const struct lk_data_info *info, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < info->field_count && used < bytes; i++) {
        const struct lk_field *field = &info->fields[i];
        used += (size_t)snprintf(text + used, bytes - used, "%s%s %s [", i ? ", " : "",
                                 field->name, data_dtype_name(field->dtype));
        for (int k = 0; k < field->shape.rank && used < bytes; k++)
            used += (size_t)snprintf(text + used, bytes - used, "%s%" PRId64, k ? ", " : "",
                                     field->shape.dim[k]);
        if (used < bytes)
            used += (size_t)snprintf(text + used, bytes - used, "]");
    }
}

static void print_head(const struct data_report *report)
{
    const struct lk_data_info *info = info_of(report);
    char text[4096];
    size_t used = 0;
    if (info->channels > 0)
        snprintf(text, sizeof text, "%dx%dx%d", info->height, info->width, info->channels);
    else
        fields_text(info, text, sizeof text);
    print_lines("%s: %d classes, samples of %s\n", info->name, info->classes, text);
    for (int i = 0; i < report->count && used < sizeof text; i++) {
        const struct data_part *part = &report->parts[i];
        const int64_t count = lk_data_info(part->data)->count;
        if (part->survey->samples < count)
            used += (size_t)snprintf(text + used, sizeof text - used,
                                     "%s%" PRId64 " of %" PRId64 " %s", used ? ", " : "",
                                     part->survey->samples, count, part->name);
    }
    if (used)
        print_lines("looked at %s\n", text);
}

/* Whether what is to be predicted are tokens, of which a table would be long. */
static bool are_tokens(const struct lk_data_info *info)
{
    const int next = lk_field_find(info->fields, info->field_count, "next");
    return next >= 0 && info->fields[next].role == LK_FIELD_LABEL &&
           info->fields[next].shape.rank == 1;
}

void data_print(const struct data_report *report)
{
    const struct lk_data_info *info = info_of(report);
    const bool has_image = info->channels > 0;
    print_head(report);
    if (info->classes > 0 && !are_tokens(info))
        print_classes(report);
    data_print_texts(report);
    if (has_image)
        print_files(report);
    if (has_image)
        print_values(report);
    if (has_image && report->normalization.normalizes)
        print_normalized(report);
    if (report->parts[0].survey->number_count > 0)
        print_numbers(report);
    print_rates(report);
    for (int i = 0; i < report->count; i++) {
        const struct data_part *part = &report->parts[i];
        print_notes(part, &part->survey->bad, "broken", MOST_SHOWN);
        print_notes(part, &part->survey->misnamed, "named as another format", MOST_MISNAMED);
    }
}
