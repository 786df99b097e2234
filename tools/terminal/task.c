/* Shows what the library tells of slow work. */
#include "terminal/task.h"

#include "terminal/status.h"
#include "terminal/terminal.h"
#include <inttypes.h>
#include <lockstep/progress.h>
#include <lockstep/train.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

/* Seconds that work lasts before it is shown in the status line, or told as a line. */
static const double SHOWN_AFTER = 0.3, TOLD_AFTER = 1;

/* done NULL: no lines are written of it. */
static const struct words {
    const char *doing, *done, *pieces;
} words[LK_TASK_COUNT] = {
    [LK_TASK_BUILD] = {"building kernels", "kernels built", "programs"},
    [LK_TASK_CHECK] = {"checking kernels", "kernels checked", "operations"},
    [LK_TASK_MEASURE] = {"measuring kernels", "kernels measured", "operations"},
    [LK_TASK_EVALUATE] = {"evaluating", NULL, NULL},
    [LK_TASK_FEATURES] = {"computing features", "features computed", "samples"},
};

struct shown {
    struct lk_progress progress;
    double began; /* monotonic seconds */
    bool is_told; /* a line has been written */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of all tasks */
static struct shown tasks[LK_TASK_COUNT];
static bool has_lines, only_building;

static double clock_seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* "building kernels 3/19  12 s"; of a narrow window what fits. */
static void draw(const void *from, int columns, char text[STATUS_TEXT])
{
    const struct shown *shown = from;
    const struct lk_progress *p = &shown->progress;
    const double seconds = clock_seconds() - shown->began;
    if (seconds < SHOWN_AFTER)
        return;
    int used = snprintf(text, STATUS_TEXT, "%s %" PRId64 "/%" PRId64, words[p->task].doing,
                        p->done, p->count);
    if (used + 8 <= columns)
        used += snprintf(text + used, STATUS_TEXT - (size_t)used, "  %.0f s", seconds);
    if (used > columns)
        text[columns] = '\0';
}

/* Of work within other work the outer one counts, which began first; NULL: nothing is done. */
static struct shown *outermost(void)
{
    struct shown *first = NULL;
    for (int i = 0; i < LK_TASK_COUNT; i++)
        if (tasks[i].progress.count > 0 && !tasks[i].progress.is_over &&
            (!first || tasks[i].began < first->began))
            first = &tasks[i];
    return first;
}

/* Where there is no status line: work that lasts is told when it has lasted. */
static void tell(void)
{
    pthread_mutex_lock(&mutex);
    struct shown *task = has_lines ? outermost() : NULL;
    if (task && !task->is_told && clock_seconds() - task->began > TOLD_AFTER &&
        words[task->progress.task].done) {
        const struct words *w = &words[task->progress.task];
        say("%s (%" PRId64 " %s) ...", w->doing, task->progress.count, w->pieces);
        task->is_told = true;
    }
    pthread_mutex_unlock(&mutex);
}

static void handle(void *context, const struct lk_progress *progress)
{
    struct shown *task = &tasks[progress->task];
    (void)context;
    if (only_building && progress->task != LK_TASK_BUILD)
        return;
    pthread_mutex_lock(&mutex);
    task->progress = *progress;
    task->began = clock_seconds() - progress->seconds;
    if (progress->is_over && task->is_told && progress->done == progress->count)
        say("%s in %.1f s", words[progress->task].done, progress->seconds);
    task->is_told &= !progress->is_over;
    const struct shown *outer = outermost();
    if (outer)
        status_show(STATUS_TASK, draw, outer, sizeof *outer);
    else
        status_hide(STATUS_TASK);
    pthread_mutex_unlock(&mutex);
}

void task_start(void)
{
    has_lines = !terminal_has_status();
    if (lk_rank() > 0) /* the first speaks for all */
        return;
    status_set_tick(tell);
    lk_progress_set(handle, NULL);
}

void task_quiet(void)
{
    lk_progress_set(NULL, NULL);
    status_set_tick(NULL);
    status_hide(STATUS_TASK);
}

void task_only_building(void)
{
    only_building = true;
    has_lines = false;
}
