/* Options of sources of columns, and labels that are classes or numbers. */
#include "data/tables/table.h"

#include "base/fail.h"
#include "base/number.h"
#include "data/sources/source.h"

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const char *const label_types[] = {"auto", "class", "number", NULL};

#define TEXT(field)                                                                            \
    .name = #field, .kind = LK_OPTION_TEXT,                                                    \
    .offset = offsetof(struct lk_table_options, field),                                        \
    .count = sizeof((struct lk_table_options *)0)->field, .standard = ""
#define LABEL_TYPE                                                                             \
    .name = "label_type", .kind = LK_OPTION_CHOICE,                                            \
    .offset = offsetof(struct lk_table_options, label_type), .standard = "auto",               \
    .choices = label_types

const struct lk_option lk_csv_field_options[] = {
    {TEXT(fields), .help = "columns of numbers: a,b or NAME:a+b; * is all but the labels"},
    {TEXT(label), .help = "the column of the label"},
    {LABEL_TYPE, .help = "what labels are: classes, or numbers"},
    {TEXT(classes), .help = "a file of names, one a line in the order of labels"},
    {TEXT(max_bad), .help = "lines that may be broken"},
    {.name = "text",
     .kind = LK_OPTION_TEXT,
     .offset = offsetof(struct lk_table_options, texts),
     .count = sizeof((struct lk_table_options *)0)->texts,
     .standard = "",
     .help = "columns of texts, which become tokens: a or NAME:a,OTHER:b"},
    LK_TEXT_ROWS(lk_table_options),
    {0},
};

const struct lk_option lk_tfrecord_field_options[] = {
    {TEXT(fields), .help = "keys of numbers: a,b or NAME:a+b"},
    {TEXT(label), .help = "the key of the label"},
    {LABEL_TYPE, .help = "what labels are: classes, or numbers"},
    {TEXT(classes), .help = "a file of names, one a line in the order of labels"},
    {TEXT(max_bad), .help = "records that may be broken"},
    {TEXT(part), .help = "of a folder the files to read: train, val"},
    {.name = "offset",
     .kind = LK_OPTION_INT,
     .offset = offsetof(struct lk_table_options, offset),
     .count = 1,
     .min = -1e6,
     .max = 1e6,
     .standard = "0",
     .help = "added to the labels: -1 where they count from 1"},
    {0},
};

bool lk_table_number(const char *text, double *number)
{
    char *end;
    *number = lk_number_read(text, &end);
    return end != text && !end[strspn(end, " \t")] && fabs(*number) <= FLT_MAX;
}

bool lk_table_is_class(double number)
{
    return number >= 0 && number < LK_MOST_CLASSES && number == floor(number);
}

void lk_labels_see_number(struct lk_labels *labels, double number)
{
    if (!lk_table_is_class(number))
        labels->has_fractions = true;
    else if (number > (double)labels->most)
        labels->most = (int64_t)number;
}

void lk_labels_see(struct lk_labels *labels, const char *word)
{
    double number;
    if (lk_table_number(word, &number))
        lk_labels_see_number(labels, number);
    else
        labels->has_words = true;
}

enum lk_status lk_labels_decide(struct lk_labels *labels, enum lk_label_type wanted,
                                const char *classes)
{
    const bool is_fit = !labels->has_words && !labels->has_fractions;
    if (wanted == LK_LABEL_NUMBER && *classes)
        return lk_fail(LK_E_ARGUMENT, "option 'classes' is for labels that are classes");
    labels->has_given = *classes;
    if (*classes) {
        labels->kind = is_fit ? LK_LABELS_COUNTED : LK_LABELS_NAMED;
        return lk_class_words_read(&labels->words, classes);
    }
    if (wanted == LK_LABEL_NUMBER ||
        (wanted == LK_LABEL_AUTO && labels->has_fractions && !labels->has_words))
        labels->kind = LK_LABELS_NUMBERS;
    else
        labels->kind = is_fit ? LK_LABELS_COUNTED : LK_LABELS_NAMED;
    return LK_OK;
}

enum lk_status lk_labels_find_number(const struct lk_labels *labels, int64_t number,
                                     int32_t *label)
{
    const int64_t classes = lk_labels_classes(labels);
    if (number < 0 || number >= classes)
        return lk_fail(LK_E_DATA, "label %lld is not in 0..%lld", (long long)number,
                       (long long)classes - 1);
    *label = (int32_t)number;
    return LK_OK;
}

enum lk_status lk_labels_find(const struct lk_labels *labels, const char *word, int32_t *label)
{
    double number;
    const int named = lk_class_words_find(&labels->words, word);
    *label = named;
    if (named >= 0)
        return LK_OK;
    if (labels->kind == LK_LABELS_COUNTED && lk_table_number(word, &number) &&
        lk_table_is_class(number))
        return lk_labels_find_number(labels, (int64_t)number, label);
    return lk_fail(LK_E_DATA, "label '%.100s' is none of the classes", word);
}

int64_t lk_labels_classes(const struct lk_labels *labels)
{
    if (labels->kind == LK_LABELS_NUMBERS)
        return 0;
    return labels->words.names.count > 0 ? labels->words.names.count : labels->most + 1;
}

void lk_labels_clear(struct lk_labels *labels)
{
    lk_class_words_clear(&labels->words);
}

enum lk_status lk_table_add_fault(struct lk_names *faults, const char *path, int64_t line,
                                  const char *why, int64_t *entry)
{
    enum { MOST_NAMED = 1000 };
    char text[LK_SOURCE_PATH + 600];
    snprintf(text, sizeof text, "'%s', line %lld: %.500s", path, (long long)line, why);
    if (faults->count < MOST_NAMED)
        LK_TRY(lk_names_add(faults, text));
    *entry = -faults->count;
    return LK_OK;
}
