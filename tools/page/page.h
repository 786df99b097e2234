/* A page of HTML in one file: headings, tables and charts drawn as SVG. It has no script and
 * loads nothing, is well-formed as XML too, and reads on a phone, a desktop and paper, by day
 * and by night. Knows nothing of what it shows. */
#ifndef TOOLS_PAGE_H
#define TOOLS_PAGE_H

#include <lockstep/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What was written so far; all texts that are handed over are copied, and escaped. */
struct page {
    char *text;
    size_t bytes, room;
    bool lacks_memory;
    int charts, columns, words; /* of the page; of the table that is open */
};

/* `page` is zero before. */
void page_begin(struct page *page, const char *title);

/* Ends the page, puts it in place of the file and releases it.
 * fails: as lk_file_write(), LK_E_MEMORY */
enum lk_status page_write(struct page *page, const char *path);

/* level: 2 or 3; the title has 1. */
void page_heading(struct page *page, int level, const char *text);
void page_paragraph(struct page *page, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* What stands between the two goes side by side where there is room. */
void page_columns_begin(struct page *page);
void page_columns_end(struct page *page);

/* A table: columns[i] until NULL name them, of which the first `words` hold words and the
 * others numbers. NULL: two columns of words without names. The first cell of a row names it.
 */
void page_table_begin(struct page *page, const char *caption, const char *const *columns,
                      int words);
void page_table_group(struct page *page, const char *text); /* names the rows below */
void page_table_row(struct page *page, const char *const *cells);
void page_table_end(struct page *page);

/* --- charts ----------------------------------------------------------------------------- */

/* Colours are numbers from 0 on, of which PAGE_COLOURS differ. */
enum { PAGE_COLOURS = 8 };

enum page_mark { PAGE_LINE, PAGE_CIRCLE, PAGE_TRIANGLE, PAGE_SQUARE };

struct page_series {
    const char *name; /* for the legend */
    int colour;
    enum page_mark mark;
    bool is_joined; /* marks: by a line too */
    bool is_faint;  /* its line stands behind those of others */
    int count;
    const double *x, *y;        /* those that an axis cannot show are left out */
    const char *const *details; /* shown where the pointer is; NULL: none */
};

struct page_axis {
    const char *label;
    bool is_log;
};

/* description: in words, for those who do not see it. */
struct page_plot {
    const char *title, *description;
    struct page_axis x, y;
    const struct page_series *series;
    int count;
};

void page_plot(struct page *page, const struct page_plot *plot);

struct page_bar {
    const char *label;  /* before it */
    const char *text;   /* behind it */
    const char *detail; /* shown where the pointer is; NULL: none */
    double value;
    const double *parts; /* [part_count] of the value, one behind the other, in colours from */
    int part_count;      /* `colour` on; 0: it is one */
    int colour;
};

/* A chart of horizontal bars, one below the other, on an axis from 0 to `most`; a logarithmic
 * axis goes from one power of 10 to another. */
struct page_bars {
    const char *title, *description;
    const struct page_bar *bars;
    int count;
    bool is_log;
    double most;
    double line;        /* is drawn across at this value; 0: none */
    int before, behind; /* letters that have room there at least, so that charts line up */
};

void page_bars(struct page *page, const struct page_bars *bars);

/* Colours and what they stand for, names[i] with colour i. */
void page_legend(struct page *page, const char *const *names, int count);

/* A square table of how often what a row names was taken for what a column names, each cell as
 * strong as its share of the row. counts: [count][count], count: up to PAGE_MATRIX */
enum { PAGE_MATRIX = 64 };
void page_matrix(struct page *page, const char *caption, const char *const *names,
                 const int64_t *counts, int count);

/* Pictures side by side, each with a text below: height by width pixels, channels 1 (grey) or 3
 * or 4 (RGB). Larger ones are shown smaller. */
void page_pictures_begin(struct page *page, const char *caption);
void page_picture(struct page *page, const int64_t shape[3], const unsigned char *pixels,
                  const char *text);
void page_pictures_end(struct page *page);

/* --- for charts ------------------------------------------------------------------------- */

/* Adds markup as it is; a text, escaped. */
void page_add(struct page *page, const char *format, ...) __attribute__((format(printf, 2, 3)));
void page_add_text(struct page *page, const char *text);

extern const char page_style[];

#endif
