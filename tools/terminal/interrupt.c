/* Catches signals: the first asks the running work to stop, the second ends the program. */
#include "terminal/interrupt.h"

#include "command.h"
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static const struct interrupt_words *words;
static pthread_t main_thread;
static _Atomic(void *) running; /* stored by the main thread */
static atomic_int interrupts;

static void write_text(const char *text)
{
    if (text)
        (void)!write(STDERR_FILENO, text, strlen(text));
}

/* The main thread alone acts, so that it cannot destroy what runs meanwhile; others hand the
 * signal on. */
static void interrupt(int number)
{
    if (!pthread_equal(pthread_self(), main_thread)) {
        pthread_kill(main_thread, number);
        return;
    }
    void *what = atomic_load(&running);
    if (atomic_fetch_add(&interrupts, 1) == 0 && what) {
        words->stop(what);
        write_text(words->first);
        return;
    }
    write_text(words->second);
    _exit(INTERRUPTED);
}

void interrupt_catch(const struct interrupt_words *said)
{
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = SA_RESTART}, before;
    words = said;
    main_thread = pthread_self();
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
}

bool interrupt_came(void)
{
    return atomic_load(&interrupts) > 0;
}
