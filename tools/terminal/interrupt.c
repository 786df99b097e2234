/* Catches signals: the first asks the running work to stop, the second ends the program. */
#include "terminal/interrupt.h"

#include "command.h"
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Signals within so many nanoseconds are one wish: of a terminal that is closed the shell tells
 * as the kernel does, and timeout(1) tells a program and its group. */
enum { TOGETHER = 200000000 };

static const struct interrupt_words *words;
static _Atomic(void *) running;
static _Atomic(int64_t) first_at; /* when the first came, ns; 0: none has */
static atomic_int looking;        /* threads that may be about to stop what runs */

/* A terminal that was stopped, or a pipe that nobody reads, is told nothing: whoever waited for
 * it could not be ended by a second signal. */
static void write_text(const char *text)
{
    struct pollfd stream = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (text && poll(&stream, 1, 0) == 1 && stream.revents & POLLOUT)
        (void)!write(STDERR_FILENO, text, strlen(text));
}

static bool stop_running(void)
{
    atomic_fetch_add(&looking, 1);
    void *what = atomic_load(&running);
    if (what)
        words->stop(what);
    atomic_fetch_sub(&looking, 1);
    return what != NULL;
}

static int64_t nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec + 1;
}

/* On whichever thread the system has chosen, as another one may not be able to run. */
static void interrupt(int number)
{
    const int before = errno;
    const int64_t now = nanoseconds();
    int64_t first = 0;
    (void)number;
    const bool is_first = atomic_compare_exchange_strong(&first_at, &first, now);
    if (!is_first && now - first < TOGETHER)
        return;
    if (!is_first || !stop_running()) {
        write_text(words->second);
        _exit(INTERRUPTED);
    }
    write_text(words->first);
    errno = before;
}

void interrupt_catch(const struct interrupt_words *said)
{
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = SA_RESTART}, before;
    words = said;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGUSR2, &action, NULL);
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

void interrupt_set_running(void *what)
{
    atomic_store(&running, what);
    while (atomic_load(&looking) > 0) /* what ran before may be destroyed afterwards */
        sched_yield();
}

bool interrupt_came(void)
{
    return atomic_load(&first_at) > 0;
}
