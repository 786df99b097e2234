/* Writes to stdout and stderr so that a reader who stops reading holds nothing up for long: a
 * pipe that is full, a terminal that was stopped by Ctrl-S. */
#ifndef TOOLS_OUTLET_H
#define TOOLS_OUTLET_H

#include <stdbool.h>
#include <stddef.h>

struct outlet;
extern struct outlet *const outlet_result;  /* stdout; what stdio keeps for it is not flushed */
extern struct outlet *const outlet_message; /* stderr */

/* Writes a text. Waits for a reader for at most `patience` seconds, and not at all where the
 * one before has been waited for in vain. Returns false where the text was left out. One that
 * was begun is ended before the next, so that a reader never sees half of one. A write that
 * fails (a full disk, a reader that has ended) counts as done, see outlet_has_failed(). */
enum { OUTLET_PATIENCE = 5 };
bool outlet_write(struct outlet *outlet, const char *text, size_t bytes, int patience);

bool outlet_has_failed(struct outlet *outlet);

#endif
