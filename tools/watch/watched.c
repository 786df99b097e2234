/* Takes the lines of metrics.jsonl as they come, and says how a run is. */
#include "watch/watched.h"

#include "figures.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* Steps that a mean reaches back; seconds and steps without news that are no cause to worry. */
enum { MEAN_STEPS = 50, QUIET_SECONDS = 60, QUIET_STEPS = 20 };

/* What is above is no count of steps. */
static const double most_steps = 1e15;

static int64_t count_of(double number)
{
    return number >= 0 && number < most_steps ? (int64_t)number : 0;
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void add_event(struct watched *w, int64_t step, enum watched_kind kind, const char *text)
{
    struct watched_event *event = &w->events[w->event_count++ % WATCHED_EVENTS];
    *event = (struct watched_event){.step = step, .kind = kind};
    snprintf(event->text, sizeof event->text, "%s", text);
}

/* --- steps ------------------------------------------------------------------------------ */

static void add(double *mean, double value, int64_t seen)
{
    if (isfinite(value))
        *mean = isfinite(*mean) ? *mean + (value - *mean) / (double)seen : value;
}

/* The first step of a process builds kernels: its time tells nothing of the others. */
static void take_step(struct watched *w, const char *line)
{
    const double loss = record_number(line, "\"loss\": ");
    const double accuracy = record_number(line, "\"accuracy\": ");
    const double ms = record_number(line, "\"step_ms\": ");
    const double rate = record_number(line, "\"samples_per_s\": ");
    const int64_t epoch = count_of(record_number(line, "\"epoch\": "));
    const bool is_first = w->mean_steps == 0;
    w->mean_steps += w->mean_steps < MEAN_STEPS;
    history_add(&w->losses, loss);
    history_add(&w->accuracies, accuracy);
    add(&w->loss, loss, w->mean_steps);
    add(&w->accuracy, accuracy, w->mean_steps);
    w->lr = record_number(line, "\"lr\": ");
    if (!is_first) {
        history_add(&w->rates, rate);
        add(&w->samples_per_s, rate, w->mean_steps - 1);
        add(&w->step_s, ms / 1000, w->mean_steps - 1);
    }
    if (!w->steps && w->epochs && epoch > 0 && epoch == w->epoch + 1) /* of an older version */
        w->steps = (w->record.step - 1) / epoch * w->epochs;
    w->epoch = epoch;
    char *copy = strdup(line);
    if (copy) {
        free(w->last_step);
        w->last_step = copy;
    }
}

/* --- other lines ------------------------------------------------------------------------ */

static double number(const json_t *line, const char *key)
{
    const json_t *value = json_object_get(line, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static void take_evaluation(struct watched *w, const json_t *line)
{
    const double loss = number(line, "loss"), accuracy = number(line, "accuracy");
    char text[WATCHED_TEXT], figure[32];
    const int used = snprintf(text, sizeof text, "validation loss %s", loss_text(loss, figure));
    if (!isnan(accuracy))
        snprintf(text + used, sizeof text - (size_t)used, "  accuracy %s",
                 percent_text(accuracy, 2, figure));
    history_add(&w->val_losses, loss);
    history_add(&w->val_accuracies, accuracy);
    w->evaluated_at = count_of(number(line, "step"));
    add_event(w, w->evaluated_at, WATCHED_GOOD, text);
}

/* From here on steps are those of another process. */
static void take_start(struct watched *w, const json_t *line)
{
    if (number(line, "steps") > 0)
        w->steps = count_of(number(line, "steps"));
    if (number(line, "epochs") > 0)
        w->epochs = count_of(number(line, "epochs"));
    w->mean_steps = 0;
    w->has_lost = false;
    w->loss = w->accuracy = w->samples_per_s = w->step_s = NAN;
}

static void take_event(void *context, const char *event, const json_t *line)
{
    struct watched *w = context;
    const char *said = json_string_value(json_object_get(line, "text"));
    const char *file = json_string_value(json_object_get(line, "file"));
    const int64_t step = count_of(number(line, "step"));
    char text[WATCHED_TEXT];
    if (strcmp(event, "eval") == 0) {
        take_evaluation(w, line);
    } else if (strcmp(event, "checkpoint") == 0) {
        snprintf(text, sizeof text, "checkpoint %s", file ? file_name(file) : "?");
        add_event(w, step, WATCHED_PLAIN, text);
    } else if (strcmp(event, "end") == 0) {
        const char *hash = json_string_value(json_object_get(line, "parameters_sha256"));
        snprintf(text, sizeof text, "the end, sha256 %.16s", hash ? hash : "?");
        add_event(w, count_of(number(line, "steps")), WATCHED_GOOD, text);
    } else if (said && strcmp(event, "step") != 0) {
        if (strcmp(event, "start") == 0)
            take_start(w, line);
        w->has_lost |= strcmp(event, "devices") == 0;
        add_event(w, step, strcmp(event, "devices") == 0 ? WATCHED_FAULT : WATCHED_PLAIN, said);
    }
}

static void take_line(void *context, const char *line)
{
    struct watched *w = context;
    static const char step[] = "{\"event\": \"step\"";
    const struct record_reader reader = {.context = w, .take = take_event};
    if (!line) {
        w->record.damaged++;
    } else if (strncmp(line, step, sizeof step - 1) == 0) {
        record_take(&w->record, line, NULL);
        take_step(w, line);
    } else {
        record_take(&w->record, line, &reader);
    }
}

/* --- files ------------------------------------------------------------------------------ */

/* Totals by config.yaml, until a line tells better. */
static void read_config(struct watched *w)
{
    char value[32];
    struct lk_settings *settings = record_settings(w->record.path);
    if (settings && lk_settings_get(settings, "epochs", value, sizeof value) == LK_OK)
        w->epochs = count_of(strtod(value, NULL));
    if (settings && lk_settings_get(settings, "steps", value, sizeof value) == LK_OK)
        w->steps = count_of(strtod(value, NULL));
    lk_settings_destroy(settings);
    lk_error_clear();
}

/* All that was read is forgotten, but for how far which file is read. */
static void restart(void *context)
{
    struct watched *w = context;
    const struct watched kept = *w;
    free(w->last_step);
    *w = (struct watched){.tail = kept.tail,
                          .config_at = kept.config_at,
                          .loss = NAN,
                          .accuracy = NAN,
                          .samples_per_s = NAN,
                          .step_s = NAN,
                          .lr = NAN};
    record_begin(&w->record, kept.record.path);
    read_config(w);
}

static double time_of(const char *folder, const char *name)
{
    char path[TAIL_PATH];
    struct stat about;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return stat(path, &about) == 0
               ? (double)about.st_mtim.tv_sec + (double)about.st_mtim.tv_nsec / 1e9
               : 0;
}

/* Names and totals, where config.yaml came or changed after the lines were read. */
static void update_config(struct watched *w)
{
    const double written = time_of(w->record.path, "config.yaml");
    struct record *named = malloc(sizeof *named);
    if (named && written > 0 && written != w->config_at) {
        record_begin(named, w->record.path);
        memcpy(w->record.model, named->model, sizeof w->record.model);
        memcpy(w->record.data, named->data, sizeof w->record.data);
        w->config_at = written;
        if (w->steps == 0)
            read_config(w);
    }
    free(named);
}

void watched_start(struct watched *watched, const char *path)
{
    *watched = (struct watched){.config_at = 0};
    snprintf(watched->record.path, sizeof watched->record.path, "%s", path);
    snprintf(watched->tail.path, sizeof watched->tail.path, "%s/metrics.jsonl", path);
    restart(watched);
}

void watched_clear(struct watched *watched)
{
    free(watched->last_step);
    tail_clear(&watched->tail);
    *watched = (struct watched){0};
}

bool watched_update(struct watched *watched)
{
    struct timespec now;
    const struct tail_reader reader = {watched, restart, take_line};
    const enum tail_state state = tail_read(&watched->tail, &reader);
    watched->is_there = state != TAIL_ABSENT;
    watched->is_held = record_is_held(watched->record.path);
    update_config(watched);
    clock_gettime(CLOCK_REALTIME, &now);
    watched->silent = (double)now.tv_sec - time_of(watched->record.path, "metrics.jsonl");
    return state == TAIL_GOES_ON;
}

/* --- how it is -------------------------------------------------------------------------- */

const char *watched_state(const struct watched *watched, enum watched_kind *kind)
{
    const double patience =
        fmax(QUIET_SECONDS, isfinite(watched->step_s) ? QUIET_STEPS * watched->step_s : 0);
    *kind = WATCHED_PLAIN;
    if (!watched->is_held && !watched->is_there)
        return watched->event_count > 0 || watched->last_step ? "gone" : "not there yet";
    if (watched->is_held && !watched->is_there)
        return "preparing";
    if (watched->is_held && watched->silent > patience) {
        *kind = WATCHED_FAULT;
        return "silent";
    }
    if (watched->is_held) {
        *kind = WATCHED_GOOD;
        return "training";
    }
    return watched->record.state;
}

double watched_share(const struct watched *watched)
{
    return watched->steps > 0 ? fmin((double)watched->record.step / (double)watched->steps, 1)
                              : NAN;
}

double watched_eta(const struct watched *watched)
{
    const double left = (double)(watched->steps - watched->record.step);
    return watched->is_held && watched->steps > 0 && left >= 0 ? left * watched->step_s : NAN;
}
