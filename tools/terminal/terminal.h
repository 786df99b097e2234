/* Where the program writes: messages and one status line on stderr, results on stdout. */
#ifndef TOOLS_TERMINAL_H
#define TOOLS_TERMINAL_H

#include <stdbool.h>

/* Reads the locale, takes over the library's messages and what it tells of slow work. */
void terminal_start(void);

/* Library messages below warnings are dropped from now on, and slow work is not shown. */
void terminal_quiet(void);

/* "lockstep: ..." (or "lockstep: rank 2: ...", of a job) and a newline on stderr; a status line
 * gives way. A terminal gets lines that break between words. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A line without prefix on stderr; a status line gives way. */
void say_plain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A status line can be shown: stderr is a terminal that moves its cursor. */
bool terminal_has_status(void);

/* Columns of the terminal now; asked anew each time, so a resized window needs no signal. */
int terminal_columns(void);

/* Columns of the terminal that stdout is; 0: it is none, and lines may have any length. */
int terminal_result_columns(void);

/* Its rows; 0: it is no terminal, or one that does not move its cursor. */
int terminal_result_rows(void);

/* Colours may be used there: a terminal, of which NO_COLOR does not say otherwise. */
enum terminal_stream { STDOUT_TERMINAL = 1, STDERR_TERMINAL = 2 };
bool terminal_has_colour(enum terminal_stream stream);

/* A line or several on stdout; on a terminal they break between words. What comes from files
 * may be in it. */
void print_lines(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Characters beyond ASCII can be shown. */
bool terminal_has_unicode(void);

/* Replaces the status line, cut where the window is too narrow; nothing where there can be
 * none. NULL removes it. */
void terminal_status(const char *text);

/* Columns that a foreign text takes, if each character takes one. */
int terminal_width(const char *text);

/* Prints a foreign text in `width` columns, cut where it has more; 0: in those it takes. The
 * terminal's own codes are not let through, as in messages. */
void terminal_print(const char *text, int width);

/* Flushes stdout. Returns false where something written to it was lost (a full disk). */
bool terminal_flush(void);

#endif
