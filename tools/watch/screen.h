/* The whole window of a terminal, for as long as something is shown in it: another screen than
 * the shell's, no echo, no cursor, keys one by one. All is as before when it is left. */
#ifndef TOOLS_SCREEN_H
#define TOOLS_SCREEN_H

#include <stdbool.h>

enum screen_news {
    SCREEN_TIME,        /* nothing happened for the time that was given */
    SCREEN_WINDOW,      /* has another size */
    SCREEN_QUIT,        /* q, or the terminal is gone */
    SCREEN_INTERRUPTED, /* Ctrl-C, or another signal to end */
};

/* Catches the signals that end or stop a program. is_full: stdout is a terminal that is taken
 * over. */
void screen_enter(bool is_full);
void screen_leave(void);

/* Waits for so many milliseconds, or until there is news. */
enum screen_news screen_wait(int ms);

/* Replaces what the window of so many rows shows: texts of lines, each no longer than it is
 * wide. */
void screen_draw(const char *const *lines, int count, int rows);

#endif
