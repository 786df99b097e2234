/* The building blocks of the program's pages: what they write is a document, whatever they are
 * handed. page.py parses what this prints. */
#include "page/page.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const nasty =
    "<script>alert('\"&\"')</script> \x1b[31m \xff\xc0\xaf\xed\xa0\x80"
    "\xf4\x90\x80\x80 \xc2\x85 µ 日本 \xf0\x9f\x8e\x89 ]]>"
    " \u061c\u200e\u200f|\u202a\u202b\u202c\u202d\u202e|\u2066\u2067\u2068\u2069 \u200d";

static void add_tables(struct page *page)
{
    page_table_begin(page, nasty, (const char *[]){"name", nasty, "number", NULL}, 2);
    page_table_group(page, nasty);
    page_table_row(page, (const char *[]){"row", nasty, "1.5"});
    page_table_end(page);
    page_matrix(page, nasty, (const char *[]){nasty, "b"}, (const int64_t[]){3, 1, 0, 0}, 2);
    page_table_begin(page, "facts", NULL, 2);
    page_table_row(page, (const char *[]){"fact", nasty});
    page_table_end(page);
}

static void add_plot(struct page *page, bool is_log, int count, const double *x,
                     const double *y)
{
    const char *details[] = {nasty, "b", NULL, "d", "e", "f"};
    const struct page_series series[] = {
        {.name = nasty, .colour = 0, .mark = PAGE_LINE, .count = count, .x = x, .y = y},
        {.name = "points",
         .colour = 9,
         .mark = PAGE_SQUARE,
         .count = count,
         .x = x,
         .y = y,
         .is_joined = true,
         .is_faint = true,
         .details = details}};
    page_plot(page, &(struct page_plot){.title = nasty,
                                        .description = nasty,
                                        .x = {nasty, is_log},
                                        .y = {"y", is_log},
                                        .series = series,
                                        .count = 2});
}

static void add_plots(struct page *page)
{
    const double x[] = {0, 1, NAN, 2.5, -3, INFINITY}, y[] = {1e-9, 4, 2, 1e12, 5, 7};
    const double same[] = {3, 3}, none[] = {0, 0};
    for (int is_log = 0; is_log < 2; is_log++) {
        add_plot(page, is_log, 6, x, y);
        add_plot(page, is_log, 0, x, y);
        add_plot(page, is_log, 2, same, same);
        add_plot(page, is_log, 2, none, none);
    }
}

static void add_bars(struct page *page)
{
    const struct page_bar bars[] = {
        {.label = nasty, .text = nasty, .detail = nasty, .value = 50},
        {.label = "much", .text = "", .value = 1e30, .colour = 1},
        {.label = "none", .text = "", .value = 0, .colour = 2},
        {.label = "unknown", .text = "-", .value = NAN}};
    struct page_bars chart = {.title = nasty,
                              .description = nasty,
                              .bars = bars,
                              .count = 4,
                              .most = 200,
                              .line = 100};
    page_bars(page, &chart);
    chart.is_log = true;
    page_bars(page, &chart);
    chart.count = 0;
    page_bars(page, &chart);
    const double parts[] = {1, NAN, 3};
    const struct page_bar split = {.label = nasty, .text = "", .parts = parts, .part_count = 3};
    page_bars(page,
              &(struct page_bars){
                  .title = nasty, .description = nasty, .bars = &split, .count = 1, .most = 8});
    page_legend(page, (const char *[]){nasty, "b"}, 2);
}

int main(int count, char **arguments)
{
    struct page page = {0};
    if (count != 2)
        return EXIT_FAILURE;
    page_begin(&page, nasty);
    page_heading(&page, 2, nasty);
    page_heading(&page, 3, nasty);
    page_paragraph(&page, "%s %d %%", nasty, 5);
    page_columns_begin(&page);
    add_tables(&page);
    page_columns_end(&page);
    add_plots(&page);
    add_bars(&page);
    if (page_write(&page, arguments[1]) != LK_OK || page.text)
        return EXIT_FAILURE;
    return EXIT_SUCCESS;
}
