/* Ctrl-C and similar signals, for subcommands that take long: the first asks the work to stop
 * in good order, a second one ends the program. Signals within 0.2 s of the first are the same
 * wish. */
#ifndef TOOLS_INTERRUPT_H
#define TOOLS_INTERRUPT_H

#include <stdbool.h>

struct interrupt_words {
    void (*stop)(void *running); /* on any thread, within a signal handler */
    const char *first, *second;  /* said on stderr; NULL: nothing */
};

/* Catches SIGINT, SIGTERM, SIGHUP (unless nohup ignores it) and SIGUSR2, which mpirun forwards;
 * ignores SIGPIPE, so that a closed stdout is a write error. `words` must outlive the program's
 * work. */
void interrupt_catch(const struct interrupt_words *words);

/* What the next interrupt asks to stop; NULL: nothing, it ends the program. */
void interrupt_set_running(void *running);

bool interrupt_came(void);

#endif
