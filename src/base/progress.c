/* Counts the pieces of slow work, of all threads that are at it, and tells the handler. */
#include "base/progress.h"

#include "base/clock.h"
#include <pthread.h>

struct task {
    int users; /* begun, not ended */
    int64_t done, count;
    double begun; /* lk_seconds() */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void (*current)(void *, const struct lk_progress *);
static void *current_context;
static struct task tasks[LK_TASK_COUNT];

void lk_progress_set(void (*handler)(void *, const struct lk_progress *), void *context)
{
    pthread_mutex_lock(&mutex);
    current = handler;
    current_context = context;
    pthread_mutex_unlock(&mutex);
}

static void tell(enum lk_task which)
{
    const struct task *task = &tasks[which];
    const struct lk_progress progress = {
        .task = which,
        .done = task->done,
        .count = task->count,
        .is_over = task->users == 0,
        .seconds = lk_seconds() - task->begun,
    };
    if (current)
        current(current_context, &progress);
}

void lk_progress_begin(enum lk_task which, int64_t count)
{
    struct task *task = &tasks[which];
    pthread_mutex_lock(&mutex);
    if (task->users++ == 0) {
        task->done = task->count = 0;
        task->begun = lk_seconds();
    }
    task->count += count;
    tell(which);
    pthread_mutex_unlock(&mutex);
}

void lk_progress_add(enum lk_task which, int64_t pieces)
{
    pthread_mutex_lock(&mutex);
    tasks[which].done += pieces;
    tell(which);
    pthread_mutex_unlock(&mutex);
}

void lk_progress_end(enum lk_task which)
{
    pthread_mutex_lock(&mutex);
    tasks[which].users--;
    tell(which);
    pthread_mutex_unlock(&mutex);
}
