/* Ctrl-C and its kin, for subcommands that take long: a first one asks what is running to stop,
 * a second one ends the program. */
#ifndef TOOLS_INTERRUPT_H
#define TOOLS_INTERRUPT_H

#include <stdbool.h>

struct interrupt_words {
    void (*stop)(void *running);
    const char *first, *second; /* said on stderr; NULL: nothing */
};

/* Catches SIGINT, SIGTERM, SIGHUP (unless nohup says otherwise) and SIGUSR2, which mpirun hands
 * on; a reader of stdout that goes away ends nothing any more. `words` live on. */
void interrupt_catch(const struct interrupt_words *words);

/* What the next interrupt asks to stop; NULL: nothing, it ends the program. */
void interrupt_set_running(void *running);

bool interrupt_came(void);

#endif
