/* What is known of the trials of a sweep: read from and written to the sweep's folder. */
#include "sweep/trials.h"

#include "command.h"
#include "report/record.h"
#include "terminal/json.h"
#include "terminal/terminal.h"
#include <errno.h>
#include <lockstep/file.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_BYTES = 1 << 24 };

void trial_path(const struct trials *trials, int trial, char path[TRIAL_PATH + 24])
{
    snprintf(path, TRIAL_PATH + 24, "%s/trial-%04d", trials->folder, trial + 1);
}

/* --- the metric --------------------------------------------------------------------------- */

struct search {
    const char *name;
    bool highest_is_best;
    double best;
    bool has_evaluation, has_name; /* some was read; one has the figure, whatever it is */
};

static void take_figure(struct search *search, const json_t *figure)
{
    const double value = json_is_number(figure) ? json_number_value(figure) : NAN;
    if (isfinite(value) &&
        (isnan(search->best) ||
         (search->highest_is_best ? value > search->best : value < search->best)))
        search->best = value;
}

/* Of an evaluation: its loss and accuracy, or a metric of the first output that has it. */
static void take_line(void *context, const char *event, const json_t *line)
{
    struct search *search = context;
    const json_t *found = json_object_get(line, search->name);
    const char *output;
    json_t *value;
    if (strcmp(event, "eval") != 0)
        return;
    json_object_foreach(json_object_get(line, "outputs"), output, value)
    {
        if (!found)
            found = json_object_get(json_object_get(value, "metrics"), search->name);
    }
    if (!found)
        found = json_object_get(json_object_get(line, "figures"), search->name);
    search->has_evaluation = true;
    search->has_name |= found != NULL;
    take_figure(search, found);
}

double trial_value(const struct trials *trials, int trial, bool *is_known)
{
    char path[TRIAL_PATH + 24];
    struct record *record = malloc(sizeof *record);
    struct search search = {.name = trials->plan->metric + strlen("val_"),
                            .highest_is_best = trials->plan->highest_is_best,
                            .best = NAN};
    trial_path(trials, trial, path);
    if (record)
        record_read(record, path, &(struct record_reader){&search, take_line});
    free(record);
    *is_known = search.has_name || !search.has_evaluation;
    return search.best;
}

static int add_line(const char *path, const char *line)
{
    FILE *file = fopen(path, "a");
    bool is_written = file && fputs(line, file) >= 0;
    if (file)
        is_written = fclose(file) == 0 && is_written;
    if (!is_written)
        say("cannot write '%s': %s", path, strerror(errno));
    return is_written ? DONE : BAD_INPUT;
}

int trial_tell_dropped(const struct trials *trials, int trial)
{
    char path[TRIAL_PATH + 24], file[TRIAL_PATH + 40];
    struct record *record = malloc(sizeof *record);
    if (!record)
        return failed(LK_E_MEMORY);
    trial_path(trials, trial, path);
    record_read(record, path, NULL);
    const bool is_told = strcmp(record->state, RECORD_DROPPED) == 0;
    free(record);
    snprintf(file, sizeof file, "%s/metrics.jsonl", path);
    return is_told ? DONE : add_line(file, "{\"event\": \"dropped\"}\n");
}

/* --- the order ---------------------------------------------------------------------------- */

bool trial_is_better(const struct trials *trials, int a, int b, int rung)
{
    const struct trial *one = &trials->list[a], *other = &trials->list[b];
    const double x = one->done > rung ? one->value[rung] : NAN;
    const double y = other->done > rung ? other->value[rung] : NAN;
    if (isnan(x) != isnan(y))
        return isnan(y);
    if (isnan(x) || x == y)
        return a < b;
    return trials->plan->highest_is_best ? x > y : x < y;
}

static bool comes_before(const struct trials *trials, int a, int b)
{
    const int rungs = trials->list[a].done, others = trials->list[b].done;
    if (rungs != others)
        return rungs > others;
    return rungs > 0 ? trial_is_better(trials, a, b, rungs - 1) : a < b;
}

void trials_sort(const struct trials *trials, int *order)
{
    for (int i = 0; i < trials->plan->trials; i++) {
        int at = i;
        for (; at > 0 && comes_before(trials, i, order[at - 1]); at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
}

int64_t trial_epochs(const struct trials *trials, int trial)
{
    const int done = trials->list[trial].done;
    return done > 0 ? trials->plan->epochs[done - 1] : 0;
}

const char *trial_state(const struct trials *trials, int trial)
{
    const struct trial *t = &trials->list[trial];
    return t->failed                        ? "failed"
           : t->done == trials->plan->rungs ? "finished"
           : t->is_dropped                  ? RECORD_DROPPED
                                            : "waiting";
}

/* --- the folder --------------------------------------------------------------------------- */

/* Writes a text that a sweep has, or compares it with the one that is there. */
static int keep_text(const char *folder, const char *name, const char *text)
{
    char path[TRIAL_PATH + 24];
    void *found = NULL;
    size_t bytes = 0;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (access(path, F_OK) != 0) {
        const enum lk_status status = lk_file_write(path, text, strlen(text));
        return status == LK_OK ? DONE : failed(status);
    }
    const enum lk_status status = lk_file_read(path, MOST_BYTES, &found, &bytes);
    const bool is_same =
        status == LK_OK && bytes == strlen(text) && memcmp(found, text, bytes) == 0;
    free(found);
    if (status == LK_OK && !is_same)
        say("'%s' is of another sweep: take another folder with --output, or remove it", path);
    return status != LK_OK ? failed(status) : is_same ? DONE : USAGE;
}

static void read_trial(struct trial *trial, int rungs, const json_t *from, bool again)
{
    const json_t *values = json_object_get(from, "values");
    const int count = (int)json_array_size(values);
    for (int i = 0; i < count && i < rungs; i++) {
        const json_t *value = json_array_get(values, (size_t)i);
        trial->value[trial->done++] = json_is_number(value) ? json_number_value(value) : NAN;
    }
    if (!again)
        trial->failed = (int)json_integer_value(json_object_get(from, "failed"));
}

static int read_trials(struct trials *trials, bool again)
{
    char path[TRIAL_PATH + 24];
    snprintf(path, sizeof path, "%s/sweep.json", trials->folder);
    if (access(path, F_OK) != 0)
        return DONE;
    json_t *found = json_load_file(path, 0, NULL);
    const json_t *list = json_object_get(found, "trials");
    const bool is_right = (int)json_array_size(list) == trials->plan->trials;
    for (int i = 0; is_right && i < trials->plan->trials; i++)
        read_trial(&trials->list[i], trials->plan->rungs, json_array_get(list, (size_t)i),
                   again);
    json_decref(found);
    if (!is_right)
        say("'%s' is damaged; without it each trial goes on from its checkpoint", path);
    return is_right ? DONE : BAD_INPUT;
}

int trials_open(struct trials *trials, const struct lk_sweep *sweep, const char *folder,
                bool again)
{
    *trials = (struct trials){.sweep = sweep, .plan = lk_sweep_plan(sweep), .folder = folder};
    trials->list = calloc((size_t)trials->plan->trials, sizeof *trials->list);
    if (!trials->list)
        return failed(LK_E_MEMORY);
    if (strlen(folder) >= TRIAL_PATH) {
        say("a path has %zu bytes, expected less than %d", strlen(folder), (int)TRIAL_PATH);
        return BAD_INPUT;
    }
    int result = keep_text(folder, "sweep.yaml", lk_sweep_text(sweep));
    if (result == DONE)
        result = keep_text(folder, "run.yaml", lk_sweep_run_text(sweep));
    return result == DONE ? read_trials(trials, again) : result;
}

void trials_clear(struct trials *trials)
{
    free(trials->list);
    *trials = (struct trials){0};
}

int trials_save(const struct trials *trials)
{
    char path[TRIAL_PATH + 24];
    json_t *list = json_array();
    snprintf(path, sizeof path, "%s/sweep.json", trials->folder);
    for (int i = 0; i < trials->plan->trials; i++) {
        const struct trial *trial = &trials->list[i];
        json_t *values = json_array();
        for (int rung = 0; rung < trial->done; rung++)
            json_array_append_new(values, isfinite(trial->value[rung])
                                              ? json_real(trial->value[rung])
                                              : json_null());
        json_array_append_new(
            list, json_pack("{s:o, s:i}", "values", values, "failed", trial->failed));
    }
    return json_write(json_pack("{s:o}", "trials", list), path);
}
