/* A table on stdout. In a pipe, and where the terminal has room, columns have the widths that
 * they are given. In a narrower terminal they become as narrow as what stands in them, headings
 * break between words, names are shortened in their middle, and columns that matter least are
 * left out. */
#ifndef TOOLS_TABLE_H
#define TOOLS_TABLE_H

#include <stdbool.h>
#include <stddef.h>

enum { TABLE_COLUMNS = 64 };

struct table_column {
    const char *heading; /* NULL: none; also where no column of a table has one */
    int gap, width;      /* blanks before it, and columns that it takes where there is room */
    bool is_left;        /* texts begin at the left */
    bool is_name;        /* a text of unknown origin, which may be shortened */
    bool is_whole;       /* such a text that is not shortened in a pipe */
    bool spans;          /* the heading stands over the next column as well */
    int least;           /* columns in a narrow window, where rows come one by one; 0: any */
    int rank;            /* in a narrow window those of the highest are left out; 0: never */
};

struct table {
    const struct table_column *columns; /* outlive it */
    int count;
    char **cells; /* row by row */
    size_t used, room;
    int seen[TABLE_COLUMNS]; /* columns that the widest text of each took until now */
    bool has_heading;        /* is printed */
};

void table_start(struct table *table, const struct table_column *columns, int count);

/* The next cell; `count` of them are a row. */
void table_cell(struct table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Prints the rows that there are, below the headings, and forgets them: more may follow. */
void table_print(struct table *table);

/* Prints what is left and releases it. */
void table_end(struct table *table);

#endif
