/* Adds terms along the tree over shards on several threads. */
#define _GNU_SOURCE /* pthread_setname_np() */
#include "mirror/reduce.h"

#include "base/fail.h"
#include "mirror/tree_sum.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* A thread takes blocks of BLOCK bytes of each term until none is left, so that a thread whose
 * core is busy with other work does not hold up the rest. Sums of STREAMED bytes and more, with
 * their copies, would push their terms out of the caches, so they are written past these. */
enum { MOST_THREADS = 256, BLOCK = 64 << 10, STREAMED = 4 << 20 };

/* Checksums and checks of the blocks that one thread has added. */
struct findings {
    uint32_t terms[LK_MOST_SHARDS];
    struct lk_checks sums[LK_MOST_SHARDS];
};

struct plan {
    struct lk_tree_sum sums[LK_MOST_SHARDS];
    int first_term[LK_MOST_SHARDS]; /* of each sum */
    int sum_count;
    uint8_t joins[LK_MOST_SHARDS];
    size_t bytes; /* of a term */
    bool is_checked;
    atomic_size_t next; /* the first byte that no thread has taken */
};

struct lk_reducer {
    pthread_mutex_t mutex; /* guards the members from here to `working` */
    pthread_cond_t work, done;
    bool is_ending, is_open;   /* is_open: the job may still have blocks to take */
    uint64_t jobs;             /* jobs begun so far */
    int taken, working;        /* threads that have joined the job; those still working on it */
    struct plan plan;          /* of the job; written while no thread works */
    struct findings *findings; /* [thread_count + 1], in the order in which threads joined */
    int thread_count;          /* threads beside the caller's */
    pthread_t threads[];
};

/* --- the plan --------------------------------------------------------------------------- */

struct joined {
    struct lk_subtree subtree;
    int first_term;
};

/* Puts the term on the stack of open subtrees; returns how many siblings it joined. */
static int join_term(const struct lk_term *terms, int t, struct joined *open, int *top)
{
    struct joined next = {terms[t].subtree, t};
    int joins = 0;
    while (*top > 0 && lk_subtrees_join(open[*top - 1].subtree, next.subtree)) {
        next = open[--*top];
        next.subtree.count *= 2;
        joins++;
    }
    open[(*top)++] = next;
    return joins;
}

int lk_terms_join(const struct lk_term *terms, int count,
                  struct lk_subtree subtrees[LK_MOST_SHARDS])
{
    struct joined open[LK_MOST_SHARDS];
    int top = 0;
    for (int t = 0; t < count; t++)
        join_term(terms, t, open, &top);
    for (int i = 0; i < top; i++)
        subtrees[i] = open[i].subtree;
    return top;
}

static enum lk_status check_terms(const struct lk_reduction_job *job)
{
    int next = 0;
    if (job->term_count < 1 || job->term_count > LK_MOST_SHARDS)
        return lk_fail(LK_E_ARGUMENT, "reduction: %d terms; expected 1 to %d", job->term_count,
                       LK_MOST_SHARDS);
    for (int t = 0; t < job->term_count; t++) {
        const struct lk_subtree s = job->terms[t].subtree;
        if (s.count < 1 || s.count > LK_MOST_SHARDS || (s.count & (s.count - 1)) ||
            s.first < 0 || s.first % s.count || s.first > LK_MOST_SHARDS - s.count)
            return lk_fail(LK_E_ARGUMENT,
                           "reduction: term %d has %d shards from %d: no subtree of %d shards",
                           t, s.count, s.first, LK_MOST_SHARDS);
        if (s.first < next)
            return lk_fail(LK_E_ARGUMENT,
                           "reduction: term %d begins with shard %d; expected %d or a later "
                           "one, after the term before",
                           t, s.first, next);
        if (!job->terms[t].values)
            return lk_fail(LK_E_ARGUMENT, "reduction: term %d has no values", t);
        next = s.first + s.count;
    }
    return LK_OK;
}

static enum lk_status check_sums(const struct lk_reduction_job *job,
                                 const struct joined *joined, int count)
{
    if (job->sum_count != count)
        return lk_fail(LK_E_ARGUMENT, "reduction: %d sums; the terms give %d", job->sum_count,
                       count);
    for (int i = 0; i < count; i++) {
        const struct lk_reduction_result *sum = &job->sums[i];
        const struct lk_subtree has = sum->subtree, gets = joined[i].subtree;
        if (has.first != gets.first || has.count != gets.count)
            return lk_fail(LK_E_ARGUMENT,
                           "reduction: sum %d has %d shards from %d; the terms give %d from %d",
                           i, has.count, has.first, gets.count, gets.first);
        if (sum->copy_count < 0 || sum->copy_count > LK_MOST_COPIES)
            return lk_fail(LK_E_ARGUMENT, "reduction: %d copies of sum %d; expected 0 to %d",
                           sum->copy_count, i, LK_MOST_COPIES);
        for (int c = 0; c < sum->copy_count; c++)
            if (!sum->copies[c])
                return lk_fail(LK_E_ARGUMENT, "reduction: copy %d of sum %d has no memory", c,
                               i);
    }
    return LK_OK;
}

/* Plans each sum: its terms end where those of the next sum begin. */
static void set_sums(struct plan *plan, const struct lk_reduction_job *job)
{
    size_t written = 0;
    for (int i = 0; i < job->sum_count; i++)
        written += plan->bytes * (size_t)job->sums[i].copy_count;
    for (int i = 0; i < job->sum_count; i++) {
        const int first = plan->first_term[i];
        const int end = i + 1 < job->sum_count ? plan->first_term[i + 1] : job->term_count;
        plan->sums[i] = (struct lk_tree_sum){.terms = job->terms + first,
                                             .term_count = end - first,
                                             .joins = plan->joins + first,
                                             .copies = job->sums[i].copies,
                                             .copy_count = job->sums[i].copy_count,
                                             .is_double = job->dtype == LK_F64,
                                             .is_streamed = written >= STREAMED};
    }
}

static enum lk_status make_plan(struct plan *plan, const struct lk_reduction_job *job)
{
    struct joined joined[LK_MOST_SHARDS];
    int count = 0;
    if (job->dtype != LK_F32 && job->dtype != LK_F64)
        return lk_fail(LK_E_ARGUMENT, "reduction: expected float32 or float64");
    const size_t real_bytes = job->dtype == LK_F64 ? sizeof(double) : sizeof(float);
    if (job->count < 0 || (uint64_t)job->count > PTRDIFF_MAX / real_bytes)
        return lk_fail(LK_E_ARGUMENT, "reduction: %lld values", (long long)job->count);
    LK_TRY(check_terms(job));
    for (int t = 0; t < job->term_count; t++)
        plan->joins[t] = (uint8_t)join_term(job->terms, t, joined, &count);
    LK_TRY(check_sums(job, joined, count));
    for (int i = 0; i < count; i++)
        plan->first_term[i] = joined[i].first_term;
    plan->sum_count = count;
    plan->bytes = (size_t)job->count * real_bytes;
    plan->is_checked = job->checksums != NULL;
    set_sums(plan, job);
    atomic_store(&plan->next, 0);
    return LK_OK;
}

/* --- the work --------------------------------------------------------------------------- */

static void clear_findings(struct findings *found, const struct plan *plan)
{
    memset(found, 0, sizeof *found);
    for (int i = 0; i < plan->sum_count; i++)
        found->sums[i].terms = found->terms + plan->first_term[i];
}

static void take_blocks(struct plan *plan, struct findings *found)
{
    if (plan->is_checked)
        clear_findings(found, plan);
    size_t at;
    while ((at = atomic_fetch_add(&plan->next, BLOCK)) < plan->bytes) {
        const size_t left = plan->bytes - at;
        for (int i = 0; i < plan->sum_count; i++)
            lk_tree_sum(&plan->sums[i], at, left < BLOCK ? left : BLOCK,
                        plan->is_checked ? &found->sums[i] : NULL);
    }
    lk_tree_sum_flush();
}

static void *work(void *context)
{
    struct lk_reducer *reducer = context;
    uint64_t seen = 0;
    pthread_mutex_lock(&reducer->mutex);
    for (;;) {
        while (!reducer->is_ending && (!reducer->is_open || reducer->jobs == seen))
            pthread_cond_wait(&reducer->work, &reducer->mutex);
        if (reducer->is_ending)
            break;
        seen = reducer->jobs;
        reducer->working++;
        struct findings *found = &reducer->findings[reducer->taken++];
        pthread_mutex_unlock(&reducer->mutex);
        take_blocks(&reducer->plan, found);
        pthread_mutex_lock(&reducer->mutex);
        if (--reducer->working == 0)
            pthread_cond_signal(&reducer->done);
    }
    pthread_mutex_unlock(&reducer->mutex);
    return NULL;
}

/* Wakes the threads and adds blocks itself; waits only for threads that have joined by then,
 * not for those that have not even woken up. */
static void run_plan(struct lk_reducer *reducer)
{
    const size_t others = reducer->plan.bytes / BLOCK;
    pthread_mutex_lock(&reducer->mutex);
    reducer->is_open = true;
    reducer->jobs++;
    reducer->taken = 1;
    for (int i = 0; i < reducer->thread_count && (size_t)i < others; i++)
        pthread_cond_signal(&reducer->work);
    pthread_mutex_unlock(&reducer->mutex);
    take_blocks(&reducer->plan, &reducer->findings[0]);
    pthread_mutex_lock(&reducer->mutex);
    reducer->is_open = false;
    while (reducer->working > 0)
        pthread_cond_wait(&reducer->done, &reducer->mutex);
    pthread_mutex_unlock(&reducer->mutex);
}

static void report_findings(const struct lk_reducer *reducer,
                            const struct lk_reduction_job *job)
{
    for (int t = 0; t < job->term_count; t++) {
        job->checksums[t] = 0;
        for (int k = 0; k < reducer->taken; k++)
            job->checksums[t] += reducer->findings[k].terms[t];
    }
    for (int i = 0; i < job->sum_count; i++) {
        struct lk_reduction_result *sum = &job->sums[i];
        sum->checksum = 0;
        sum->is_finite = true;
        for (int k = 0; k < reducer->taken; k++) {
            sum->checksum += reducer->findings[k].sums[i].sum;
            sum->is_finite &= !reducer->findings[k].sums[i].is_infinite;
        }
    }
}

enum lk_status lk_reducer_sum(struct lk_reducer *reducer, const struct lk_reduction_job *job)
{
    LK_TRY(make_plan(&reducer->plan, job));
    run_plan(reducer);
    if (job->checksums)
        report_findings(reducer, job);
    return LK_OK;
}

/* --- the threads ------------------------------------------------------------------------ */

static enum lk_status start_threads(struct lk_reducer *reducer, int count)
{
    for (int i = 0; i < count; i++) {
        if (pthread_create(&reducer->threads[i], NULL, work, reducer) != 0)
            return lk_fail(LK_E_MEMORY, "reducer: thread %d of %d does not start", i + 1,
                           count);
        reducer->thread_count++;
#ifdef __linux__
        pthread_setname_np(reducer->threads[i], "lk-reduce");
#endif
    }
    return LK_OK;
}

enum lk_status lk_reducer_create(int threads, struct lk_reducer **reducer)
{
    if (threads < 1 || threads > MOST_THREADS)
        return lk_fail(LK_E_ARGUMENT, "reducer: %d threads; expected 1 to %d", threads,
                       MOST_THREADS);
    const int others = threads - 1;
    struct lk_reducer *made = calloc(1, sizeof *made + (size_t)others * sizeof(pthread_t));
    struct findings *findings = calloc((size_t)threads, sizeof *findings);
    if (!made || !findings) {
        free(made);
        free(findings);
        return lk_fail_memory("a reducer", sizeof *made + (size_t)threads * sizeof *findings);
    }
    made->findings = findings;
    pthread_mutex_init(&made->mutex, NULL);
    pthread_cond_init(&made->work, NULL);
    pthread_cond_init(&made->done, NULL);
    const enum lk_status status = start_threads(made, others);
    if (status != LK_OK) {
        lk_reducer_destroy(made);
        return status;
    }
    *reducer = made;
    return LK_OK;
}

void lk_reducer_destroy(struct lk_reducer *reducer)
{
    if (!reducer)
        return;
    pthread_mutex_lock(&reducer->mutex);
    reducer->is_ending = true;
    pthread_cond_broadcast(&reducer->work);
    pthread_mutex_unlock(&reducer->mutex);
    for (int i = 0; i < reducer->thread_count; i++)
        pthread_join(reducer->threads[i], NULL);
    pthread_cond_destroy(&reducer->done);
    pthread_cond_destroy(&reducer->work);
    pthread_mutex_destroy(&reducer->mutex);
    free(reducer->findings);
    free(reducer);
}
