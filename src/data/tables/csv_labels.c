/* The labels of csv files: which are classes, and what these are called. */
#include "data/tables/csv.h"

#include "base/fail.h"
#include <stdio.h>

/* Whether label i is of one column: what it means then follows from the values in lines that
 * have all columns. */
static bool is_single_label(const struct lk_csv *csv, int i)
{
    return csv->groups.items[i].role == LK_FIELD_LABEL && csv->origins[i].count == 1;
}

static enum lk_status see_labels(struct lk_csv *csv, int64_t line, int cells)
{
    (void)line;
    for (int i = 0; i < csv->groups.count && cells == csv->header.count; i++) {
        const char *cell = csv->cells[csv->columns[csv->origins[i].first]];
        if (is_single_label(csv, i) && *cell)
            lk_labels_see(&csv->origins[i].labels, cell);
    }
    return LK_OK;
}

void lk_csv_check_inputs(const struct lk_csv *csv, int cells, char why[512])
{
    double number;
    *why = '\0';
    if (cells < 0)
        snprintf(why, 512, "a quote that does not end");
    else if (cells != csv->header.count)
        snprintf(why, 512, "%s%d columns, %d are expected",
                 cells > csv->header.count ? "more than " : "",
                 cells > csv->header.count ? csv->header.count : cells, csv->header.count);
    for (int i = 0; i < csv->groups.count && !*why; i++) {
        const struct lk_csv_origin *origin = &csv->origins[i];
        for (int k = 0; k < origin->count && !*why; k++) {
            const int column = csv->columns[origin->first + k];
            const char *cell = csv->cells[column];
            const bool is_number =
                origin->is_class || origin->text >= 0 || lk_table_number(cell, &number);
            if (!*cell || !is_number)
                snprintf(why, 512, "column '%.200s': %s%.100s%s", csv->header.items[column],
                         *cell ? "'" : "", *cell ? cell : "there is nothing",
                         *cell ? "' is no number" : "");
        }
    }
}

static enum lk_status collect_words(struct lk_csv *csv, int64_t line, int cells)
{
    char why[512];
    lk_csv_check_inputs(csv, cells, why);
    for (int i = 0; i < csv->groups.count && !*why; i++) {
        struct lk_labels *labels = &csv->origins[i].labels;
        if (!csv->origins[i].is_class || labels->kind != LK_LABELS_NAMED || labels->has_given)
            continue;
        const enum lk_status status =
            lk_class_words_add(&labels->words, csv->cells[csv->columns[csv->origins[i].first]]);
        if (status != LK_OK)
            return lk_fail_within(status, "'%s', line %lld", csv->path, (long long)line);
    }
    return LK_OK;
}

enum lk_status lk_csv_find_labels(struct lk_csv *csv)
{
    const struct lk_table_options *o = &csv->options;
    for (int i = 0; i < csv->groups.count; i++)
        csv->origins[i].labels = (struct lk_labels){.most = -1};
    LK_TRY(lk_csv_see_rows(csv, see_labels));
    bool collects = false;
    for (int i = 0; i < csv->groups.count; i++) {
        struct lk_csv_origin *origin = &csv->origins[i];
        if (csv->groups.items[i].role == LK_FIELD_LABEL && origin->count > 1 &&
            o->label_type == LK_LABEL_CLASS)
            return lk_fail(LK_E_ARGUMENT, "csv: a label of %d columns is numbers, no class",
                           origin->count);
        if (!is_single_label(csv, i))
            continue;
        LK_TRY(
            lk_labels_decide(&origin->labels, (enum lk_label_type)o->label_type, o->classes));
        origin->is_class = origin->labels.kind != LK_LABELS_NUMBERS;
        collects =
            collects || (origin->labels.kind == LK_LABELS_NAMED && !origin->labels.has_given);
    }
    if (!collects)
        return LK_OK;
    LK_TRY(lk_csv_see_rows(csv, collect_words));
    for (int i = 0; i < csv->groups.count; i++)
        if (!csv->origins[i].labels.has_given)
            lk_class_words_sort(&csv->origins[i].labels.words);
    return LK_OK;
}
