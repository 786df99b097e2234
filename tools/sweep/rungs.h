/* Trains the trials of a sweep: side by side, rung after rung. */
#ifndef TOOLS_RUNGS_H
#define TOOLS_RUNGS_H

#include "sweep/trials.h"

enum { MOST_SLOTS = 64, SLOT_TEXT = 64 };

/* The devices, of which each trains one trial at a time. */
struct slots {
    char device[MOST_SLOTS][SLOT_TEXT];
    bool is_taken[MOST_SLOTS];
    int count;
};

/* The entries of a list of devices; NULL: of the usual one. Returns DONE, or the exit status
 * with the message said. */
int slots_find(struct slots *slots, const char *list);

/* Trains until all is done that the plan wants, or Ctrl-C, after which all trials have written
 * a checkpoint. Returns the exit status. */
int rungs_run(struct trials *trials, struct slots *slots);

#endif
