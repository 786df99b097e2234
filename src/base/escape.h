/* Any text as UTF-8, and back. Floor 0.
 *
 * Paths are bytes; JSON, YAML and metadata are UTF-8. A byte that is not part of UTF-8 is
 * written as \xHH, and a backslash that stands before an x as \x5c. All other texts stay as
 * they are. */
#ifndef LK_BASE_ESCAPE_H
#define LK_BASE_ESCAPE_H

#include <stdbool.h>

/* Bytes of an escaped text of `length` bytes, '\0' included. */
#define LK_ESCAPED_BYTES(length) (4 * (length) + 1)

/* Whether lk_escape() would change it. */
bool lk_needs_escape(const char *text);

/* Writes the text as UTF-8 to escaped[LK_ESCAPED_BYTES(strlen(text))]. */
void lk_escape(const char *text, char *escaped);

/* Turns an escaped text into what it was, in its place. */
void lk_unescape(char *text);

#endif
