/* The parts of the report's page, and what they show: all that run directories tell. */
#ifndef TOOLS_REPORT_H
#define TOOLS_REPORT_H

#include "page/page.h"
#include "report/record.h"
#include <lockstep/graph.h>
#include <lockstep/train.h>

/* Colours tell so many runs apart. */
enum { MOST_RUNS = PAGE_COLOURS, MOST_DEVICES = 64, DEVICE_PARTS = 5, PLACE_PARTS = 3 };

/* Numbers of a step or an evaluation; NaN: not defined. */
enum point_field {
    POINT_STEP,
    POINT_LOSS,
    POINT_ACCURACY,
    POINT_RATE,
    POINT_MS,
    POINT_LR,
    POINT_FIELDS,
};

struct points {
    double (*of)[POINT_FIELDS];
    int count, room;
};

/* Sums over steps in which the device took part. */
struct device_sums {
    int rank, places;
    int64_t steps;
    double part[DEVICE_PARTS]; /* ms: computing, transfers, sums, waiting, input */
    double place[LK_MOST_PLACES][PLACE_PARTS]; /* ms: computing, waiting, copying */
};

struct run {
    struct record record;
    struct points steps, evaluations;
    struct device_sums devices[MOST_DEVICES];
    int device_count;    /* those that are not shown counted */
    bool is_first;       /* the next step is the first of a process */
    json_t *settings;    /* {name: text}; NULL: config.yaml cannot be read */
    json_t *environment; /* {name: text}; NULL: env.json cannot be read */
    json_t *happened;    /* [[step, text]] */
    char why[256];       /* config.yaml cannot be read */
    bool has_metrics;
};

struct report {
    struct run *runs; /* [count] */
    int count;
};

/* Reads a run directory into a zero run. Returns DONE, or the exit status with the message
 * said. run_clear() releases, after failures too. */
int run_read(struct run *run, const char *path);
void run_clear(struct run *run);

void report_curves(struct page *page, const struct report *report);
void report_speed(struct page *page, const struct report *report);
void report_devices(struct page *page, const struct report *report);
void report_facts(struct page *page, const struct report *report);

/* The worst mistakes of an evaluation: images, or texts. */
void report_worst(struct page *page, struct lk_predictor *predictor,
                  const struct lk_evaluation *evaluation);

/* Evaluates each run on what it was validated with: confusions and classes. Returns DONE, or
 * the exit status with the message said, which then stands on the page too. */
int report_classes(struct page *page, const struct report *report, const char *device,
                   int64_t batch);

#endif
