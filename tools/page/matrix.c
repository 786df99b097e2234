/* A square table, coloured by the shares of its rows. */
#include "page/page.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { STRONGEST = 60 }; /* percent of colour that leaves numbers readable */

static void add_row(struct page *page, const char *name, int number, const int64_t *counts,
                    int count)
{
    int64_t all = 0;
    for (int i = 0; i < count; i++)
        all += counts[i];
    char text[12];
    snprintf(text, sizeof text, "%d", number);
    page_add(page, "<tr><th scope=\"row\" class=\"word\">");
    if (strcmp(text, name) != 0) /* a class without name is its number */
        page_add(page, "%s: ", text);
    page_add_text(page, name);
    page_add(page, "</th>");
    for (int i = 0; i < count; i++) {
        const double share = all > 0 ? (double)counts[i] / (double)all : 0;
        page_add(page, "<td class=\"cell\" style=\"--share:%.1f%%\">%" PRId64 "</td>",
                 STRONGEST * share, counts[i]);
    }
    page_add(page, "</tr>\n");
}

void page_matrix(struct page *page, const char *caption, const char *const *names,
                 const int64_t *counts, int count)
{
    const char *columns[PAGE_MATRIX + 2] = {""};
    char numbers[PAGE_MATRIX][12];
    for (int i = 0; i < count; i++) {
        snprintf(numbers[i], sizeof numbers[i], "%d", i);
        columns[i + 1] = numbers[i];
    }
    page_table_begin(page, caption, columns, 1);
    for (int i = 0; i < count; i++)
        add_row(page, names[i], i, counts + (int64_t)i * count, count);
    page_table_end(page);
}
