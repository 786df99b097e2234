/* Evaluations of runs: how often each class was taken for which, and the figures of classes. */
#include "report/report.h"

#include "command.h"
#include "figures.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_CELLS = 32, MOST_PAIRS = 20, MOST_CLASSES = 200 };

/* Samples of class `truth` that were taken for another one. */
struct confusion {
    int truth, taken;
    int64_t count;
};

/* The most first. */
static int compare(const void *left, const void *right)
{
    const struct confusion *a = left, *b = right;
    if (a->count != b->count)
        return a->count < b->count ? 1 : -1;
    return a->truth != b->truth ? a->truth - b->truth : a->taken - b->taken;
}

static const char *share_text(double share, char text[32])
{
    snprintf(text, 32, "%.2f %%", 100 * share);
    return text;
}

/* Puts it in its place of a list in order, which keeps the first MOST_PAIRS. */
static void keep(struct confusion *list, int *count, struct confusion new)
{
    int at = *count;
    if (at < MOST_PAIRS)
        list[(*count)++] = new;
    else if (compare(&new, &list[at = MOST_PAIRS - 1]) < 0)
        list[at] = new;
    else
        return;
    for (; at > 0 && compare(&list[at], &list[at - 1]) < 0; at--) {
        const struct confusion before = list[at - 1];
        list[at - 1] = list[at];
        list[at] = before;
    }
}

static void add_pairs(struct page *page, const struct lk_evaluation *e)
{
    static const char *const columns[] = {"class", "taken for", "samples", "of the class",
                                          NULL};
    struct confusion list[MOST_PAIRS];
    int count = 0;
    for (int i = 0; i < e->classes; i++)
        for (int j = 0; j < e->classes; j++)
            if (i != j && e->confusion[(int64_t)i * e->classes + j] > 0)
                keep(list, &count,
                     (struct confusion){i, j, e->confusion[(int64_t)i * e->classes + j]});
    if (count == 0)
        return;
    page_table_begin(page, "What was taken for what, the most frequent first", columns, 2);
    for (int i = 0; i < count; i++) {
        const struct class_figures truth = class_figures_of(e, list[i].truth);
        const struct class_figures taken = class_figures_of(e, list[i].taken);
        char number[32], share[32];
        snprintf(number, sizeof number, "%" PRId64, list[i].count);
        page_table_row(
            page,
            (const char *[]){truth.name, taken.name, number,
                             share_text((double)list[i].count / (double)truth.count, share)});
    }
    page_table_end(page);
}

static void add_matrix(struct page *page, const struct lk_evaluation *e)
{
    struct class_figures figures[MOST_CELLS];
    const char *names[MOST_CELLS];
    if (e->classes > MOST_CELLS)
        return;
    for (int i = 0; i < e->classes; i++) {
        figures[i] = class_figures_of(e, i);
        names[i] = figures[i].name;
    }
    page_matrix(page, "Rows: the class; columns: what it was taken for", names, e->confusion,
                e->classes);
}

static void add_classes(struct page *page, const struct lk_evaluation *e)
{
    static const char *const columns[] = {"class", "samples", "precision", "recall", NULL};
    page_table_begin(page, "Classes", columns, 1);
    for (int i = 0; i < e->classes && i < MOST_CLASSES; i++) {
        const struct class_figures f = class_figures_of(e, i);
        char samples[32], precision[32], recall[32];
        snprintf(samples, sizeof samples, "%" PRId64, f.count);
        page_table_row(page,
                       (const char *[]){f.name, samples, share_text(f.precision, precision),
                                        share_text(f.recall, recall)});
    }
    page_table_end(page);
    if (e->classes > MOST_CLASSES)
        page_paragraph(page, "Of %d classes the first %d are listed.", e->classes,
                       (int)MOST_CLASSES);
}

static void add_evaluation(struct page *page, const struct lk_evaluation *e)
{
    char text[512];
    for (int i = 0; i < e->output_count; i++) {
        if (!e->outputs[i].loss_name)
            continue;
        output_text(&e->outputs[i], text, sizeof text);
        page_paragraph(page, "%s%s%" PRId64 " samples: %s",
                       e->output_count > 1 ? e->outputs[i].name : "",
                       e->output_count > 1 ? ", " : "", e->samples, text);
    }
    if (!e->confusion)
        return;
    add_matrix(page, e);
    page_columns_begin(page);
    add_classes(page, e);
    add_pairs(page, e);
    page_columns_end(page);
}

int report_classes(struct page *page, const struct report *report, const char *device,
                   int64_t batch)
{
    int result = DONE;
    page_heading(page, 2, "Evaluation");
    for (int i = 0; i < report->count; i++) {
        const char *path = report->runs[i].record.path;
        struct lk_predictor *predictor = NULL;
        struct lk_evaluation evaluation;
        enum lk_status made = lk_predictor_open(path, device, batch, &predictor);
        if (made == LK_OK)
            made = lk_predictor_evaluate(predictor, NULL, &evaluation);
        page_heading(page, 3, path);
        if (made == LK_OK) {
            add_evaluation(page, &evaluation);
            report_worst(page, predictor, &evaluation);
        } else {
            page_paragraph(page, "It cannot be evaluated: %s", lk_error_text());
            result = failed(made);
            lk_error_clear();
        }
        lk_predictor_close(predictor);
    }
    return result;
}
