/* lockstep report: run directories as one page: curves, speed, devices, classes, settings. */
#include "report/report.h"

#include "command.h"
#include "terminal/terminal.h"
#include "train/progress.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { STANDARD_BATCH = 512 };

static const char *best_text(const struct record *record, char text[64])
{
    if (!record->metric)
        snprintf(text, 64, "-");
    else if (*record->metric == 'a')
        snprintf(text, 64, "accuracy %.2f %%", 100 * record->best);
    else
        snprintf(text, 64, "loss %.4f", record->best);
    return text;
}

static void add_summary(struct page *page, const struct report *report)
{
    static const char *const columns[] = {
        "run", "best validation", "state", "model", "data", "at step", "steps", "time", NULL};
    page_table_begin(page, report->count == 1 ? "The run" : "The runs", columns, 5);
    for (int i = 0; i < report->count; i++) {
        const struct record *r = &report->runs[i].record;
        char best[64], at[32] = "-", steps[32], time[32];
        if (r->metric)
            snprintf(at, sizeof at, "%" PRId64, r->best_step);
        snprintf(steps, sizeof steps, "%" PRId64, r->step);
        page_table_row(page,
                       (const char *[]){r->path, best_text(r, best), r->state, r->model,
                                        r->data, at, steps, duration_text(r->seconds, time)});
    }
    page_table_end(page);
}

static void add_remarks(struct page *page, const struct report *report)
{
    for (int i = 0; i < report->count; i++) {
        const struct run *run = &report->runs[i];
        if (!run->has_metrics)
            page_paragraph(page, "%s has no metrics.jsonl: nothing is known of its steps.",
                           run->record.path);
        if (run->record.damaged > 0)
            page_paragraph(page,
                           "%" PRId64 " %s of metrics.jsonl of %s cannot be read: being "
                           "written, or cut.",
                           run->record.damaged, run->record.damaged == 1 ? "line" : "lines",
                           run->record.path);
    }
}

static int write_page(const struct arguments *arguments, const struct report *report)
{
    const char *path = option_text(arguments, "output");
    int64_t batch = STANDARD_BATCH;
    int result = option_number(arguments, "batch-size", 1, 1 << 24, &batch);
    if (result != DONE)
        return result;
    struct page page = {0};
    char title[RECORD_PATH + 32];
    if (report->count == 1)
        snprintf(title, sizeof title, "Lockstep: %s", report->runs[0].record.path);
    else
        snprintf(title, sizeof title, "Lockstep: %d runs", report->count);
    page_begin(&page, title);
    add_summary(&page, report);
    add_remarks(&page, report);
    report_curves(&page, report);
    report_speed(&page, report);
    report_devices(&page, report);
    if (option_given(arguments, "eval"))
        result = report_classes(&page, report, option_text(arguments, "device"), batch);
    report_facts(&page, report);
    const enum lk_status written = page_write(&page, path ? path : "report.html");
    return written == LK_OK ? result : failed(written);
}

static int run(const struct arguments *arguments)
{
    struct report report = {0};
    int result = DONE;
    if (arguments->word_count < 1 || arguments->word_count > MOST_RUNS)
        return wrong_usage(arguments->command, "needs 1 to %d RUN directories, found %d words",
                           (int)MOST_RUNS, arguments->word_count);
    report.runs = calloc((size_t)arguments->word_count, sizeof *report.runs);
    if (!report.runs)
        return failed(LK_E_MEMORY);
    for (; result == DONE && report.count < arguments->word_count; report.count++)
        result = run_read(&report.runs[report.count], arguments->words[report.count]);
    if (result == DONE)
        result = write_page(arguments, &report);
    for (int i = 0; i < report.count; i++)
        run_clear(&report.runs[i]);
    free(report.runs);
    return result;
}

static const struct option options[] = {
    {"output", "FILE", "where the page is written; default: report.html"},
    {"eval", NULL, "evaluate each run on what it was validated with: confusions, classes"},
    {"device", "LIST", "with --eval: device to use; 'lockstep devices' lists them"},
    {"batch-size", "N", "with --eval: samples at a time (default 512)"},
    {0},
};

static const struct example examples[] = {
    {"lockstep report out", "all of a run in report.html"},
    {"lockstep report out --eval", "with the confusion matrix of the validation data"},
    {"lockstep report trials/a trials/b -o trials.html", "two runs laid over each other"},
    {0},
};

const struct command report_command = {
    .name = "report",
    .usage = "RUN... [options]",
    .help = "write a page of HTML: curves, speed, devices' time, what differs between runs",
    .options = options,
    .examples = examples,
    .run = run,
};
