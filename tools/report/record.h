/* What a run directory tells of a run: what was trained on what, and the lines of its
 * metrics.jsonl. Only reads, runs in training too. */
#ifndef TOOLS_RECORD_H
#define TOOLS_RECORD_H

#include "terminal/json.h"
#include <lockstep/settings.h>
#include <stdbool.h>
#include <stdint.h>

/* Of a trial that its sweep trains no further. */
#define RECORD_DROPPED "stopped early"

enum { RECORD_PATH = 1024, RECORD_NAME = 512 };

struct record {
    char path[RECORD_PATH];
    char model[RECORD_NAME], data[RECORD_NAME]; /* "?" where config.yaml cannot be read */
    const char *metric; /* by which `best` is the best of all evaluations; NULL: none */
    double best;
    int64_t best_step, step;
    double seconds;    /* of all its steps */
    const char *state; /* "training", "finished", "stopped", "begun", or RECORD_DROPPED */
    int64_t damaged;   /* lines that are no JSON: one that is being written, or was cut */
};

/* Whoever wants all lines: take() gets each, with the event that it is about. */
struct record_reader {
    void *context;
    void (*take)(void *context, const char *event, const json_t *line);
};

/* Reads the run directory `path`. reader: NULL where only the record is wanted, which is
 * quicker, as the lines of steps are then not read as JSON. */
void record_read(struct record *record, const char *path, const struct record_reader *reader);

/* Opens a file of a run to read it; -1: there is none, or it is a pipe, a device or a folder,
 * for which nobody waits. */
int record_open(const char *path);

/* Its pieces, for whoever reads a run while it grows: what config.yaml tells, without a line;
 * a line; whether a process trains into it now, which the others cannot know. */
void record_begin(struct record *record, const char *path);
void record_take(struct record *record, const char *text, const struct record_reader *reader);
bool record_is_held(const char *path);

/* The number behind a KEY such as "\"loss\": " in a line of metrics.jsonl, which is quicker
 * than to read all of it; NaN: none. */
double record_number(const char *line, const char *key);

/* All settings by config.yaml; NULL, and the reason in lk_error_text(), where it cannot be
 * read. lk_settings_destroy() releases. */
struct lk_settings *record_settings(const char *path);

#endif
