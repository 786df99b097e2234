/* The status line: a line on stderr that is written over again and again, on terminals only.
 * The cursor rests on its first column, so that it is found again where a window that became
 * narrow has broken the line into several. */
#ifndef TOOLS_STATUS_H
#define TOOLS_STATUS_H

#include <stdbool.h>
#include <stddef.h>

enum { STATUS_TEXT = 1024, STATUS_BYTES = 2048 };

/* What wants to be shown; of several what was shown last. */
enum status_layer { STATUS_MAIN, STATUS_TASK, STATUS_LAYERS };

/* Shows what draw() writes: a text of at most `columns` columns, "" for none at present. `from`
 * is handed to it as a copy. It is drawn again, ten times a second, on a thread of its own, so
 * that it follows the window and the time. */
void status_show(enum status_layer layer,
                 void (*draw)(const void *from, int columns, char text[STATUS_TEXT]),
                 const void *from, size_t bytes);
void status_hide(enum status_layer layer);

/* Called whenever something is drawn again, on terminals and elsewhere. */
void status_set_tick(void (*tick)(void));

/* Writes lines on stderr; the status line gives way. Where nobody reads them for a while they
 * are left out, and counted, see outlet.h. */
void status_message(const char *text, size_t bytes);

struct scene;

/* Writes all lines of a scene likewise. */
void status_print(const struct scene *scene);

#endif
