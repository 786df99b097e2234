/* Characters of texts that anyone may have written, in UTF-8 or not. */
#ifndef TOOLS_CHARACTER_H
#define TOOLS_CHARACTER_H

#include <stdbool.h>
#include <stdint.h>

/* Reads the character that a text begins with and returns its bytes. A byte that is not UTF-8
 * is one of its own, with code 0. */
int character_read(const char *text, uint32_t *code);

/* Whether it may stand on a terminal or in XML: control codes may not, nor what turns the
 * direction of the text around it. */
bool character_is_harmless(uint32_t code);

#endif
