/* lockstep runs: a table of run directories: what was trained on what, how well and how far. */
#include "command.h"
#include "figures.h"
#include "report/record.h"
#include "terminal/json.h"
#include "terminal/table.h"
#include "terminal/terminal.h"
#include "train/progress.h"
#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_DEPTH = 8 };

struct runs {
    struct record *list;
    int count, room;
    const char *filter; /* a text that one of a run's has; NULL: all are listed */
};

/* --- finding ---------------------------------------------------------------------------- */

static bool is_wanted(const struct record *run, const char *filter)
{
    return !filter || strstr(run->path, filter) || strstr(run->model, filter) ||
           strstr(run->data, filter) || strstr(run->state, filter);
}

static int add(struct runs *runs, const char *path)
{
    if (runs->count == runs->room) {
        const int room = 2 * runs->room + 16;
        struct record *longer = realloc(runs->list, (size_t)room * sizeof *longer);
        if (!longer)
            return failed(LK_E_MEMORY);
        runs->list = longer;
        runs->room = room;
    }
    struct record *run = &runs->list[runs->count];
    record_read(run, path, NULL);
    runs->count += is_wanted(run, runs->filter);
    return DONE;
}

/* Adds the folder if it is a run, else those below it. */
static int find(struct runs *runs, const char *path, int depth)
{
    char inner[RECORD_PATH];
    int result = DONE;
    struct stat about;
    if (snprintf(inner, sizeof inner, "%s/config.yaml", path) >= RECORD_PATH)
        return DONE;
    if (access(inner, R_OK) == 0)
        return add(runs, path);
    DIR *folder = depth < MOST_DEPTH ? opendir(path) : NULL;
    for (struct dirent *entry; folder && result == DONE && (entry = readdir(folder));) {
        if (entry->d_name[0] == '.' ||
            snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name) >= RECORD_PATH)
            continue;
        if (lstat(inner, &about) == 0 && S_ISDIR(about.st_mode))
            result = find(runs, inner, depth + 1);
    }
    if (folder)
        closedir(folder);
    return result;
}

/* --- showing ---------------------------------------------------------------------------- */

static const char *const sorts[] = {"run",   "model", "data",  "best",
                                    "steps", "time",  "state", NULL};

/* Accuracies before losses; the best, the longest first. */
static int compare_best(const struct record *a, const struct record *b)
{
    const bool has_a = a->metric && *a->metric == 'a', has_b = b->metric && *b->metric == 'a';
    if (!a->metric || !b->metric)
        return !a->metric - !b->metric;
    if (has_a != has_b)
        return has_b - has_a;
    return has_a ? (a->best < b->best) - (a->best > b->best)
                 : (a->best > b->best) - (a->best < b->best);
}

static int compare_path(const void *a, const void *b)
{
    return strcmp(((const struct record *)a)->path, ((const struct record *)b)->path);
}

static const char *sort_key; /* of compare(): qsort() passes nothing through */

static int compare(const void *left, const void *right)
{
    const struct record *a = left, *b = right;
    int order = 0;
    if (strcmp(sort_key, "model") == 0)
        order = strcmp(a->model, b->model);
    else if (strcmp(sort_key, "data") == 0)
        order = strcmp(a->data, b->data);
    else if (strcmp(sort_key, "best") == 0)
        order = compare_best(a, b);
    else if (strcmp(sort_key, "steps") == 0)
        order = (a->step < b->step) - (a->step > b->step);
    else if (strcmp(sort_key, "time") == 0)
        order = (a->seconds < b->seconds) - (a->seconds > b->seconds);
    else if (strcmp(sort_key, "state") == 0)
        order = strcmp(a->state, b->state);
    return order ? order : compare_path(a, b);
}

static const struct table_column columns[] = {
    {"run", 0, 24, .is_left = true, .is_name = true, .is_whole = true},
    {"model", 2, 16, .is_left = true, .is_name = true, .is_whole = true, .rank = 1},
    {"data", 2, 24, .is_left = true, .is_name = true, .is_whole = true, .rank = 3},
    {"best", 2, 17, .is_left = true},
    {"steps", 2, .width = 9},
    {"time", 2, .width = 9, .rank = 2},
    {"state", 2, 0, .is_left = true},
};

static void print(const struct runs *runs)
{
    struct table table;
    char time[32], figure[32];
    table_start(&table, columns, (int)(sizeof columns / sizeof *columns));
    for (int i = 0; i < runs->count; i++) {
        const struct record *run = &runs->list[i];
        table_cell(&table, "%s", run->path);
        table_cell(&table, "%s", run->model);
        table_cell(&table, "%s", run->data);
        if (!run->metric)
            table_cell(&table, "-");
        else if (*run->metric == 'a')
            table_cell(&table, "accuracy %s", percent_text(run->best, 2, figure));
        else
            table_cell(&table, "loss %s", loss_text(run->best, figure));
        table_cell(&table, "%" PRId64, run->step);
        table_cell(&table, "%s", duration_text(run->seconds, time));
        table_cell(&table, "%s", run->state);
    }
    table_end(&table);
}

static json_t *run_json(const struct record *run)
{
    return json_pack("{s:o, s:o, s:o, s:s?, s:o, s:I, s:I, s:o, s:s}", "run",
                     json_text(run->path), "model", json_text(run->model), "data",
                     json_text(run->data), "metric", run->metric, "best",
                     json_number(run->metric ? run->best : NAN), "best_step",
                     (json_int_t)run->best_step, "steps", (json_int_t)run->step, "seconds",
                     json_number(run->seconds), "state", run->state);
}

static int show(const struct arguments *arguments, const struct runs *runs)
{
    json_t *list = json_array();
    if (!option_given(arguments, "json")) {
        json_decref(list);
        print(runs);
        return DONE;
    }
    for (int i = 0; i < runs->count; i++)
        json_array_append_new(list, run_json(&runs->list[i]));
    return json_print(json_pack("{s:o}", "runs", list), JSON_INDENT(2));
}

static int run(const struct arguments *arguments)
{
    const char *sort = option_text(arguments, "sort");
    struct runs runs = {.filter = option_text(arguments, "filter")};
    struct stat about;
    int result = DONE;
    for (int i = 0; sort && sorts[i] && strcmp(sort, sorts[i]) != 0; i++)
        if (!sorts[i + 1])
            return wrong_usage(arguments->command,
                               "option '--sort' needs run, model, data, best, steps, time or "
                               "state, found '%s'",
                               sort);
    for (int i = 0; i < arguments->word_count || (i == 0 && !arguments->word_count); i++) {
        const char *path = arguments->word_count ? arguments->words[i] : ".";
        if (stat(path, &about) != 0 || !S_ISDIR(about.st_mode)) {
            say("'%s' is no folder", path);
            result = BAD_INPUT;
        } else if (result == DONE) {
            result = find(&runs, path, 0);
        }
    }
    sort_key = sort ? sort : "run";
    if (runs.count > 0)
        qsort(runs.list, (size_t)runs.count, sizeof *runs.list, compare);
    if (result == DONE)
        result = show(arguments, &runs);
    free(runs.list);
    return result;
}

static const struct option options[] = {
    {"sort", "run|model|data|best|steps|time|state", "by which column; run (the path)"},
    {"filter", "TEXT", "only runs of which path, model, data or state have this text"},
    {"json", NULL, "print JSON"},
    {0},
};

static const struct example examples[] = {
    {"lockstep runs", "all runs below this folder"},
    {"lockstep runs trials --sort best --filter resnet", "which of them is the best?"},
    {0},
};

const struct command runs_command = {
    .name = "runs",
    .usage = "[DIR...] [options]",
    .help = "list runs: model, data, best result, steps, time, state",
    .options = options,
    .examples = examples,
    .run = run,
};
