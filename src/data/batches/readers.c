/* Threads that read a batch together. */
#define _GNU_SOURCE /* sched_getaffinity() */
#include "data/batches/readers.h"

#include "base/fail.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>

/* What is being read. */
struct job {
    int64_t batch, first, next, end; /* first..next-1 are read or being read */
    void *const *to;
    int at_work; /* threads that read a share of it */
    bool has_failed;
};

struct lk_readers {
    struct lk_readers_config config;
    pthread_t *threads;
    int started;                /* of interest to who creates and destroys */
    pthread_mutex_t mutex;      /* guards all below */
    pthread_cond_t work, ended; /* work: a job has begun; ended: the last thread left it */
    bool is_busy, ends;
    struct job job; /* nothing is left to take where is_busy is false */
};

/* Reads one thread's share of the job, if one is left; the mutex is released meanwhile. Shares
 * are equal: a thread that got a core for itself would take all that is read at once, and its
 * core's kernels would wait. */
static bool read_share(struct lk_readers *r)
{
    const struct lk_readers_config *c = &r->config;
    struct job *job = &r->job;
    void *to[LK_MOST_FIELDS] = {NULL};
    const int64_t at = job->next;
    const int64_t each = (job->end - job->first + c->threads - 1) / c->threads;
    const int64_t count = job->end - at < each ? job->end - at : each;
    if (count <= 0)
        return false;
    job->next += count;
    job->at_work++;
    for (int f = 0; f < c->field_count; f++)
        if (job->to[f])
            to[f] = (char *)job->to[f] + (size_t)(at - job->first) * c->field_bytes[f];
    const int64_t batch = job->batch;
    pthread_mutex_unlock(&r->mutex);
    const enum lk_status status = c->read(c->context, batch, at, count, to);
    lk_error_clear(); /* the caller reads all again, and gets the error */
    pthread_mutex_lock(&r->mutex);
    job->has_failed |= status != LK_OK;
    if (--job->at_work == 0 && job->next == job->end)
        pthread_cond_signal(&r->ended);
    return true;
}

static void *read_shares(void *argument)
{
    struct lk_readers *r = argument;
    pthread_mutex_lock(&r->mutex);
    while (!r->ends)
        if (!read_share(r))
            pthread_cond_wait(&r->work, &r->mutex);
    pthread_mutex_unlock(&r->mutex);
    return NULL;
}

/* Where there is a thread for each core, it stays there: one that wakes another would keep it
 * on its own core, and all the reading would be taken from what a device computes on that one.
 */
static void keep_apart(struct lk_readers *r)
{
#ifdef __linux__
    cpu_set_t all, one;
    if (sched_getaffinity(0, sizeof all, &all) != 0 || CPU_COUNT(&all) != r->started)
        return;
    for (int i = 0, core = 0; i < r->started; i++, core++) {
        while (!CPU_ISSET(core, &all))
            core++;
        CPU_ZERO(&one);
        CPU_SET(core, &one);
        (void)!pthread_setaffinity_np(r->threads[i], sizeof one, &one);
    }
#else
    (void)r;
#endif
}

enum lk_status lk_readers_create(const struct lk_readers_config *config,
                                 struct lk_readers **readers)
{
    struct lk_readers *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("threads that read together", sizeof *made);
    made->config = *config;
    pthread_mutex_init(&made->mutex, NULL);
    pthread_cond_init(&made->work, NULL);
    pthread_cond_init(&made->ended, NULL);
    made->threads = calloc((size_t)config->threads, sizeof *made->threads);
    bool is_well = made->threads;
    for (int i = 0; i < config->threads && is_well; i++) {
        is_well = pthread_create(&made->threads[i], NULL, read_shares, made) == 0;
        made->started += is_well;
    }
    if (!is_well) {
        lk_readers_destroy(made);
        return lk_fail(LK_E_MEMORY, "cannot start a thread");
    }
    keep_apart(made);
    *readers = made;
    return LK_OK;
}

void lk_readers_destroy(struct lk_readers *readers)
{
    if (!readers)
        return;
    pthread_mutex_lock(&readers->mutex);
    readers->ends = true;
    pthread_cond_broadcast(&readers->work);
    pthread_mutex_unlock(&readers->mutex);
    for (int i = 0; i < readers->started; i++)
        pthread_join(readers->threads[i], NULL);
    pthread_cond_destroy(&readers->ended);
    pthread_cond_destroy(&readers->work);
    pthread_mutex_destroy(&readers->mutex);
    free(readers->threads);
    free(readers);
}

static double bytes_of(const struct lk_readers_config *c, int64_t count, void *const to[])
{
    double sum = 0;
    for (int f = 0; f < c->field_count; f++)
        sum += to[f] ? (double)count * (double)c->field_bytes[f] : 0;
    return sum;
}

enum lk_status lk_readers_read(struct lk_readers *r, int64_t batch, int64_t first,
                               int64_t count, void *const to[])
{
    const struct lk_readers_config *c = &r->config;
    if (bytes_of(c, count, to) < LK_LEAST_SHARED)
        return c->read(c->context, batch, first, count, to);
    pthread_mutex_lock(&r->mutex);
    const bool is_first = !r->is_busy;
    bool has_failed = false;
    if (is_first) {
        r->is_busy = true;
        r->job = (struct job){
            .batch = batch, .first = first, .next = first, .end = first + count, .to = to};
        pthread_cond_broadcast(&r->work);
        while (r->job.next < r->job.end || r->job.at_work > 0)
            pthread_cond_wait(&r->ended, &r->mutex);
        has_failed = r->job.has_failed;
        r->is_busy = false;
    }
    pthread_mutex_unlock(&r->mutex);
    return is_first && !has_failed ? LK_OK : c->read(c->context, batch, first, count, to);
}
