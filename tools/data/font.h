/* Letters of 5 x 8 pixels for pictures that the program draws. */
#ifndef TOOLS_FONT_H
#define TOOLS_FONT_H

#include <stdbool.h>
#include <stddef.h>

enum { FONT_WIDTH = 5, FONT_HEIGHT = 8, FONT_STEP = 6 };

/* Turns UTF-8 into what there are letters for: accents are dropped, others become '?'. */
void font_letters(const char *text, char *letters, size_t room);

/* Whether the pixel of a letter, column x and row y, is ink. */
bool font_ink(char letter, int x, int y);

#endif
