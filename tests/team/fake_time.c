/* Time for teams of fake devices: see fake_time.h. */
#include "fake_time.h"

#include "base/clock.h"
#include "team/workers/internal.h"
#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

static _Atomic double now = 1000;

/* The team that is watched, and its devices' threads; the team's mutex guards them. */
static struct lk_team *watched;
static struct fake_thread {
    bool waits, hangs; /* for a command; for ever */
    double works_to;   /* 0: its time is not counted */
} threads[LK_MOST_TEAM];

double __wrap_lk_seconds(void);
int __real_pthread_cond_wait(pthread_cond_t *, pthread_mutex_t *);
int __wrap_pthread_cond_wait(pthread_cond_t *, pthread_mutex_t *);
int __real_pthread_cond_timedwait(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
int __wrap_pthread_cond_timedwait(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);

static void sleep_a_moment(void)
{
    nanosleep(&(struct timespec){0, 100000}, NULL);
}

double __wrap_lk_seconds(void)
{
    return now;
}

void fake_time_watch(struct lk_team *team)
{
    if (watched)
        pthread_mutex_lock(&watched->mutex);
    struct lk_team *last = watched;
    watched = team;
    for (int i = 0; i < LK_MOST_TEAM; i++)
        threads[i] = (struct fake_thread){.waits = false};
    if (last)
        pthread_mutex_unlock(&last->mutex);
}

/* --- what devices do --------------------------------------------------------------------- */

static struct fake_thread *thread_of(const struct lk_worker *worker)
{
    static struct fake_thread of_another_team;
    return worker->team == watched ? &threads[worker->position] : &of_another_team;
}

void fake_time_pass(const struct lk_worker *worker, int ms)
{
    const double end = now + 1e-3 * ms;
    pthread_mutex_lock(&worker->team->mutex);
    thread_of(worker)->works_to = end;
    pthread_mutex_unlock(&worker->team->mutex);
    while (now < end)
        sleep_a_moment();
    pthread_mutex_lock(&worker->team->mutex);
    thread_of(worker)->works_to = 0;
    pthread_mutex_unlock(&worker->team->mutex);
}

_Noreturn void fake_time_hang(const struct lk_worker *worker)
{
    pthread_mutex_lock(&worker->team->mutex);
    thread_of(worker)->hangs = true;
    pthread_mutex_unlock(&worker->team->mutex);
    for (;;)
        pause();
}

/* The mutex is held. */
int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    struct fake_thread *waiting = NULL;
    for (int i = 0; watched && i < watched->count; i++)
        if (condition == &watched->workers[i]->queue.filled)
            waiting = &threads[i];
    if (waiting)
        waiting->waits = true;
    const int error = __real_pthread_cond_wait(condition, mutex);
    if (waiting)
        waiting->waits = false;
    return error;
}

/* --- time -------------------------------------------------------------------------------- */

/* Whether nothing comes of a device before time goes on. */
static bool is_still(const struct lk_worker *worker)
{
    const struct fake_thread *thread = &threads[worker->position];
    const bool has_thread = worker->state == LK_WORKER_RESTING ||
                            (lk_worker_is_at_work(worker) && worker->state != LK_WORKER_FAILED);
    return !has_thread || thread->hangs || thread->works_to > now ||
           (thread->waits && worker->queue.count == 0);
}

/* When the first device will be done; the mutex is held. 0: one is at work. INFINITY: none
 * will ever be. */
static double next_end(const struct lk_team *team)
{
    double end = INFINITY;
    for (int i = 0; i < team->count; i++) {
        if (!is_still(team->workers[i]))
            return 0;
        if (threads[i].works_to > now)
            end = fmin(end, threads[i].works_to);
    }
    return end;
}

/* Ends at times without a signal; who waits looks again. The mutex is held. */
int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                  const struct timespec *at)
{
    if (!watched || condition != &watched->changed)
        return __real_pthread_cond_timedwait(condition, mutex, at);
    const double until = (double)at->tv_sec + 1e-9 * (double)at->tv_nsec + 2e-9;
    const double end = next_end(watched);
    if (end > until) {
        now = fmax(now, until);
        return ETIMEDOUT;
    }
    if (end > 0)
        now = end;
    pthread_mutex_unlock(mutex);
    sleep_a_moment();
    pthread_mutex_lock(mutex);
    return 0;
}

bool fake_time_reaches(struct lk_team *team, const struct lk_worker *worker,
                       enum lk_worker_state state)
{
    while (worker->state != state) {
        const double end = next_end(team);
        if (end == INFINITY)
            return false;
        if (end > 0)
            now = end;
        pthread_mutex_unlock(&team->mutex);
        sleep_a_moment();
        pthread_mutex_lock(&team->mutex);
    }
    return true;
}
