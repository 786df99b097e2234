/* Makes and locks run directories, and writes their files. */
#include "train/run/folder.h"

#include "base/build.h"
#include "base/escape.h"
#include "base/fail.h"
#include "base/log.h"
#include "io/file.h"
#include "io/journal.h"
#include "model/checkpoint/checkpoint.h"
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct lk_run_folder {
    char path[512], checkpoints[544], metrics[544];
    struct lk_journal *journal; /* metrics.jsonl */
    int lock;                   /* the directory, held against other processes; -1: none */
    bool is_new, has_begun;
    bool lacks_config, lacks_about; /* somebody has removed config.yaml, env.json */
};

enum { MOST_METRICS_BYTES = 1 << 30, WAIT_SECONDS = 10, TRIES_PER_SECOND = 20 };

/* File systems without locks are not refused. */
static bool is_held(int file)
{
    return flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

/* A lock of the directory that this process has inherited: a sweep takes it before it starts a
 * training, and LOCKSTEP_RUN_LOCK has its descriptor. -1: none. */
static int inherited_lock(const char *path)
{
    const char *text = getenv("LOCKSTEP_RUN_LOCK");
    struct stat held, found;
    char *end;
    const long file = text ? strtol(text, &end, 10) : -1;
    if (!text || end == text || *end || file < 3 || file > INT_MAX ||
        fstat((int)file, &held) != 0 || stat(path, &found) != 0 ||
        held.st_dev != found.st_dev || held.st_ino != found.st_ino ||
        fcntl((int)file, F_SETFD, FD_CLOEXEC) != 0)
        return -1;
    return (int)file;
}

/* Two processes in one directory would mix their metrics and remove each other's files. One
 * that was killed holds its lock until its memory is released, which may take a second. */
static enum lk_status lock(struct lk_run_folder *folder)
{
    folder->lock = inherited_lock(folder->path);
    if (folder->lock < 0)
        folder->lock = open(folder->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder->lock < 0)
        return lk_file_fail("open", folder->path);
    for (int tries = 0; is_held(folder->lock); tries++) {
        if (tries == 0)
            lk_log(LK_LOG_INFO,
                   "another process trains into run directory '%s': waiting up to %d s for it",
                   folder->path, WAIT_SECONDS);
        if (tries == WAIT_SECONDS * TRIES_PER_SECOND)
            return lk_fail(LK_E_IO, "another process trains into it");
        nanosleep(&(struct timespec){.tv_nsec = 1000000000 / TRIES_PER_SECOND}, NULL);
    }
    return LK_OK;
}

static enum lk_status make_folders(struct lk_run_folder *folder)
{
    folder->is_new = !lk_folder_exists(folder->path);
    LK_TRY(lk_run_folder_check(folder->path));
    LK_TRY(lk_folder_make(folder->checkpoints));
    if (access(folder->checkpoints, W_OK) != 0)
        return lk_file_fail("write in", folder->checkpoints);
    return lock(folder);
}

static void name_files(struct lk_run_folder *folder, const char *path)
{
    snprintf(folder->path, sizeof folder->path, "%s", path);
    snprintf(folder->checkpoints, sizeof folder->checkpoints, "%s/checkpoints", path);
    snprintf(folder->metrics, sizeof folder->metrics, "%s/metrics.jsonl", path);
}

enum lk_status lk_run_folder_open(const char *path, struct lk_run_folder **folder)
{
    struct lk_run_folder *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("a run directory", sizeof *made);
    made->lock = -1;
    if (*path) {
        name_files(made, path);
        const enum lk_status status = make_folders(made);
        if (status != LK_OK) {
            lk_run_folder_close(made);
            return lk_fail_within(status, "run directory '%s'", path);
        }
    }
    *folder = made;
    return LK_OK;
}

void lk_run_folder_close(struct lk_run_folder *folder)
{
    if (!folder)
        return;
    lk_journal_close(folder->journal);
    if (folder->is_new && !folder->has_begun) { /* the directory is new and empty, so it is
                                                 * removed again */
        rmdir(folder->checkpoints);
        rmdir(folder->path);
    }
    if (folder->lock >= 0)
        close(folder->lock);
    free(folder);
}

/* --- one that is moved or removed while it is used --------------------------------------- */

/* Whether the path is that of the directory that is held. */
static bool is_held_one(const struct lk_run_folder *folder, const char *path)
{
    struct stat held, found;
    return fstat(folder->lock, &held) == 0 && stat(path, &found) == 0 &&
           held.st_dev == found.st_dev && held.st_ino == found.st_ino;
}

/* The name that a directory has now; false: it has none, or the system does not tell. */
static bool find_name(const struct lk_run_folder *folder, char path[512])
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", folder->lock);
    const ssize_t length = readlink(link, path, 511);
    path[length > 0 ? length : 0] = '\0';
    return length > 0 && is_held_one(folder, path);
}

static bool lacks(const struct lk_run_folder *folder, const char *name)
{
    char path[544];
    snprintf(path, sizeof path, "%s/%s", folder->path, name);
    return access(path, F_OK) != 0;
}

/* What may be gone of the directory that is held. */
static enum lk_status find_files(struct lk_run_folder *folder, bool *is_bare)
{
    folder->lacks_config = lacks(folder, "config.yaml");
    folder->lacks_about = lacks(folder, "env.json");
    *is_bare = folder->lacks_config || folder->lacks_about;
    if (folder->journal)
        lk_journal_find(folder->journal, folder->metrics);
    if (lk_folder_exists(folder->checkpoints))
        return LK_OK;
    LK_TRY(lk_folder_make(folder->checkpoints));
    lk_log(LK_LOG_WARNING, "'%s' was removed: it is made again, without what it had",
           folder->checkpoints);
    return LK_OK;
}

enum lk_status lk_run_folder_find(struct lk_run_folder *folder, bool *is_bare)
{
    char now[512];
    *is_bare = false;
    if (!folder->path[0])
        return LK_OK;
    if (is_held_one(folder, folder->path))
        return find_files(folder, is_bare);
    if (find_name(folder, now)) {
        lk_log(LK_LOG_WARNING, "run directory '%s' was moved to '%s' and is used there",
               folder->path, now);
        name_files(folder, now);
        return find_files(folder, is_bare);
    }
    if (access(folder->path, F_OK) == 0)
        return lk_fail(LK_E_IO, "run directory '%s' was removed, and another one is there now",
                       folder->path);
    LK_TRY(lk_folder_make(folder->checkpoints));
    lk_log(LK_LOG_WARNING,
           "run directory '%s' was removed: it is made again, without its checkpoints",
           folder->path);
    if (folder->journal)
        lk_journal_find(folder->journal, folder->metrics);
    close(folder->lock);
    *is_bare = true;
    return lock(folder);
}

/* --- what it is called ------------------------------------------------------------------ */

const char *lk_run_folder_path(const struct lk_run_folder *folder)
{
    return folder->path;
}

const char *lk_run_folder_checkpoints(const struct lk_run_folder *folder)
{
    return folder->checkpoints;
}

enum lk_status lk_run_folder_start_over(struct lk_run_folder *folder)
{
    if (!folder->path[0])
        return LK_OK;
    LK_TRY(lk_checkpoint_prune(folder->checkpoints, 0, NULL, 0));
    if (unlink(folder->metrics) != 0 && errno != ENOENT)
        return lk_file_fail("remove", folder->metrics);
    return lk_run_config_forget(folder->path);
}

/* Writes a JSON value (which it releases) as a file. */
static enum lk_status write_json(const char *path, json_t *json)
{
    char *text = json ? json_dumps(json, JSON_INDENT(2)) : NULL;
    json_decref(json);
    if (!text)
        return lk_fail_memory(path, 0);
    const enum lk_status status = lk_file_write(path, text, strlen(text));
    free(text);
    return status;
}

/* A text that may be a path, which need not be UTF-8. */
static json_t *text_json(const char *text)
{
    char *escaped = malloc(LK_ESCAPED_BYTES(strlen(text)));
    if (!escaped)
        return NULL;
    lk_escape(text, escaped);
    json_t *json = json_string(escaped);
    free(escaped);
    return json;
}

static json_t *about_device(const struct lk_device_info *device)
{
    return json_pack("{s:i, s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:s}", "index",
                     device->index, "name", device->name, "platform", device->platform,
                     "vendor", device->vendor, "driver", device->driver, "class",
                     device->device_class == LK_CLASS_CPU ? "cpu" : "gpu", "compute_units",
                     device->compute_units, "lanes", device->lanes, "vector", device->vector,
                     "subgroups", device->subgroups);
}

static void add_choice(void *context, const char *key, const char *algorithm)
{
    json_object_set_new(context, key, json_string(algorithm));
}

static enum lk_status write_environment(const struct lk_run_folder *folder,
                                        const struct lk_environment *e)
{
    char path[544];
    json_t *list = json_array(), *choices = json_object();
    snprintf(path, sizeof path, "%s/env.json", folder->path);
    for (int i = 0; e->devices[i]; i++)
        json_array_append_new(list, about_device(e->devices[i]));
    lk_choices_each(e->choices, add_choice, choices);
    return write_json(path,
                      json_pack("{s:s, s:s, s:i, s:o, s:s, s:b, s:o}", "lockstep", LK_VERSION,
                                "build", lk_build, "ranks", e->ranks, "devices", list, "math",
                                lk_math_names[lk_choices_math(e->choices)], "plane_tiles",
                                e->planes, "algorithms", choices));
}

/* Whether a line of metrics.jsonl is still true for a run that goes on after `step`; its end is
 * not, since it will be written again. is_last: whether it is an evaluation of that step.
 * Counts the steps that are told of. */
static bool holds(const char *line, size_t bytes, int64_t step, bool *is_last, int64_t *steps)
{
    json_t *json = json_loadb(line, bytes, 0, NULL);
    const json_t *number = json_object_get(json, "step");
    const char *event = json_string_value(json_object_get(json, "event"));
    const int64_t at = json_is_integer(number) ? json_integer_value(number) : -1;
    *is_last = at == step && event && strcmp(event, "eval") == 0;
    const bool is_step = event && strcmp(event, "step") == 0;
    json_decref(json);
    *steps += is_step && at >= 1 && at <= step;
    return at >= 0 && at <= step; /* "end" has no step */
}

/* Somebody has removed the file, or a part of it. */
static void warn_of_lost_steps(const struct lk_run_folder *folder, int64_t found, int64_t step)
{
    if (found < step)
        lk_log(
            LK_LOG_WARNING,
            "'%s' tells of %lld of the %lld steps that the run has done: the others are lost "
            "from it",
            folder->metrics, (long long)found, (long long)step);
}

/* What the file begins with, see lk_event_print(). */
static const char first_words[] = "{\"event\": ";

/* Rewrites metrics.jsonl without the lines that no longer hold and without a torn last line,
 * and without the last evaluation where it will be written again. */
static enum lk_status cut_metrics(const struct lk_run_folder *folder, int64_t step,
                                  bool repeats)
{
    void *data = NULL;
    size_t bytes = 0, kept = 0, last = 0, last_bytes = 0;
    int64_t steps = 0;
    if (!lk_file_exists(folder->metrics)) {
        warn_of_lost_steps(folder, 0, step);
        return LK_OK;
    }
    LK_TRY(lk_file_read(folder->metrics, MOST_METRICS_BYTES, &data, &bytes));
    if (strncmp(data, first_words, bytes < strlen(first_words) ? bytes : strlen(first_words))) {
        free(data);
        return lk_fail(LK_E_ARGUMENT, "file '%s' is there and not of a run: it is not replaced",
                       folder->metrics);
    }
    char *text = data;
    for (size_t at = 0; at < bytes;) {
        const char *end = memchr(text + at, '\n', bytes - at);
        const size_t length = end ? (size_t)(end - (text + at)) + 1 : bytes - at;
        bool is_last = false;
        if (end && holds(text + at, length, step, &is_last, &steps)) {
            memmove(text + kept, text + at, length);
            last = is_last ? kept : last;
            last_bytes = is_last ? length : last_bytes;
            kept += length;
        }
        at += length;
    }
    if (repeats && last_bytes > 0) {
        kept -= last_bytes;
        memmove(text + last, text + last + last_bytes, kept - last);
    }
    warn_of_lost_steps(folder, steps, step);
    const enum lk_status status =
        kept == bytes ? LK_OK : lk_file_write(folder->metrics, text, kept);
    free(data);
    return status;
}

enum lk_status lk_run_folder_describe(struct lk_run_folder *folder,
                                      const struct lk_settings *settings,
                                      const struct lk_environment *environment,
                                      enum lk_run_progress progress,
                                      struct lk_setting_changes *changes)
{
    if (!folder->path[0])
        return LK_OK;
    char config[544], about[544];
    snprintf(config, sizeof config, "%s/config.yaml", folder->path);
    snprintf(about, sizeof about, "%s/env.json", folder->path);
    lk_file_remove_left_overs(config);
    lk_file_remove_left_overs(about);
    folder->has_begun = true;
    LK_TRY(write_environment(folder, environment)); /* first: lk_run_folder_check() */
    LK_TRY(lk_run_config_write(folder->path, settings, progress, changes));
    if (folder->lacks_config)
        lk_log(LK_LOG_WARNING, "'%s' was removed: it is written again", config);
    if (folder->lacks_about)
        lk_log(LK_LOG_WARNING, "'%s' was removed: it is written again", about);
    folder->lacks_config = folder->lacks_about = false;
    return LK_OK;
}

enum lk_status lk_run_folder_begin(struct lk_run_folder *folder, int64_t step, bool repeats)
{
    if (!folder->path[0])
        return LK_OK;
    lk_file_remove_left_overs(folder->metrics);
    LK_TRY(cut_metrics(folder, step, repeats));
    lk_journal_close(folder->journal);
    folder->journal = NULL;
    return lk_journal_open(folder->metrics, -1, LK_JOURNAL_LINES, &folder->journal);
}

/* A finite number, or null: JSON has neither NaN nor infinity. */
static json_t *number(double value)
{
    json_t *json = json_real(value);
    return json ? json : json_null();
}

/* Of a group adds what each of its devices took. */
static void add_places(const struct lk_device_times *t, json_t *to)
{
    json_t *places = json_array();
    for (int p = 0; p < t->places; p++) {
        const struct lk_place_times *of = &t->of_place[p];
        json_array_append_new(
            places,
            json_pack("{s:o, s:o, s:o, s:I, s:o}", "compute_ms", number(of->compute_ms),
                      "idle_ms", number(of->idle_ms), "crossing_ms", number(of->crossing_ms),
                      "crossing_bytes", (json_int_t)of->crossing_bytes, "planned_ms",
                      of->planned_ms > 0 ? number(of->planned_ms) : json_null()));
    }
    json_object_set_new(to, "places", places);
}

static json_t *device_times(const struct lk_device_times *t)
{
    if (!t->is_left)
        return json_null();
    json_t *times = json_pack(
        "{s:i, s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:o}", "rank", t->rank, "samples_per_s",
        number(t->samples_per_s), "share", number(t->share), "samples", (json_int_t)t->samples,
        "compute_ms", number(t->compute_ms), "transfer_ms", number(t->transfer_ms), "reduce_ms",
        number(t->reduce_ms), "wait_ms", number(t->wait_ms), "input_ms", number(t->input_ms));
    if (t->places > 0)
        add_places(t, times);
    return times;
}

/* What callbacks have added. */
static json_t *with_figures(json_t *json, const struct lk_event *e)
{
    if (!json || e->figure_count == 0)
        return json;
    json_t *figures = json_object();
    for (int i = 0; i < e->figure_count; i++)
        json_object_set_new(figures, e->figures[i].name, number(e->figures[i].value));
    json_object_set_new(json, "figures", figures);
    return json;
}

static json_t *step_line(const struct lk_event *e)
{
    json_t *devices = json_array();
    for (int i = 0; i < e->devices; i++)
        json_array_append_new(devices, device_times(&e->device_times[i]));
    return json_pack("{s:s, s:I, s:I, s:o, s:o, s:I, s:o, s:o, s:o, s:i, s:o}", "event", "step",
                     "step", (json_int_t)e->step, "epoch", (json_int_t)e->epoch, "loss",
                     number(e->loss), "accuracy", number(e->accuracy), "samples",
                     (json_int_t)e->samples, "samples_per_s", number(e->samples_per_s),
                     "step_ms", number(e->step_ms), "lr", number(e->lr), "tries", e->tries,
                     "devices", devices);
}

static json_t *with_loss_scale(json_t *json, const struct lk_event *e)
{
    if (!json || !(e->loss_scale > 0))
        return json;
    json_object_set_new(json, "loss_scale", number(e->loss_scale));
    json_object_set_new(json, "skipped_steps", json_integer((json_int_t)e->skipped_steps));
    return json;
}

static json_t *end_line(const struct lk_event *e)
{
    json_t *json = with_loss_scale(json_pack("{s:s, s:I, s:o, s:s}", "event", "end", "steps",
                                             (json_int_t)e->step, "seconds", number(e->seconds),
                                             "parameters_sha256", e->hash),
                                   e);
    if (!json || !e->staleness)
        return json;
    json_t *counts = json_array();
    for (int i = 0; i <= e->max_staleness; i++)
        json_array_append_new(counts, json_integer((json_int_t)e->staleness[i]));
    json_object_set_new(json, "updates", json_integer((json_int_t)e->updates));
    json_object_set_new(json, "staleness", counts);
    return json;
}

static json_t *output_json(const struct lk_output_evaluation *o)
{
    json_t *metrics = json_object();
    for (int i = 0; i < o->figure_count; i++)
        json_object_set_new(metrics, o->figures[i].name, number(o->figures[i].value));
    return json_pack("{s:s, s:o, s:o}", "loss_name", o->loss_name, "loss", number(o->loss),
                     "metrics", metrics);
}

/* With the figures of each output under its name, where there are more than loss and
 * accuracy. */
static json_t *evaluation_line(const struct lk_event *e)
{
    json_t *json =
        json_pack("{s:s, s:I, s:o, s:o}", "event", "eval", "step", (json_int_t)e->step, "loss",
                  number(e->loss), "accuracy", number(e->accuracy));
    const struct lk_evaluation *found = e->evaluation;
    if (!json || !found ||
        (found->output_count == 1 && found->outputs[0].figure_count == 1 &&
         strcmp(found->outputs[0].figures[0].name, "accuracy") == 0))
        return json;
    json_t *outputs = json_object();
    for (int i = 0; i < found->output_count; i++)
        if (found->outputs[i].loss_name)
            json_object_set_new(outputs, found->outputs[i].name,
                                output_json(&found->outputs[i]));
    json_object_set_new(json, "outputs", outputs);
    return json;
}

static json_t *settings_line(const struct lk_event *e)
{
    json_t *changes = json_object();
    for (int i = 0; i < e->change_count; i++)
        json_object_set_new(changes, e->changes[i].name,
                            json_pack("{s:o, s:o}", "was", text_json(e->changes[i].was), "is",
                                      text_json(e->changes[i].is)));
    return json_pack("{s:s, s:I, s:o, s:o}", "event", "settings", "step", (json_int_t)e->step,
                     "text", text_json(e->text), "changes", changes);
}

static json_t *event_line(const struct lk_event *e)
{
    switch (e->kind) {
    case LK_EVENT_START:
        return json_pack("{s:s, s:I, s:I, s:I, s:o}", "event", "start", "step",
                         (json_int_t)e->step, "steps", (json_int_t)e->steps, "epochs",
                         (json_int_t)e->epochs, "text", text_json(e->text));
    case LK_EVENT_STEP:
        return with_figures(step_line(e), e);
    case LK_EVENT_EVALUATION:
        return with_figures(with_loss_scale(evaluation_line(e), e), e);
    case LK_EVENT_CHECKPOINT:
        return json_pack("{s:s, s:I, s:o}", "event", "checkpoint", "step", (json_int_t)e->step,
                         "file", text_json(e->file));
    case LK_EVENT_DEVICES:
        return json_pack("{s:s, s:I, s:s}", "event", "devices", "step", (json_int_t)e->step,
                         "text", e->text);
    case LK_EVENT_CALLBACK:
        return json_pack("{s:s, s:I, s:o}", "event", "callback", "step", (json_int_t)e->step,
                         "text", text_json(e->text));
    case LK_EVENT_END:
        return end_line(e);
    case LK_EVENT_SETTINGS:
        return settings_line(e);
    }
    return NULL;
}

enum lk_status lk_event_print(const struct lk_event *event, char **line)
{
    json_t *json = event_line(event);
    char *text = json ? json_dumps(json, JSON_REAL_PRECISION(9)) : NULL;
    json_decref(json);
    if (!text)
        return lk_fail_memory("an event", 0);
    *line = text;
    return LK_OK;
}

enum lk_status lk_run_folder_log(struct lk_run_folder *folder, const char *line)
{
    struct lk_journal *journal = folder->journal;
    if (!journal)
        return LK_OK;
    if (fprintf(lk_journal_stream(journal), "%s\n", line) < 0)
        return lk_fail_memory(folder->metrics, strlen(line));
    return lk_journal_try(journal);
}

enum lk_status lk_run_folder_flush(struct lk_run_folder *folder, bool is_last)
{
    if (!folder->journal)
        return LK_OK;
    return is_last ? lk_journal_write(folder->journal) : lk_journal_try(folder->journal);
}

enum lk_status lk_run_folder_sync(const struct lk_run_folder *folder)
{
    return folder->journal ? lk_journal_sync(folder->journal) : LK_OK;
}
