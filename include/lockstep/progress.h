/* How far slow work is, before anything else can be told: a handler that is called on the way.
 * Floor 0. Knows no device, no graph. */
#ifndef LOCKSTEP_PROGRESS_H
#define LOCKSTEP_PROGRESS_H

#include <lockstep/status.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is counted stands behind each. New ones go last. */
enum lk_task {
    LK_TASK_BUILD,    /* compiling kernels: programs */
    LK_TASK_CHECK,    /* comparing a device's sums before the first step: operations */
    LK_TASK_MEASURE,  /* finding the fastest kernels: operations */
    LK_TASK_EVALUATE, /* predictions over a data set: samples */
    LK_TASK_FEATURES, /* the frozen part of a model, computed once: samples */
    LK_TASK_COUNT
};

struct lk_progress {
    enum lk_task task;
    int64_t done, count; /* of all devices that are at it */
    bool is_over;        /* the last call for this task; done < count where it ended early */
    double seconds;      /* since it began */
};

/* Calls handler(context, progress) when a task begins, after each piece, and when it is over;
 * NULL: nobody. On the thread that does the work, one call at a time; it must not call the
 * library. A driver may compile a whole model at once, or a kernel only when it runs first:
 * then pieces are done together, or the time goes to a later task. */
LK_API void lk_progress_set(void (*handler)(void *context, const struct lk_progress *progress),
                            void *context);

#ifdef __cplusplus
}
#endif
#endif
