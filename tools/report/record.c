/* Reads run directories: config.yaml, and metrics.jsonl line by line. */
#include "report/record.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

double record_number(const char *line, const char *key)
{
    const char *at = strstr(line, key);
    char *end = NULL;
    const double number = at ? strtod(at + strlen(key), &end) : NAN;
    return at && end > at + strlen(key) ? number : NAN;
}

static void take_step(struct record *record, const char *line)
{
    const double ms = record_number(line, "\"step_ms\": ");
    const double step = record_number(line, "\"step\": ");
    record->state = "stopped";
    if (fabs(step) < 1e15) /* a damaged line may have any, or none */
        record->step = (int64_t)step;
    record->seconds += isfinite(ms) ? ms / 1000 : 0;
}

/* An evaluation is better by its accuracy or, where nothing has one, by its loss. */
static void take_evaluation(struct record *record, const json_t *line)
{
    const json_t *accuracy = json_object_get(line, "accuracy");
    const json_t *loss = json_object_get(line, "loss");
    const bool has_accuracy = json_is_number(accuracy);
    const double value = json_number_value(has_accuracy ? accuracy : loss);
    if (!has_accuracy && !json_is_number(loss))
        return;
    if (record->metric && !(has_accuracy ? value > record->best : value < record->best))
        return;
    record->metric = has_accuracy ? "accuracy" : "loss";
    record->best = value;
    record->best_step = json_integer_value(json_object_get(line, "step"));
}

void record_take(struct record *record, const char *text, const struct record_reader *reader)
{
    static const char step[] = "{\"event\": \"step\"";
    const bool is_step = strncmp(text, step, sizeof step - 1) == 0;
    if (is_step && !reader) {
        take_step(record, text);
        return;
    }
    json_t *line = json_loads(text, 0, NULL);
    const char *event = json_string_value(json_object_get(line, "event"));
    record->damaged += !line;
    if (event && is_step)
        take_step(record, text);
    if (event && strcmp(event, "eval") == 0)
        take_evaluation(record, line);
    if (event && strcmp(event, "end") == 0)
        record->state = "finished";
    if (event && strcmp(event, "dropped") == 0)
        record->state = RECORD_DROPPED;
    if (event && reader)
        reader->take(reader->context, event, line);
    json_decref(line);
}

bool record_is_held(const char *path)
{
    const int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool held = folder >= 0 && flock(folder, LOCK_SH | LOCK_NB) != 0;
    if (folder >= 0)
        close(folder);
    return held;
}

int record_open(const char *path)
{
    struct stat about;
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file >= 0 && fstat(file, &about) == 0 && S_ISREG(about.st_mode))
        return file;
    if (file >= 0)
        close(file);
    return -1;
}

static void read_metrics(struct record *record, const struct record_reader *reader)
{
    char path[RECORD_PATH + 16];
    char *line = NULL;
    size_t room = 0;
    snprintf(path, sizeof path, "%s/metrics.jsonl", record->path);
    const int opened = record_open(path);
    FILE *file = opened >= 0 ? fdopen(opened, "r") : NULL;
    if (!file && opened >= 0)
        close(opened);
    while (file && getline(&line, &room, file) > 0)
        record_take(record, line, reader);
    free(line);
    if (file)
        fclose(file);
    if (record_is_held(record->path))
        record->state = "training";
}

struct lk_settings *record_settings(const char *path)
{
    char config[RECORD_PATH + 16];
    struct lk_settings *settings = NULL;
    snprintf(config, sizeof config, "%s/config.yaml", path);
    if (lk_settings_create(&settings) == LK_OK && lk_settings_read(settings, config) == LK_OK)
        return settings;
    lk_settings_destroy(settings);
    return NULL;
}

static void read_names(struct record *record)
{
    struct lk_settings *settings = record_settings(record->path);
    const bool is_read =
        settings && lk_settings_get(settings, "model", record->model, RECORD_NAME) == LK_OK &&
        lk_settings_get(settings, "data", record->data, RECORD_NAME) == LK_OK;
    lk_settings_destroy(settings);
    lk_error_clear();
    if (!is_read) {
        snprintf(record->model, RECORD_NAME, "?");
        snprintf(record->data, RECORD_NAME, "?");
    }
}

void record_begin(struct record *record, const char *path)
{
    *record = (struct record){.state = "begun"};
    snprintf(record->path, sizeof record->path, "%s", path);
    read_names(record);
}

void record_read(struct record *record, const char *path, const struct record_reader *reader)
{
    record_begin(record, path);
    read_metrics(record, reader);
}
