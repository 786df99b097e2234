/* Reads the file of a sweep and makes its trials. */
#include "base/fail.h"
#include "base/random.h"
#include "io/file.h"
#include "train/callbacks/figures.h"
#include "train/sweep/internal.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct lk_sweep_plan no_halving = {
    .rungs = 1, .metric = "val_accuracy", .highest_is_best = true};

static enum lk_status read_whole(const struct lk_yaml *value, double least, double most,
                                 int64_t *number)
{
    char *end = NULL, found[80];
    const bool is_text = value->kind == LK_YAML_SCALAR && !value->is_null;
    const double read = is_text ? strtod(value->text, &end) : 0;
    if (!is_text || end == value->text || *end || !(read >= least && read <= most) ||
        read != floor(read))
        return lk_yaml_fail(value, "'%s' is a whole number in %.0f..%.0f, found %s", value->key,
                            least, most, lk_yaml_found(value, found, sizeof found));
    *number = (int64_t)read;
    return LK_OK;
}

/* --- what all trials have in common ------------------------------------------------------ */

/* `run:` is a file's name or the run itself, which keeps its lines in messages. */
static enum lk_status read_run(struct lk_sweep *sweep, const struct lk_yaml *root)
{
    const struct lk_yaml *run = lk_yaml_find(root, "run");
    void *data = NULL;
    size_t bytes;
    if (!run || (run->kind != LK_YAML_MAP && (run->kind != LK_YAML_SCALAR || run->is_null)))
        return lk_yaml_fail(run ? run : root, "a sweep needs 'run': a run file, or its text");
    if (run->kind == LK_YAML_MAP) {
        sweep->run_where = run->where;
        return lk_yaml_cut(sweep->text, run, &sweep->run_text);
    }
    sweep->run_where = run->text;
    const enum lk_status status = lk_file_read(run->text, LK_YAML_MOST_BYTES, &data, &bytes);
    sweep->run_text = data;
    return lk_yaml_at(run, status);
}

static enum lk_status common_settings(const struct lk_sweep *sweep,
                                      struct lk_settings **settings)
{
    char data[1024];
    struct lk_settings *made = NULL;
    LK_TRY(lk_settings_create(&made));
    enum lk_status status =
        lk_settings_read_text(made, sweep->run_text, strlen(sweep->run_text), sweep->run_where);
    if (status == LK_OK)
        status = lk_settings_get(made, "data", data, sizeof data);
    if (status == LK_OK && !*data && !*made->init_from)
        status = lk_fail(LK_E_MODEL, "%s: a run of a sweep needs 'data'", sweep->run_where);
    if (status == LK_OK)
        *settings = made;
    else
        lk_settings_destroy(made);
    return status;
}

/* --- settings that differ ---------------------------------------------------------------- */

static enum lk_status check_name(const struct lk_sweep *sweep, const struct lk_axis *axis,
                                 bool is_halved)
{
    static const char *const own[] = {"run", "fresh", "device", "profile", NULL};
    for (int i = 0; own[i]; i++)
        if (strcmp(axis->name, own[i]) == 0)
            return lk_yaml_fail(axis->entry, "'%s' is chosen by the sweep itself", axis->name);
    if (is_halved && (strcmp(axis->name, "epochs") == 0 || strcmp(axis->name, "steps") == 0))
        return lk_yaml_fail(axis->entry, "'%s' is chosen by 'halving'", axis->name);
    for (const struct lk_axis *other = sweep->axes; other < axis; other++)
        if (strcmp(other->name, axis->name) == 0)
            return lk_yaml_fail(axis->entry, "'%s' is there twice", axis->name);
    return LK_OK;
}

static enum lk_status read_axes(struct lk_sweep *sweep, const struct lk_yaml *root,
                                bool is_grid)
{
    const struct lk_yaml *over = lk_yaml_find(root, "over");
    if (!over || over->kind != LK_YAML_MAP || over->count == 0)
        return lk_yaml_fail(over ? over : root,
                            "a sweep needs 'over': {lr: {log: [1e-4, 1e-1]}, ...}");
    if (over->count > LK_MOST_SWEEP_SETTINGS)
        return lk_yaml_fail(over, "%d settings, at most %d", over->count,
                            (int)LK_MOST_SWEEP_SETTINGS);
    for (const struct lk_yaml *entry = over->first; entry; entry = entry->next) {
        struct lk_axis *axis = &sweep->axes[sweep->plan.settings];
        LK_TRY(lk_axis_read(entry, is_grid, axis));
        LK_TRY(check_name(sweep, axis, lk_yaml_find(root, "halving") != NULL));
        sweep->plan.settings++;
    }
    return LK_OK;
}

/* --- trials ------------------------------------------------------------------------------ */

/* A grid has every combination; the last setting changes first. */
static enum lk_status count_trials(struct lk_sweep *sweep, const struct lk_yaml *root,
                                   bool is_grid)
{
    const struct lk_yaml *trials = lk_yaml_find(root, "trials");
    int64_t count = 1;
    if (is_grid && trials)
        return lk_yaml_fail(trials, "'trials' is for search: random; a grid has all");
    if (!is_grid && !trials)
        return lk_yaml_fail(root, "search: random needs 'trials'");
    if (trials)
        LK_TRY(read_whole(trials, 1, LK_MOST_SWEEP_TRIALS, &count));
    for (int i = 0; is_grid && i < sweep->plan.settings; i++)
        if ((count *= sweep->axes[i].points) > LK_MOST_SWEEP_TRIALS)
            return lk_yaml_fail(sweep->axes[i].entry, "the grid has more than %d trials",
                                (int)LK_MOST_SWEEP_TRIALS);
    sweep->plan.trials = (int)count;
    return LK_OK;
}

static enum lk_status make_values(struct lk_sweep *sweep, bool is_grid, int64_t seed)
{
    char text[LK_AXIS_TEXT];
    for (int trial = 0; trial < sweep->plan.trials; trial++) {
        int rest = trial;
        for (int i = sweep->plan.settings - 1; i >= 0; i--) {
            const struct lk_axis *axis = &sweep->axes[i];
            const struct lk_random4 random =
                lk_random((uint64_t)seed, LK_RANDOM_SWEEP, (uint32_t)i, (uint64_t)trial);
            if (is_grid) {
                lk_axis_point(axis, rest % axis->points, text);
                rest /= axis->points;
            } else {
                lk_axis_draw(axis, lk_random_unit(random.v[0]), text);
            }
            if (!(sweep->values[trial][i] = strdup(text)))
                return lk_fail_memory("a trial", strlen(text));
        }
    }
    return LK_OK;
}

/* Gives each trial's values to settings, as training will. */
static enum lk_status try_values(const struct lk_sweep *sweep, struct lk_settings *common)
{
    for (int trial = 0; trial < sweep->plan.trials; trial++) {
        struct lk_settings *settings = NULL;
        LK_TRY(lk_settings_copy(common, &settings));
        enum lk_status status = LK_OK;
        for (int i = 0; i < sweep->plan.settings && status == LK_OK; i++)
            status =
                lk_yaml_at(sweep->axes[i].entry, lk_settings_set(settings, sweep->axes[i].name,
                                                                 sweep->values[trial][i]));
        lk_settings_destroy(settings);
        LK_TRY(status);
    }
    return LK_OK;
}

/* --- rungs ------------------------------------------------------------------------------- */

/* metric and mode of the file, or of its halving; standard metric: val_accuracy. */
static enum lk_status read_metric(struct lk_sweep *sweep, const struct lk_yaml *from)
{
    const struct lk_yaml *metric = lk_yaml_find(from, "metric");
    const struct lk_yaml *mode = lk_yaml_find(from, "mode");
    struct lk_sweep_plan *plan = &sweep->plan;
    if (metric && (metric->kind != LK_YAML_SCALAR || strncmp(metric->text, "val_", 4) != 0 ||
                   !metric->text[4]))
        return lk_yaml_fail(metric, "'metric' is a figure of evaluations such as val_accuracy "
                                    "or val_loss");
    if (metric) {
        plan->metric = metric->text;
        plan->highest_is_best = lk_monitor_is_up(metric->text, LK_MONITOR_AUTO);
    }
    if (!mode)
        return LK_OK;
    if (mode->kind != LK_YAML_SCALAR ||
        (strcmp(mode->text, "max") != 0 && strcmp(mode->text, "min") != 0))
        return lk_yaml_fail(mode, "'mode' is max or min");
    plan->highest_is_best = strcmp(mode->text, "max") == 0;
    return LK_OK;
}

static enum lk_status read_halving(struct lk_sweep *sweep, const struct lk_yaml *halving,
                                   const struct lk_settings *common)
{
    static const char *const known[] = {"metric", "mode", "first", "factor", NULL};
    struct lk_sweep_plan *plan = &sweep->plan;
    int64_t first = 1, factor = 3;
    LK_TRY(lk_yaml_check_keys(halving, known));
    LK_TRY(read_metric(sweep, halving));
    if (lk_yaml_find(halving, "first"))
        LK_TRY(read_whole(lk_yaml_find(halving, "first"), 1, 1e9, &first));
    if (lk_yaml_find(halving, "factor"))
        LK_TRY(read_whole(lk_yaml_find(halving, "factor"), 2, 100, &factor));
    if (common->steps > 0)
        return lk_yaml_fail(halving, "'halving' goes by epochs, but the run has 'steps'");
    if (first > common->epochs)
        return lk_yaml_fail(halving, "'first' is %lld epochs, but the run has %lld",
                            (long long)first, (long long)common->epochs);
    int kept = plan->trials;
    plan->rungs = 0;
    for (bool is_last = false; !is_last; first *= factor) {
        is_last = first >= common->epochs || plan->rungs == LK_MOST_SWEEP_RUNGS - 1;
        plan->epochs[plan->rungs] = is_last ? common->epochs : first;
        plan->kept[plan->rungs++] = kept;
        kept = (int)((kept + factor - 1) / factor);
    }
    return LK_OK;
}

/* --- the file ---------------------------------------------------------------------------- */

static enum lk_status read_search(struct lk_sweep *sweep, const struct lk_yaml *root)
{
    static const char *const known[] = {"run",    "search", "trials",  "seed", "over",
                                        "metric", "mode",   "halving", NULL};
    const struct lk_yaml *search = lk_yaml_find(root, "search");
    const struct lk_yaml *seed = lk_yaml_find(root, "seed");
    const struct lk_yaml *halving = lk_yaml_find(root, "halving");
    struct lk_settings *common = NULL;
    int64_t number = 0;
    LK_TRY(lk_yaml_check_keys(root, known));
    if (search && (search->kind != LK_YAML_SCALAR ||
                   (strcmp(search->text, "grid") != 0 && strcmp(search->text, "random") != 0)))
        return lk_yaml_fail(search, "'search' is grid or random");
    const bool is_grid = !search || strcmp(search->text, "grid") == 0;
    if (seed)
        LK_TRY(read_whole(seed, 0, 9e15, &number));
    LK_TRY(read_axes(sweep, root, is_grid));
    LK_TRY(count_trials(sweep, root, is_grid));
    sweep->plan.kept[0] = sweep->plan.trials;
    LK_TRY(make_values(sweep, is_grid, number));
    LK_TRY(read_metric(sweep, root));
    LK_TRY(read_run(sweep, root));
    LK_TRY(common_settings(sweep, &common));
    enum lk_status status = halving ? read_halving(sweep, halving, common) : LK_OK;
    if (status == LK_OK)
        status = try_values(sweep, common);
    lk_settings_destroy(common);
    return status;
}

enum lk_status lk_sweep_read(const char *path, struct lk_sweep **sweep)
{
    void *data = NULL;
    size_t bytes = 0;
    struct lk_sweep *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("a sweep", sizeof *made);
    made->plan = no_halving;
    enum lk_status status = lk_file_read(path, LK_YAML_MOST_BYTES, &data, &bytes);
    made->text = data;
    if (status == LK_OK)
        status = lk_yaml_read(data, bytes, path, &made->document);
    if (status == LK_OK)
        status = read_search(made, lk_yaml_root(made->document));
    if (status == LK_OK)
        *sweep = made;
    else
        lk_sweep_destroy(made);
    return status;
}

void lk_sweep_destroy(struct lk_sweep *sweep)
{
    if (!sweep)
        return;
    for (int trial = 0; trial < LK_MOST_SWEEP_TRIALS; trial++)
        for (int i = 0; i < LK_MOST_SWEEP_SETTINGS; i++)
            free(sweep->values[trial][i]);
    lk_yaml_destroy(sweep->document);
    free(sweep->text);
    free(sweep->run_text);
    free(sweep);
}

const struct lk_sweep_plan *lk_sweep_plan(const struct lk_sweep *sweep)
{
    return &sweep->plan;
}

const char *lk_sweep_setting(const struct lk_sweep *sweep, int setting)
{
    return sweep->axes[setting].name;
}

const char *lk_sweep_value(const struct lk_sweep *sweep, int trial, int setting)
{
    return sweep->values[trial][setting];
}

const char *lk_sweep_run_text(const struct lk_sweep *sweep)
{
    return sweep->run_text;
}

const char *lk_sweep_text(const struct lk_sweep *sweep)
{
    return sweep->text;
}
