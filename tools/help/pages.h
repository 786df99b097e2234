/* The manual: its pages as scdoc text, embedded when the program is built. */
#ifndef TOOLS_HELP_PAGES_H
#define TOOLS_HELP_PAGES_H

#include <stdbool.h>
#include <stdio.h>

/* A page, "lockstep-train.1"; the table ends with an empty row. */
struct help_page {
    const char *name, *text;
};

extern const struct help_page help_pages[];

/* Writes the page as scdoc reads it: each line @WORD@ has become what the program's own tables
 * say, such as the options of the page's subcommand. */
void page_expand(const struct help_page *page, FILE *to);

/* Writes scdoc text as lines of at most `columns` for a terminal, bold and underlined where it
 * `is_styled`. Takes what the pages use of scdoc: headings, paragraphs, lists with "-",
 * indentation by tabs, literal blocks, "++" at a line's end. */
void page_render(const char *scdoc, int columns, bool is_styled, FILE *to);

/* Prints a text that begins in column `indent` of a line, wrapped. */
void print_wrapped(const char *text, int indent, int columns);

/* Columns of the terminal that stdout is; 80 where it is none. */
int stdout_columns(void);

#endif
