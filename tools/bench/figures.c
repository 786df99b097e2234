/* Reads benchmark figures from JSON of any origin. */
#include "bench/bench.h"

#include "command.h"
#include "terminal/terminal.h"
#include <lockstep/file.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 16 << 20, MOST_KERNELS = 1024, MOST_MODELS = 256, MOST_TEXT = 512 };

static const double MOST_NUMBER = 1e18;

/* --- what is wrong ---------------------------------------------------------------------- */

/* Where in the document: list[row], an object of its top, or the top itself. */
struct place {
    const char *file, *list;
    int row; /* -1: no list */
    bool is_wrong;
};

/* A foreign text in a message: no codes for the terminal, not too long. */
static const char *printable(const char *text, char copy[80])
{
    snprintf(copy, 80, "%.79s", text);
    for (char *p = copy; *p; p++)
        if ((unsigned char)*p < ' ' || (unsigned char)*p >= 127)
            *p = '?';
    return copy;
}

static const char *kind_of(const json_t *found, char text[128])
{
    char copy[80];
    switch (found ? json_typeof(found) : JSON_NULL) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        snprintf(text, 128, "an array of %zu", json_array_size(found));
        return text;
    case JSON_STRING:
        snprintf(text, 128, "\"%s\"", printable(json_string_value(found), copy));
        return text;
    case JSON_INTEGER:
    case JSON_REAL:
        snprintf(text, 128, "%g", json_number_value(found));
        return text;
    case JSON_TRUE:
        return "true";
    case JSON_FALSE:
        return "false";
    case JSON_NULL:
        break;
    }
    return found ? "null" : "nothing";
}

/* Says it once a file. */
static void wrong(struct place *place, const char *key, const char *expected,
                  const json_t *found)
{
    char text[128], at[64] = "";
    if (place->is_wrong)
        return;
    place->is_wrong = true;
    if (place->row >= 0)
        snprintf(at, sizeof at, "%s[%d]", place->list, place->row);
    else if (place->list)
        snprintf(at, sizeof at, "%s", place->list);
    say("'%s' has no figures of 'lockstep bench --json': %s%s%s: expected %s, found %s",
        place->file, *at ? at : "", *at && *key ? "." : "", *at || *key ? key : "the document",
        expected, kind_of(found, text));
}

/* --- values ----------------------------------------------------------------------------- */

enum need { OPTIONAL, REQUIRED };

static const char *read_text(struct place *place, const json_t *object, const char *key,
                             enum need need)
{
    const json_t *found = json_object_get(object, key);
    if (json_is_string(found) && json_string_length(found) <= MOST_TEXT &&
        (json_string_length(found) > 0 || need == OPTIONAL))
        return json_string_value(found);
    if (found || need == REQUIRED)
        wrong(place, key,
              need == REQUIRED ? "a text of 1 to 512 bytes" : "a text of up to 512 bytes",
              found);
    return "";
}

/* A required one is above 0. */
static double read_number(struct place *place, const json_t *object, const char *key,
                          enum need need)
{
    const json_t *found = json_object_get(object, key);
    const double number = json_is_number(found) ? json_number_value(found) : NAN;
    if (number <= MOST_NUMBER && (need == REQUIRED ? number > 0 : number >= 0))
        return number;
    if (need == REQUIRED || (found && !json_is_null(found)))
        wrong(place, key, need == REQUIRED ? "a number above 0" : "a number from 0 to 1e18",
              found);
    return NAN;
}

static bool read_flag(struct place *place, const json_t *object, const char *key)
{
    const json_t *found = json_object_get(object, key);
    if (found && !json_is_boolean(found))
        wrong(place, key, "true or false", found);
    return json_is_true(found);
}

/* --- rows ------------------------------------------------------------------------------- */

static void read_device(struct place *place, const json_t *object, struct device_figures *d)
{
    if (!json_is_object(object)) {
        wrong(place, "", "an object", object);
        return;
    }
    *d = (struct device_figures){
        .name = read_text(place, object, "name", REQUIRED),
        .vendor = read_text(place, object, "vendor", OPTIONAL),
        .driver = read_text(place, object, "driver", OPTIONAL),
        .version = read_text(place, object, "version", OPTIONAL),
        .platform = read_text(place, object, "platform", OPTIONAL),
        .device_class = read_text(place, object, "class", OPTIONAL),
        .compute_units = read_number(place, object, "compute_units", OPTIONAL),
        .clock_mhz = read_number(place, object, "clock_mhz", OPTIONAL),
        .memory_bytes = read_number(place, object, "memory_bytes", OPTIONAL),
        .fma_gflops = read_number(place, object, "fma_gflops", REQUIRED),
        .bandwidth_gbs = read_number(place, object, "bandwidth_gbs", REQUIRED),
        .enqueue_us = read_number(place, object, "enqueue_us", OPTIONAL),
        .launch_us = read_number(place, object, "launch_us", OPTIONAL),
        .round_trip_us = read_number(place, object, "round_trip_us", OPTIONAL),
    };
}

static void read_kernel(struct place *place, const json_t *row, struct kernel_figures *k)
{
    *k = (struct kernel_figures){
        .set = read_text(place, row, "set", OPTIONAL),
        .op = read_text(place, row, "op", REQUIRED),
        .pass = read_text(place, row, "pass", REQUIRED),
        .shape = read_text(place, row, "shape", REQUIRED),
        .algorithm = read_text(place, row, "algorithm", REQUIRED),
        .is_reference = read_flag(place, row, "reference"),
        .memory_bound = read_flag(place, row, "memory_bound"),
        .flops = read_number(place, row, "flops", OPTIONAL),
        .bytes = read_number(place, row, "bytes", OPTIONAL),
        .ms = read_number(place, row, "ms", REQUIRED),
        .gflops = read_number(place, row, "gflops", OPTIONAL),
        .gbs = read_number(place, row, "gbs", OPTIONAL),
        .percent_of_peak = read_number(place, row, "percent_of_peak", OPTIONAL),
        .host_us = read_number(place, row, "host_us", OPTIONAL),
        .build_ms = read_number(place, row, "build_ms", OPTIONAL),
    };
}

static void read_model(struct place *place, const json_t *row, struct model_figures *m)
{
    *m = (struct model_figures){
        .name = read_text(place, row, "name", REQUIRED),
        .batch = read_number(place, row, "batch", REQUIRED),
        .samples_per_s = read_number(place, row, "samples_per_s", REQUIRED),
        .step_ms = read_number(place, row, "step_ms", REQUIRED),
        .build_s = read_number(place, row, "build_s", OPTIONAL),
        .peak_bytes = read_number(place, row, "peak_bytes", OPTIONAL),
    };
}

/* The rows of a list of objects; the place then is its row `*row`, -1 behind the last. */
static const json_t *list_of(struct place *place, const json_t *json, const char *list,
                             int most)
{
    const json_t *found = json_object_get(json, list);
    char expected[64];
    *place = (struct place){.file = place->file, .list = list, .row = -1};
    if (json_is_array(found) && json_array_size(found) <= (size_t)most)
        return found;
    snprintf(expected, sizeof expected, "an array of at most %d", most);
    wrong(place, "", expected, found);
    return NULL;
}

static const json_t *row_of(struct place *place, const json_t *rows, int row)
{
    const json_t *found = json_array_get(rows, (size_t)row);
    place->row = row;
    if (!json_is_object(found))
        wrong(place, "", "an object", found);
    return found;
}

static bool read_rows(struct place *place, const json_t *json, struct figures *figures)
{
    const json_t *rows = list_of(place, json, "kernels", MOST_KERNELS);
    if (place->is_wrong)
        return false;
    const int kernels = (int)json_array_size(rows);
    figures->kernels = calloc((size_t)kernels + 1, sizeof *figures->kernels);
    for (int i = 0; figures->kernels && !place->is_wrong && i < kernels; i++)
        read_kernel(place, row_of(place, rows, i), &figures->kernels[figures->kernel_count++]);
    if (place->is_wrong)
        return false;
    rows = list_of(place, json, "models", MOST_MODELS);
    if (place->is_wrong)
        return false;
    const int models = (int)json_array_size(rows);
    figures->models = calloc((size_t)models + 1, sizeof *figures->models);
    for (int i = 0; figures->models && !place->is_wrong && i < models; i++)
        read_model(place, row_of(place, rows, i), &figures->models[figures->model_count++]);
    return !place->is_wrong;
}

/* --- documents -------------------------------------------------------------------------- */

int figures_take(json_t *json, struct figures *figures)
{
    struct place place = {.file = figures->file ? figures->file : "figures", .row = -1};
    figures->json = json;
    if (!json) {
        say("out of memory");
        return FAILED;
    }
    if (!json_is_object(json)) {
        wrong(&place, "", "an object", json);
        return BAD_INPUT;
    }
    figures->lockstep = read_text(&place, json, "lockstep", OPTIONAL);
    figures->date = read_text(&place, json, "date", OPTIONAL);
    figures->math = read_text(&place, json, "math", OPTIONAL);
    if (!place.is_wrong) {
        place.list = "device";
        read_device(&place, json_object_get(json, "device"), &figures->device);
    }
    if (place.is_wrong || !read_rows(&place, json, figures))
        return BAD_INPUT;
    if (figures->kernels && figures->models)
        return DONE;
    say("out of memory");
    return FAILED;
}

int figures_read(const char *path, struct figures *figures)
{
    void *text;
    size_t bytes;
    json_error_t error;
    char copy[80];
    *figures = (struct figures){.file = path};
    const enum lk_status status = lk_file_read(path, MOST_BYTES, &text, &bytes);
    if (status != LK_OK)
        return failed(status);
    json_t *json = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    free(text);
    if (json)
        return figures_take(json, figures);
    say("'%s' is not JSON: line %d, column %d: %s", path, error.line, error.column,
        printable(error.text, copy));
    return BAD_INPUT;
}

void figures_clear(struct figures *figures)
{
    free(figures->kernels);
    free(figures->models);
    json_decref(figures->json);
    *figures = (struct figures){0};
}

/* --- side by side ----------------------------------------------------------------------- */

static bool is_same_kernel(const struct kernel_figures *a, const struct kernel_figures *b)
{
    return a->is_reference == b->is_reference && strcmp(a->shape, b->shape) == 0 &&
           strcmp(a->pass, b->pass) == 0 && strcmp(a->op, b->op) == 0 &&
           strcmp(a->set, b->set) == 0;
}

static bool is_same_model(const struct model_figures *a, const struct model_figures *b)
{
    return strcmp(a->name, b->name) == 0 && a->batch == b->batch;
}

static struct kernel_row *kernel_row(struct joined *joined, const struct kernel_figures *k)
{
    for (int i = 0; i < joined->kernel_count; i++)
        if (is_same_kernel(joined->kernels[i].any, k))
            return &joined->kernels[i];
    struct kernel_row *row = &joined->kernels[joined->kernel_count++];
    row->any = k;
    return row;
}

static struct model_row *model_row(struct joined *joined, const struct model_figures *m)
{
    for (int i = 0; i < joined->model_count; i++)
        if (is_same_model(joined->models[i].any, m))
            return &joined->models[i];
    struct model_row *row = &joined->models[joined->model_count++];
    row->any = m;
    return row;
}

/* What was measured twice counts once: the last time. */
int figures_join(const struct figures *all, int count, struct joined *joined)
{
    size_t kernels = 1, models = 1;
    for (int f = 0; f < count; f++) {
        kernels += (size_t)all[f].kernel_count;
        models += (size_t)all[f].model_count;
    }
    *joined = (struct joined){.all = all,
                              .count = count,
                              .kernels = calloc(kernels, sizeof *joined->kernels),
                              .models = calloc(models, sizeof *joined->models)};
    if (!joined->kernels || !joined->models) {
        say("out of memory");
        return FAILED;
    }
    for (int f = 0; f < count; f++) {
        for (int i = 0; i < all[f].kernel_count; i++)
            kernel_row(joined, &all[f].kernels[i])->of[f] = &all[f].kernels[i];
        for (int i = 0; i < all[f].model_count; i++)
            model_row(joined, &all[f].models[i])->of[f] = &all[f].models[i];
    }
    return DONE;
}

void figures_part(struct joined *joined)
{
    free(joined->kernels);
    free(joined->models);
    *joined = (struct joined){0};
}
