/* Writes a page of HTML: headings, tables and text, with everything escaped. */
#include "page/page.h"

#include "terminal/character.h"
#include <lockstep/file.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 1 << 16, MOST_PARAGRAPH = 2048 };

/* --- text ------------------------------------------------------------------------------- */

static bool make_room(struct page *page, size_t more)
{
    size_t room = page->room ? page->room : FIRST_ROOM;
    while (room - page->bytes <= more)
        room *= 2;
    if (room > page->room && !page->lacks_memory) {
        char *text = realloc(page->text, room);
        page->lacks_memory = !text;
        page->text = text ? text : page->text;
        page->room = text ? room : page->room;
    }
    return !page->lacks_memory;
}

static void add_bytes(struct page *page, const char *bytes, size_t count)
{
    if (!make_room(page, count))
        return;
    memcpy(page->text + page->bytes, bytes, count);
    page->bytes += count;
}

void page_add(struct page *page, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    const int length = vsnprintf(NULL, 0, format, values);
    va_end(values);
    if (length < 0 || !make_room(page, (size_t)length))
        return;
    va_start(values, format);
    vsnprintf(page->text + page->bytes, (size_t)length + 1, format, values);
    va_end(values);
    page->bytes += (size_t)length;
}

static const char *escape_of(char character)
{
    switch (character) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

void page_add_text(struct page *page, const char *text)
{
    while (*text) {
        uint32_t code;
        const int count = character_read(text, &code);
        const char *escape = escape_of(*text);
        if (escape)
            add_bytes(page, escape, strlen(escape));
        else if (character_is_harmless(code))
            add_bytes(page, text, (size_t)count);
        else
            add_bytes(page, "?", 1);
        text += count;
    }
}

/* An element that holds a text only. */
static void add_element(struct page *page, const char *name, const char *text)
{
    page_add(page, "<%s>", name);
    page_add_text(page, text);
    page_add(page, "</%.*s>\n", (int)strcspn(name, " "), name);
}

/* --- the page --------------------------------------------------------------------------- */

static const char marks[] =
    "<svg class=\"marks\" width=\"0\" height=\"0\" aria-hidden=\"true\"><defs>"
    "<g id=\"mark1\"><circle r=\"4.5\"/></g>"
    "<g id=\"mark2\"><path d=\"M0 -5.5L5 4H-5Z\"/></g>"
    "<g id=\"mark3\"><rect x=\"-4\" y=\"-4\" width=\"8\" height=\"8\"/></g>"
    "</defs></svg>\n";

void page_begin(struct page *page, const char *title)
{
    page_add(page, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
                   "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
                   "<meta name=\"color-scheme\" content=\"light dark\"/>\n");
    add_element(page, "title", title);
    page_add(page, "<style>\n%s</style>\n</head>\n<body>\n%s<main>\n", page_style, marks);
    add_element(page, "h1", title);
}

enum lk_status page_write(struct page *page, const char *path)
{
    page_add(page, "</main>\n</body>\n</html>\n");
    const enum lk_status status =
        page->lacks_memory ? LK_E_MEMORY : lk_file_write(path, page->text, page->bytes);
    free(page->text);
    *page = (struct page){0};
    return status;
}

void page_heading(struct page *page, int level, const char *text)
{
    add_element(page, level == 2 ? "h2" : "h3", text);
}

void page_paragraph(struct page *page, const char *format, ...)
{
    char text[MOST_PARAGRAPH];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    add_element(page, "p", text);
}

void page_columns_begin(struct page *page)
{
    page_add(page, "<div class=\"columns\">\n");
}

void page_columns_end(struct page *page)
{
    page_add(page, "</div>\n");
}

/* --- tables ----------------------------------------------------------------------------- */

void page_table_begin(struct page *page, const char *caption, const char *const *columns,
                      int words)
{
    page->columns = 2;
    page->words = columns ? words : 2;
    page_add(page, "<div class=\"table\" tabindex=\"0\" role=\"region\" aria-label=\"");
    page_add_text(page, caption);
    page_add(page, columns ? "\"><table>\n" : "\"><table class=\"facts\">\n");
    add_element(page, "caption", caption);
    if (columns) {
        page_add(page, "<thead><tr>\n");
        for (page->columns = 0; columns[page->columns]; page->columns++)
            add_element(page,
                        page->columns < words ? "th scope=\"col\" class=\"word\""
                                              : "th scope=\"col\"",
                        columns[page->columns]);
        page_add(page, "</tr></thead>\n");
    }
    page_add(page, "<tbody>\n");
}

void page_table_group(struct page *page, const char *text)
{
    page_add(page,
             "</tbody>\n<tbody>\n<tr class=\"group\"><th scope=\"rowgroup\" colspan=\"%d\">",
             page->columns);
    page_add_text(page, text);
    page_add(page, "</th></tr>\n");
}

void page_table_row(struct page *page, const char *const *cells)
{
    page_add(page, "<tr>");
    for (int i = 0; i < page->columns; i++) {
        const char *name = i == 0 ? "th" : "td";
        page_add(page, "<%s%s%s>", name, i == 0 ? " scope=\"row\"" : "",
                 i < page->words ? " class=\"word\"" : "");
        page_add_text(page, cells[i]);
        page_add(page, "</%s>", name);
    }
    page_add(page, "</tr>\n");
}

void page_table_end(struct page *page)
{
    page_add(page, "</tbody></table></div>\n");
}
