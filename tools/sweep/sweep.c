/* lockstep sweep: trains trials with settings that a file gives, and compares them. */
#include "command.h"
#include "sweep/rungs.h"
#include "terminal/json.h"
#include "terminal/table.h"
#include "terminal/terminal.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_REPORTED = 8 };

/* --- results ------------------------------------------------------------------------------ */

static double last_value(const struct trial *trial)
{
    return trial->done > 0 ? trial->value[trial->done - 1] : NAN;
}

static void print(const struct trials *trials, const int *order)
{
    const struct lk_sweep_plan *plan = trials->plan;
    struct table_column columns[LK_MOST_SWEEP_SETTINGS + 4];
    struct table table;
    int count = 0;
    columns[count++] = (struct table_column){"trial", 0, .width = 5};
    for (int i = 0; i < plan->settings; i++)
        columns[count++] = (struct table_column){lk_sweep_setting(trials->sweep, i), 2, 10,
                                                 .is_left = true, .is_name = true};
    columns[count++] = (struct table_column){"epochs", 2, .width = 6, .rank = 1};
    columns[count++] = (struct table_column){plan->metric, 2, .width = 12};
    columns[count++] = (struct table_column){"state", 2, 0, .is_left = true};
    for (int i = 0; i < plan->settings; i++) /* as wide as what stands in them */
        for (int trial = 0; trial < plan->trials; trial++) {
            const int width = terminal_width(lk_sweep_value(trials->sweep, trial, i));
            if (width > columns[1 + i].width)
                columns[1 + i].width = width < 40 ? width : 40;
        }
    table_start(&table, columns, count);
    for (int i = 0; i < plan->trials; i++) {
        const int trial = order[i];
        const int64_t epochs = trial_epochs(trials, trial);
        const double value = last_value(&trials->list[trial]);
        table_cell(&table, "%d", trial + 1);
        for (int s = 0; s < plan->settings; s++)
            table_cell(&table, "%s", lk_sweep_value(trials->sweep, trial, s));
        table_cell(&table, epochs ? "%" PRId64 : "", epochs);
        table_cell(&table, isfinite(value) ? "%.6g" : "-", value);
        table_cell(&table, "%s", trial_state(trials, trial));
    }
    table_end(&table);
}

static json_t *trial_json(const struct trials *trials, int trial)
{
    const struct trial *t = &trials->list[trial];
    char path[TRIAL_PATH + 24];
    json_t *settings = json_object(), *values = json_array();
    trial_path(trials, trial, path);
    for (int i = 0; i < trials->plan->settings; i++)
        json_object_set_new(settings, lk_sweep_setting(trials->sweep, i),
                            json_text(lk_sweep_value(trials->sweep, trial, i)));
    for (int i = 0; i < t->done; i++)
        json_array_append_new(values, json_number(t->value[i]));
    return json_pack("{s:i, s:o, s:o, s:o, s:s, s:i}", "trial", trial + 1, "run",
                     json_text(path), "settings", settings, "values", values, "state",
                     trial_state(trials, trial), "status", t->failed);
}

static int print_json(const struct trials *trials, const int *order)
{
    json_t *list = json_array(), *epochs = json_array();
    for (int i = 0; i < trials->plan->trials; i++)
        json_array_append_new(list, trial_json(trials, order[i]));
    for (int i = 0; i < trials->plan->rungs; i++)
        json_array_append_new(epochs, json_integer(trials->plan->epochs[i]));
    return json_print(json_pack("{s:o, s:s, s:o, s:o}", "sweep", json_text(trials->folder),
                                "metric", trials->plan->metric, "epochs", epochs, "trials",
                                list),
                      JSON_INDENT(2));
}

/* The best trials on one page, by `lockstep report`. */
static int write_report(const struct trials *trials, const int *order)
{
    static char paths[MOST_REPORTED][TRIAL_PATH + 24];
    char page[TRIAL_PATH + 24];
    const char *words[MOST_REPORTED + 5] = {"lockstep", "report"};
    int count = 2, status = 0;
    snprintf(page, sizeof page, "%s/report.html", trials->folder);
    for (int i = 0; i < trials->plan->trials && count < MOST_REPORTED + 2; i++) {
        if (trials->list[order[i]].done == 0)
            continue;
        trial_path(trials, order[i], paths[count - 2]);
        words[count] = paths[count - 2];
        count++;
    }
    words[count++] = "--output";
    words[count++] = page;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        execv("/proc/self/exe", (char *const *)words);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        return FAILED;
    return WIFEXITED(status) ? WEXITSTATUS(status) : FAILED;
}

static int show(const struct trials *trials, bool as_json)
{
    int *order = calloc((size_t)trials->plan->trials, sizeof *order);
    int result = DONE;
    if (!order)
        return failed(LK_E_MEMORY);
    trials_sort(trials, order);
    if (as_json)
        result = print_json(trials, order);
    else
        print(trials, order);
    const int written = write_report(trials, order);
    if (written == DONE && !as_json)
        printf("\nreport  %s/report.html\n", trials->folder);
    free(order);
    return result == DONE ? written : result;
}

/* --- the command -------------------------------------------------------------------------- */

/* The file's name without its ending, beside where the program was started. */
static void choose_folder(const char *file, const char *given, char folder[TRIAL_PATH + 8])
{
    const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;
    const char *dot = strrchr(name, '.');
    const int length = dot && dot > name ? (int)(dot - name) : (int)strlen(name);
    if (given)
        snprintf(folder, TRIAL_PATH + 8, "%s", given);
    else
        snprintf(folder, TRIAL_PATH + 8, "%.*s%s", length, name, dot > name ? "" : ".sweep");
}

/* Makes the folder. Another process that sweeps there would start the same trials; held until
 * the end. */
static int lock(const char *folder)
{
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
        say("cannot make the folder '%s': %s", folder, strerror(errno));
        return BAD_INPUT;
    }
    const int file = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file >= 0 && flock(file, LOCK_EX | LOCK_NB) == 0)
        return DONE;
    say(file < 0 ? "'%s' is no folder" : "another process sweeps in '%s'", folder);
    return BAD_INPUT;
}

static int sweep(const struct arguments *arguments, const struct lk_sweep *plan)
{
    char folder[TRIAL_PATH + 8];
    struct trials trials;
    static struct slots slots;
    int result = slots_find(&slots, option_text(arguments, "device"));
    if (result != DONE)
        return result;
    choose_folder(arguments->words[0], option_text(arguments, "output"), folder);
    result = lock(folder);
    if (result != DONE)
        return result;
    result = trials_open(&trials, plan, folder, option_given(arguments, "again"));
    if (result == DONE)
        result = rungs_run(&trials, &slots);
    if (result == INTERRUPTED)
        say("the same command goes on with '%s'", folder);
    if (result == DONE)
        result = show(&trials, option_given(arguments, "json"));
    trials_clear(&trials);
    return result;
}

static int run(const struct arguments *arguments)
{
    struct lk_sweep *plan = NULL;
    if (arguments->word_count != 1)
        return wrong_usage(arguments->command, "needs one FILE.yaml, found %d words",
                           arguments->word_count);
    const enum lk_status status = lk_sweep_read(arguments->words[0], &plan);
    const int result = status == LK_OK ? sweep(arguments, plan) : failed(status);
    lk_sweep_destroy(plan);
    return result;
}

static const struct option options[] = {
    {"output", "DIR", "folder of the trials; default: the file's name without its ending"},
    {"device", "LIST", "devices; each trains one trial at a time: all, 0,1, 0/2, 0*2"},
    {"again", NULL, "run trials that have failed once more"},
    {"json", NULL, "print JSON"},
    {0},
};

static const struct example examples[] = {
    {"lockstep sweep rates.yaml", "trains what is not trained yet, in the folder rates"},
    {"lockstep sweep rates.yaml --device all",
     "as many trials side by side as there are devices"},
    {"lockstep watch rates/trial-*", "meanwhile, in another window"},
    {0},
};

const struct command sweep_command = {
    .name = "sweep",
    .usage = "FILE.yaml [options]",
    .help = "search for good settings: a grid or by chance, bad trials stopped early",
    .options = options,
    .examples = examples,
    .run = run,
};
