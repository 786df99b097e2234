/* Catches signals: the first asks the running work to stop, the second ends the program. */
#include "terminal/interrupt.h"

#include "command.h"
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static const struct interrupt_words *words;
static _Atomic(void *) running;
static atomic_int interrupts;
static atomic_int looking; /* threads that may be about to stop what runs */

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

/* On whichever thread the system has chosen, as another one may not be able to run. */
static void interrupt(int number)
{
    const int before = errno;
    (void)number;
    if (atomic_fetch_add(&interrupts, 1) > 0 || !stop_running()) {
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
    return atomic_load(&interrupts) > 0;
}
