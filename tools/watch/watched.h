/* A run that is watched: what its directory tells now, read again and again. */
#ifndef TOOLS_WATCHED_H
#define TOOLS_WATCHED_H

#include "report/record.h"
#include "watch/history.h"
#include "watch/tail.h"

enum { WATCHED_EVENTS = 64, WATCHED_TEXT = 400 };

/* The kinds of news, which have colours. */
enum watched_kind { WATCHED_PLAIN, WATCHED_GOOD, WATCHED_FAULT };

struct watched_event {
    int64_t step;
    enum watched_kind kind;
    char text[WATCHED_TEXT];
};

struct watched {
    struct record record;
    struct tail tail;
    bool is_there;                     /* metrics.jsonl */
    bool is_held;                      /* a process trains into it now */
    double silent;                     /* seconds since metrics.jsonl was written to */
    double config_at;                  /* when config.yaml was written, that was read */
    int64_t steps;                     /* in all; 0: not known */
    int64_t epochs;                    /* in all; 0: not known */
    int64_t epoch;                     /* being in, from 0 */
    double lr, loss, accuracy, step_s; /* means of the last steps; NaN: none */
    double samples_per_s;
    int64_t mean_steps;
    struct history losses, accuracies, rates, val_losses, val_accuracies;
    int64_t evaluated_at;                        /* step; 0: never */
    char *last_step;                             /* its line; NULL: none */
    struct watched_event events[WATCHED_EVENTS]; /* the last ones, event i at i % them */
    int64_t event_count;                         /* of all */
    bool has_lost;                               /* a device: an event of devices has come */
};

void watched_start(struct watched *watched, const char *path);
void watched_clear(struct watched *watched);

/* Reads what has come. Returns whether there is more to be read now. */
bool watched_update(struct watched *watched);

/* "training", "finished", "stopped" and so on; *kind: how good that is. */
const char *watched_state(const struct watched *watched, enum watched_kind *kind);

/* Seconds that the rest will take; NaN: not known, or it does not run. */
double watched_eta(const struct watched *watched);

/* How much is done, 0 to 1; NaN: not known. */
double watched_share(const struct watched *watched);

#endif
