/* A search over settings, as a file describes it: which trials there are, and how long each of
 * them trains. Floor 8. Runs nothing. */
#ifndef LOCKSTEP_SWEEP_H
#define LOCKSTEP_SWEEP_H

#include <lockstep/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { LK_MOST_SWEEP_SETTINGS = 16, LK_MOST_SWEEP_TRIALS = 1000, LK_MOST_SWEEP_RUNGS = 16 };

struct lk_sweep;

/* Trials train in rungs: all of them on the first; on each further one only the best of those
 * before, 1 of `factor`, and `factor` times as many epochs in all. */
struct lk_sweep_plan {
    int trials, settings;
    int rungs;                           /* 1: each trial trains to its end */
    int64_t epochs[LK_MOST_SWEEP_RUNGS]; /* at the end of a rung; 0: all that the run has */
    int kept[LK_MOST_SWEEP_RUNGS];       /* trials on each rung */
    const char *metric;                  /* by which trials are compared: "val_accuracy" */
    bool highest_is_best;
};

/* Reads a sweep's file, and the run file that it names. All that trials will be given is tried:
 * names and values of settings. fails: LK_E_MODEL "FILE:LINE: what"; LK_E_IO; LK_E_MEMORY */
LK_API LK_MUST_CHECK enum lk_status lk_sweep_read(const char *path, struct lk_sweep **sweep);
LK_API void lk_sweep_destroy(struct lk_sweep *sweep);

/* All that follows lives as long as the sweep. */
LK_API const struct lk_sweep_plan *lk_sweep_plan(const struct lk_sweep *sweep);

/* The name of a setting, and its value in a trial, both from 0. */
LK_API const char *lk_sweep_setting(const struct lk_sweep *sweep, int setting);
LK_API const char *lk_sweep_value(const struct lk_sweep *sweep, int trial, int setting);

/* The run file that all trials have in common; the sweep's own text. */
LK_API const char *lk_sweep_run_text(const struct lk_sweep *sweep);
LK_API const char *lk_sweep_text(const struct lk_sweep *sweep);

#ifdef __cplusplus
}
#endif
#endif
