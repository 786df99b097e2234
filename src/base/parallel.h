/* Many small pieces of work on threads, whose results are taken one by one in order: what comes
 * out does not depend on the number of threads. Floor 0. Knows no data. */
#ifndef LK_BASE_PARALLEL_H
#define LK_BASE_PARALLEL_H

#include <lockstep/status.h>
#include <stdatomic.h>
#include <stdint.h>

struct lk_parallel {
    int threads;
    int64_t count;     /* pieces, numbered from 0 */
    int64_t window;    /* pieces that are worked on or wait to be taken, at most */
    atomic_bool *stop; /* set: nothing more is begun */
    void *context;
    enum lk_status (*work)(void *context, int64_t i); /* any thread */
    enum lk_status (*take)(void *context, int64_t i); /* the calling thread, in order */
};

/* Works on all pieces and takes them. Ends at the first, in order, that fails, with its
 * message; results behind it are not taken. fails: as work and take; LK_E_INTERRUPTED after
 * stop */
LK_MUST_CHECK enum lk_status lk_parallel_run(const struct lk_parallel *crew);

/* The cores of the machine that this process may use (taskset): 1 to `most`. */
int lk_parallel_cores(int most);

/* As many threads as it has such cores; wanted > 0: that many. */
int lk_parallel_threads(int wanted);

/* Lets other threads go before the calling one, where the system can tell threads apart.
 * let_others_on: to be called a few us apart in what such a thread does, nothing in others. A
 * thread that wakes would else wait for the next tick of the system's clock, milliseconds,
 * while a device that is the CPU itself has one core less. */
void lk_thread_give_way(void);
void lk_thread_let_others_on(void);

#endif
