/* Reads all of a run directory that its report shows. */
#include "report/report.h"

#include "command.h"
#include "terminal/terminal.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { VALUE = 1 << 16 };

static const double largest = 1e100; /* a chart shows no larger number */

/* NaN where it is none. */
static double number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    const double found = json_is_number(value) ? json_number_value(value) : NAN;
    return fabs(found) < largest ? found : NAN;
}

/* --- metrics.jsonl ---------------------------------------------------------------------- */

static void add_point(struct points *points, const json_t *line)
{
    if (points->count == points->room) {
        const int room = 2 * points->room + 1024;
        void *longer = realloc(points->of, (size_t)room * sizeof *points->of);
        if (!longer)
            return;
        points->of = longer;
        points->room = room;
    }
    static const char *const keys[] = {"step",          "loss",    "accuracy",
                                       "samples_per_s", "step_ms", "lr"};
    if (!isfinite(number(line, "step")))
        return;
    for (int i = 0; i < POINT_FIELDS; i++)
        points->of[points->count][i] = number(line, keys[i]);
    points->count++;
}

static void add_parts(double *sums, const json_t *times, const char *const *keys, int count)
{
    for (int i = 0; i < count; i++) {
        const double ms = number(times, keys[i]);
        sums[i] += ms > 0 ? ms : 0;
    }
}

static void add_device(struct device_sums *sums, const json_t *times)
{
    static const char *const keys[DEVICE_PARTS] = {"compute_ms", "transfer_ms", "reduce_ms",
                                                   "wait_ms", "input_ms"};
    static const char *const place_keys[PLACE_PARTS] = {"compute_ms", "idle_ms", "crossing_ms"};
    const json_t *places = json_object_get(times, "places");
    if (!json_is_object(times) || !(number(times, "samples") > 0))
        return;
    sums->rank = (int)json_integer_value(json_object_get(times, "rank"));
    sums->steps++;
    add_parts(sums->part, times, keys, DEVICE_PARTS);
    const int count = (int)json_array_size(places);
    sums->places = count < LK_MOST_PLACES ? count : LK_MOST_PLACES;
    for (int i = 0; i < sums->places; i++)
        add_parts(sums->place[i], json_array_get(places, (size_t)i), place_keys, PLACE_PARTS);
}

/* The first step of a process builds kernels: its times tell nothing of the others. */
static void add_step(struct run *run, const json_t *line)
{
    const json_t *devices = json_object_get(line, "devices");
    const int count = (int)json_array_size(devices);
    add_point(&run->steps, line);
    if (count > run->device_count)
        run->device_count = count;
    for (int i = 0; i < count && i < MOST_DEVICES && !run->is_first; i++)
        add_device(&run->devices[i], json_array_get(devices, (size_t)i));
    run->is_first = false;
}

static void take(void *context, const char *event, const json_t *line)
{
    struct run *run = context;
    const json_t *text = json_object_get(line, "text");
    if (strcmp(event, "step") == 0)
        add_step(run, line);
    else if (strcmp(event, "eval") == 0)
        add_point(&run->evaluations, line);
    else if (strcmp(event, "start") == 0)
        run->is_first = true;
    if (json_is_string(text))
        json_array_append_new(
            run->happened,
            json_pack("[I, s]", (json_int_t)json_integer_value(json_object_get(line, "step")),
                      json_string_value(text)));
}

/* --- config.yaml and env.json ----------------------------------------------------------- */

/* Whether a setting is a fact of its own: not the run's name, nor another name of a setting. */
static bool is_fact(const char *name)
{
    return strcmp(name, "run") != 0 && strcmp(name, "augment") != 0 &&
           strcmp(name, "callback") != 0;
}

static void read_settings(struct run *run)
{
    struct lk_settings *settings = record_settings(run->record.path);
    char *value = malloc(VALUE);
    if (settings && value)
        run->settings = json_object();
    else
        snprintf(run->why, sizeof run->why, "%s", lk_error_text());
    for (int i = 0; run->settings && lk_setting_name(i); i++)
        if (is_fact(lk_setting_name(i)) &&
            lk_settings_get(settings, lk_setting_name(i), value, VALUE) == LK_OK)
            json_object_set_new(run->settings, lk_setting_name(i), json_text(value));
    free(value);
    lk_settings_destroy(settings);
    lk_error_clear();
}

/* Adds what an object or a list holds as texts, by names such as "device 0: driver". */
static void flatten(json_t *to, const char *prefix, json_t *value)
{
    char name[RECORD_PATH], text[64];
    const char *key;
    json_t *inner;
    size_t i;
    json_object_foreach(value, key, inner)
    {
        const bool is_top = !*prefix, is_list = is_top && strcmp(key, "devices") == 0;
        snprintf(name, sizeof name, "%s%s%s", prefix, is_top ? "" : ": ",
                 is_list                                    ? "device"
                 : is_top && strcmp(key, "algorithms") == 0 ? "algorithm"
                                                            : key);
        flatten(to, name, inner);
    }
    json_array_foreach(value, i, inner)
    {
        snprintf(name, sizeof name, "%s %zu", prefix, i);
        flatten(to, name, inner);
    }
    if (json_is_string(value)) {
        json_object_set(to, prefix, value);
    } else if (json_is_number(value)) {
        snprintf(text, sizeof text, "%.12g", json_number_value(value));
        json_object_set_new(to, prefix, json_string(text));
    }
}

static void read_environment(struct run *run)
{
    char path[RECORD_PATH + 16];
    snprintf(path, sizeof path, "%s/env.json", run->record.path);
    json_t *found = json_load_file(path, 0, NULL);
    if (json_is_object(found)) {
        run->environment = json_object();
        flatten(run->environment, "", found);
    }
    json_decref(found);
}

/* --- the run ---------------------------------------------------------------------------- */

static bool has_file(const char *folder, const char *name)
{
    char path[RECORD_PATH + 16];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, R_OK) == 0;
}

int run_read(struct run *run, const char *path)
{
    struct stat about;
    if (strlen(path) >= RECORD_PATH) {
        say("a path has %zu bytes, expected less than %d", strlen(path), (int)RECORD_PATH);
        return BAD_INPUT;
    }
    if (stat(path, &about) != 0 || !S_ISDIR(about.st_mode)) {
        say("'%s' is no folder, expected a run directory", path);
        return BAD_INPUT;
    }
    run->has_metrics = has_file(path, "metrics.jsonl");
    if (!run->has_metrics && !has_file(path, "config.yaml")) {
        say("'%s' is no run directory: it has neither config.yaml nor metrics.jsonl", path);
        return BAD_INPUT;
    }
    run->happened = json_array();
    run->is_first = true;
    record_read(&run->record, path, &(struct record_reader){.context = run, .take = take});
    read_settings(run);
    read_environment(run);
    return DONE;
}

void run_clear(struct run *run)
{
    free(run->steps.of);
    free(run->evaluations.of);
    json_decref(run->settings);
    json_decref(run->environment);
    json_decref(run->happened);
    *run = (struct run){0};
}
