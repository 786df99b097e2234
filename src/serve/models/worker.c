/* The worker of a version: gathers jobs into batches and computes them. */
#include "base/clock.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/transpose.h"
#include "serve/models/served.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* --- a batch ------------------------------------------------------------------------------
 */

/* [c, h, w] to [h, w, c], unless it is to stay as it is. */
static void put_output(const struct lk_signature *s, int o, const float *from, float *to)
{
    const struct lk_shape *own = &s->own_shapes[o];
    if (!s->is_turned[o]) {
        memcpy(to, from, (size_t)s->output_elements[o] * sizeof *to);
        return;
    }
    lk_transpose(from, own->dim[0], own->dim[1] * own->dim[2], to);
}

/* Samples at to at + count - 1 of all jobs in their order, into the worker's arrays or back. */
static void move(struct lk_version *v, struct lk_job *jobs, int64_t at, int64_t count,
                 bool is_back)
{
    const struct lk_signature *s = &v->signature;
    int64_t begin = 0;
    for (struct lk_job *job = jobs; job; begin += job->count, job = job->behind) {
        const int64_t from = at > begin ? at - begin : 0;
        const int64_t end = lk_least(job->count, at + count - begin);
        for (int64_t n = from; n < end; n++) {
            const int64_t place = begin + n - at;
            for (int i = 0; !is_back && i < s->input_count; i++)
                memcpy(v->inputs[i] + (size_t)place * s->input_bytes[i],
                       lk_job_sample(job, i, n), s->input_bytes[i]);
            for (int o = 0; is_back && o < s->output_count; o++)
                put_output(s, o, v->outputs[o] + place * s->output_elements[o],
                           job->outputs[o] + n * s->output_elements[o]);
        }
    }
}

/* From now on the worker waits for the device, which may take some seconds more than usual. */
static void begin_wait(struct lk_version *v, double more)
{
    pthread_mutex_lock(&v->mutex);
    v->waits_since = lk_seconds() + more;
    pthread_mutex_unlock(&v->mutex);
}

/* False: that was too long, and the jobs have been answered by another thread. */
static bool end_wait(struct lk_version *v)
{
    pthread_mutex_lock(&v->mutex);
    v->waits_since = 0;
    const bool is_hung = v->is_hung;
    pthread_mutex_unlock(&v->mutex);
    return !is_hung;
}

static enum lk_status predict(struct lk_version *v, struct lk_job *jobs, int64_t samples)
{
    const int64_t most = v->served->options->max_batch;
    for (int64_t at = 0; at < samples; at += most) {
        const int64_t count = lk_least(most, samples - at);
        const void *from[LK_MOST_INPUTS];
        for (int i = 0; i < LK_MOST_INPUTS; i++)
            from[i] = v->inputs[i];
        move(v, jobs, at, count, false);
        begin_wait(v, 0);
        const enum lk_status status = lk_predictor_run_fields(v->used, count, from, v->outputs);
        if (!end_wait(v))
            return LK_E_INTERRUPTED;
        LK_TRY(status);
        move(v, jobs, at, count, true);
    }
    return LK_OK;
}

static enum lk_status predict_surely(struct lk_version *v, struct lk_job *jobs, int64_t samples)
{
    enum lk_status status =
        v->used ? predict(v, jobs, samples) : lk_fail(LK_E_DEVICE, "its device has failed");
    if (!lk_status_is_of_device(status))
        return status;
    begin_wait(v, 9 * v->hang_seconds); /* kernels may have to be built */
    status = lk_version_reopen(v);
    if (!end_wait(v))
        return LK_E_INTERRUPTED;
    LK_TRY(status);
    return predict(v, jobs, samples);
}

/* Texts become tokens, which is the predictor's affair and so the worker's. */
static enum lk_status prepare(struct lk_version *v, struct lk_job *job)
{
    const struct lk_signature *s = &v->signature;
    for (int64_t n = 0; job->texts && n < job->count; n++) {
        void *to[LK_MOST_INPUTS] = {NULL};
        for (int i = 0; i < s->input_count; i++)
            to[i] = lk_job_sample(job, i, n);
        if (job->texts[n].bytes)
            LK_TRY(lk_predictor_take_text(v->used ? v->used : v->first, job->texts[n].bytes,
                                          job->texts[n].count, to));
    }
    for (int o = 0; o < s->output_count; o++) {
        const size_t bytes = (size_t)job->count * (size_t)s->output_elements[o] * sizeof(float);
        job->outputs[o] = malloc(bytes + 1);
        if (!job->outputs[o])
            return lk_fail_memory("predictions", bytes);
    }
    return LK_OK;
}

/* All jobs of a list, which are gone then. What they end with is this thread's last failure,
 * which answering forgets. */
static void finish(struct lk_job *jobs, enum lk_status status)
{
    char error[LK_JOB_ERROR];
    snprintf(error, sizeof error, "%s", lk_error_text());
    for (struct lk_job *job = jobs, *behind; job; job = behind) {
        behind = job->behind;
        job->status = status;
        memcpy(job->error, error, sizeof error);
        job->done(job);
    }
    lk_error_clear();
}

static void set_taken(struct lk_version *v, struct lk_job *jobs)
{
    pthread_mutex_lock(&v->mutex);
    v->taken = jobs;
    pthread_mutex_unlock(&v->mutex);
}

/* False: the device hangs, and the jobs are no longer the worker's. */
static bool compute(struct lk_version *v, struct lk_job *jobs)
{
    struct lk_job *ready = NULL, **last = &ready;
    const double begun = lk_seconds();
    int64_t samples = 0;
    for (struct lk_job *job = jobs, *behind; job; job = behind) {
        behind = job->behind;
        job->behind = NULL;
        const enum lk_status status = prepare(v, job);
        if (status != LK_OK) {
            finish(job, status);
            continue;
        }
        *last = job;
        last = &job->behind;
        samples += job->count;
    }
    set_taken(v, ready);
    const enum lk_status status = ready ? predict_surely(v, ready, samples) : LK_OK;
    if (v->is_hung) /* which nobody sets while the worker waits for nothing */
        return false;
    set_taken(v, NULL);
    if (ready)
        lk_counts_add_batch(&v->served->counts, samples, lk_seconds() - begun);
    finish(ready, status);
    return true;
}

/* --- the worker ---------------------------------------------------------------------------
 */

static void wait_until(struct lk_version *v, double end)
{
    const time_t whole = (time_t)end;
    const struct timespec time = {whole, (long)((end - (double)whole) * 1e9)};
    (void)pthread_cond_timedwait(&v->news, &v->mutex, &time);
}

/* Jobs for one batch; one of more samples than that comes alone. NULL: it ends. The mutex is
 * held. */
static struct lk_job *gather(struct lk_version *v)
{
    const struct lk_serve_options *o = v->served->options;
    while (!v->jobs && !v->ends)
        pthread_cond_wait(&v->news, &v->mutex);
    if (!v->jobs)
        return NULL;
    const double end = v->jobs->queued + o->max_delay_ms / 1e3;
    while (v->waiting < o->max_batch && !v->ends && lk_seconds() < end)
        wait_until(v, end);
    struct lk_job *first = v->jobs, *job = first;
    int64_t samples = first->count;
    for (; job->behind && samples + job->behind->count <= o->max_batch; job = job->behind)
        samples += job->behind->count;
    v->jobs = job->behind;
    if (!v->jobs)
        v->last = &v->jobs;
    job->behind = NULL;
    v->waiting -= samples;
    lk_counts_add_waiting(&v->served->counts, -samples);
    return first;
}

void *lk_version_work(void *version)
{
    struct lk_version *v = version;
    struct lk_job *jobs;
    pthread_mutex_lock(&v->mutex);
    while ((jobs = gather(v)) != NULL) {
        pthread_mutex_unlock(&v->mutex);
        if (!compute(v, jobs))
            return NULL;
        pthread_mutex_lock(&v->mutex);
    }
    pthread_mutex_unlock(&v->mutex);
    return NULL;
}

/* Takes all jobs from a worker that has waited for its device too long. NULL: it has not. */
static struct lk_job *take_from(struct lk_version *v)
{
    pthread_mutex_lock(&v->mutex);
    struct lk_job *jobs = NULL, **last = &jobs;
    if (!v->is_hung && v->waits_since > 0 && lk_seconds() - v->waits_since > v->hang_seconds) {
        v->is_hung = true;
        jobs = v->taken;
        while (*last)
            last = &(*last)->behind;
        *last = v->jobs;
        v->taken = v->jobs = NULL;
        v->last = &v->jobs;
        lk_counts_add_waiting(&v->served->counts, -v->waiting);
        v->waiting = 0;
    }
    pthread_mutex_unlock(&v->mutex);
    return jobs;
}

bool lk_version_check(struct lk_version *version)
{
    struct lk_job *jobs = take_from(version);
    if (jobs) {
        lk_log(LK_LOG_WARNING, "model '%s': its device has not answered for %g s",
               version->served->name, version->hang_seconds);
        finish(jobs, lk_fail(LK_E_DEVICE, "the device does not answer"));
    }
    return !version->is_hung;
}

enum lk_submitted lk_version_submit(struct lk_version *version, struct lk_job *job)
{
    struct lk_version *v = version;
    job->queued = lk_seconds();
    job->behind = NULL;
    pthread_mutex_lock(&v->mutex);
    const bool fits =
        v->waiting == 0 || v->waiting + job->count <= v->served->options->max_queue;
    const enum lk_submitted result = v->is_hung ? LK_DEVICE_HANGS
                                     : fits     ? LK_SUBMITTED
                                                : LK_QUEUE_IS_FULL;
    if (result == LK_SUBMITTED) {
        *v->last = job;
        v->last = &job->behind;
        v->waiting += job->count;
        lk_counts_add_waiting(&v->served->counts, job->count);
        pthread_cond_signal(&v->news);
    }
    pthread_mutex_unlock(&v->mutex);
    return result;
}
