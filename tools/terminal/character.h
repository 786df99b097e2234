/* Reads characters of texts of unknown origin, which may be no valid UTF-8. */
#ifndef TOOLS_CHARACTER_H
#define TOOLS_CHARACTER_H

#include <stdbool.h>
#include <stdint.h>

/* Reads the first character of a text and returns how many bytes it has. A byte that is not
 * valid UTF-8 counts as a character of its own, with code 0. */
int character_read(const char *text, uint32_t *code);

/* Whether a character may be written to a terminal or into XML: no control codes, and none that
 * change the direction of the text around them. */
bool character_is_harmless(uint32_t code);

/* Columns of a terminal that the character takes: 2 where it is wide (Chinese, Japanese,
 * Korean, pictures), 0 where it stands over the one before it, else 1. source: wcwidth() of the
 * C library */
int character_columns(uint32_t code);

#endif
