/* Work on several threads whose results are taken in order, on the caller's thread. */
#define _GNU_SOURCE /* sched_getaffinity() */
#include "base/parallel.h"

#include "base/fail.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum { MOST_THREADS = 256 };

/* How a piece of work ended. Errors are kept for each thread, so the text is handed over with
 * the result. */
struct outcome {
    bool is_there;
    enum lk_status status;
    char text[1024];
};

struct run {
    const struct lk_parallel *crew;
    struct outcome *outcomes; /* [window]: of piece i at i % window */
    pthread_mutex_t mutex;    /* of all below */
    pthread_cond_t room, news;
    int64_t next, taken; /* the piece to begin, to take */
    bool ends;
};

static void work_on(struct run *run, int64_t i)
{
    const struct lk_parallel *crew = run->crew;
    struct outcome *outcome = &run->outcomes[i % crew->window];
    pthread_mutex_unlock(&run->mutex);
    outcome->status = crew->work(crew->context, i);
    if (outcome->status != LK_OK)
        snprintf(outcome->text, sizeof outcome->text, "%s", lk_error_text());
    lk_error_clear();
    pthread_mutex_lock(&run->mutex);
    outcome->is_there = true;
    pthread_cond_signal(&run->news);
}

static void *help(void *argument)
{
    struct run *run = argument;
    const struct lk_parallel *crew = run->crew;
    pthread_mutex_lock(&run->mutex);
    while (!run->ends && run->next < crew->count)
        if (run->next < run->taken + crew->window)
            work_on(run, run->next++);
        else
            pthread_cond_wait(&run->room, &run->mutex);
    pthread_mutex_unlock(&run->mutex);
    return NULL;
}

/* Waits for piece i and takes it; the mutex is released while it is taken. */
static enum lk_status take(struct run *run, int64_t i)
{
    const struct lk_parallel *crew = run->crew;
    struct outcome *outcome = &run->outcomes[i % crew->window];
    pthread_mutex_lock(&run->mutex);
    while (!outcome->is_there)
        pthread_cond_wait(&run->news, &run->mutex);
    pthread_mutex_unlock(&run->mutex);
    enum lk_status status = outcome->status;
    if (atomic_load(crew->stop))
        return lk_fail(LK_E_INTERRUPTED, "interrupted");
    if (status != LK_OK)
        return lk_fail(status, "%s", outcome->text);
    status = crew->take(crew->context, i);
    pthread_mutex_lock(&run->mutex);
    outcome->is_there = false;
    run->taken++;
    pthread_cond_signal(&run->room);
    pthread_mutex_unlock(&run->mutex);
    return status;
}

static enum lk_status run_with(struct run *run, pthread_t *threads)
{
    int started = 0;
    enum lk_status status = LK_OK;
    while (started < run->crew->threads &&
           pthread_create(&threads[started], NULL, help, run) == 0)
        started++;
    if (started == 0)
        status = lk_fail(LK_E_MEMORY, "cannot start a thread");
    for (int64_t i = 0; i < run->crew->count && status == LK_OK; i++)
        status = take(run, i);
    pthread_mutex_lock(&run->mutex);
    run->ends = true;
    pthread_cond_broadcast(&run->room);
    pthread_mutex_unlock(&run->mutex);
    while (started > 0)
        pthread_join(threads[--started], NULL);
    return status;
}

enum lk_status lk_parallel_run(const struct lk_parallel *crew)
{
    struct run run = {.crew = crew};
    pthread_t *threads = calloc((size_t)crew->threads, sizeof *threads);
    run.outcomes = calloc((size_t)crew->window, sizeof *run.outcomes);
    enum lk_status status = LK_OK;
    if (!threads || !run.outcomes) {
        status = lk_fail_memory("threads", (size_t)crew->window * sizeof *run.outcomes);
    } else {
        pthread_mutex_init(&run.mutex, NULL);
        pthread_cond_init(&run.room, NULL);
        pthread_cond_init(&run.news, NULL);
        status = run_with(&run, threads);
        pthread_cond_destroy(&run.news);
        pthread_cond_destroy(&run.room);
        pthread_mutex_destroy(&run.mutex);
    }
    free(run.outcomes);
    free(threads);
    return status;
}

int lk_parallel_cores(int most)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
#ifdef CPU_COUNT
    cpu_set_t ours;
    if (sched_getaffinity(getpid(), sizeof ours, &ours) == 0)
        cores = CPU_COUNT(&ours);
#endif
    return cores < 1 ? 1 : cores > most ? most : (int)cores;
}

int lk_parallel_threads(int wanted)
{
    if (wanted <= 0)
        return lk_parallel_cores(MOST_THREADS);
    return wanted > MOST_THREADS ? MOST_THREADS : wanted;
}

static _Thread_local bool gives_way;

/* On Linux a thread has a priority of its own, of which POSIX knows nothing. */
void lk_thread_give_way(void)
{
    gives_way = true;
#ifdef __linux__
    (void)!setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + 10);
#endif
}

void lk_thread_let_others_on(void)
{
    if (gives_way)
        sched_yield();
}
