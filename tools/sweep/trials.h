/* The trials of a sweep: what is known of each, kept in the sweep's folder. */
#ifndef TOOLS_TRIALS_H
#define TOOLS_TRIALS_H

#include <lockstep/sweep.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { TRIAL_PATH = 1000 };

struct trial {
    int done;                          /* rungs that it has trained to the end of */
    double value[LK_MOST_SWEEP_RUNGS]; /* of the metric, the best until then; NaN: none */
    int failed;                        /* exit status, 128 + signal; 0: it has not failed */
    bool is_dropped;                   /* not among the best of a rung */
    int crashes;                       /* of this process's children */
    pid_t process;                     /* that trains it now; 0: none */
    int slot;                          /* the device that it has then */
};

struct trials {
    const struct lk_sweep *sweep;
    const struct lk_sweep_plan *plan;
    const char *folder;
    struct trial *list; /* [plan->trials] */
};

/* Begins in a folder, or goes on with what it has of the same sweep. again: trials that failed
 * are run once more. Returns DONE, or the exit status with the message said; trials_clear()
 * releases.
 */
int trials_open(struct trials *trials, const struct lk_sweep *sweep, const char *folder,
                bool again);
void trials_clear(struct trials *trials);

/* Writes what is known to FOLDER/sweep.json. Returns as above. */
int trials_save(const struct trials *trials);

/* "FOLDER/trial-0001" */
void trial_path(const struct trials *trials, int trial, char path[TRIAL_PATH + 24]);

/* Adds to the trial's metrics.jsonl that the sweep trains it no further, unless that stands
 * there: without it the end of its last rung reads as the end of its run. */
int trial_tell_dropped(const struct trials *trials, int trial);

/* Reads the metric's best value of all evaluations until now from the trial's run directory;
 * NaN: none. is_known: false where evaluations have no such figure. */
double trial_value(const struct trials *trials, int trial, bool *is_known);

/* Whether trial a is better than trial b by the values of a rung; of equal ones the first. */
bool trial_is_better(const struct trials *trials, int a, int b, int rung);

/* All trials, the best first: those that came further before others. order: [plan->trials] */
void trials_sort(const struct trials *trials, int *order);

/* The epochs that a trial has been trained; 0: all that the run has, or none. */
int64_t trial_epochs(const struct trials *trials, int trial);

/* "finished", "stopped early", "failed", "waiting". */
const char *trial_state(const struct trials *trials, int trial);

#endif
