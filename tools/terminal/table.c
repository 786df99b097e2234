/* Prints tables, and finds out how one fits into a narrow window. */
#include "terminal/table.h"

#include "terminal/character.h"
#include "terminal/terminal.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_NAME = 14, LEAST_OF_ALL = 4, MOST_CELL = 1024 };

/* How the columns are printed. */
struct layout {
    bool is_narrow;
    int gap[TABLE_COLUMNS], width[TABLE_COLUMNS]; /* a width of -1: left out */
};

void table_start(struct table *table, const struct table_column *columns, int count)
{
    *table = (struct table){.columns = columns, .count = count};
}

void table_cell(struct table *table, const char *format, ...)
{
    char text[MOST_CELL];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    if (table->used == table->room) {
        const size_t room = 2 * table->room + TABLE_COLUMNS;
        char **cells = realloc(table->cells, room * sizeof *cells);
        if (!cells) {
            say("out of memory");
            return;
        }
        table->cells = cells;
        table->room = room;
    }
    if (!(table->cells[table->used] = strdup(text))) {
        say("out of memory");
        return;
    }
    const int column = (int)(table->used++ % (size_t)table->count);
    const int width = terminal_width(text + strspn(text, " "));
    if (width > table->seen[column])
        table->seen[column] = width;
}

/* --- what fits --------------------------------------------------------------------------- */

static int longest_word(const char *text)
{
    int longest = 0;
    for (const char *at = text ? text : ""; *at; at += strspn(at, " ")) {
        const int length = (int)strcspn(at, " ");
        longest = length > longest ? length : longest;
        at += length;
    }
    return longest;
}

static int total(const struct table *table, const struct layout *layout)
{
    int sum = 0;
    for (int i = 0; i < table->count; i++)
        if (layout->width[i] >= 0)
            sum += layout->gap[i] + layout->width[i];
    return sum;
}

static struct layout usual_layout(const struct table *table)
{
    struct layout layout = {.is_narrow = false};
    for (int i = 0; i < table->count; i++) {
        layout.gap[i] = table->columns[i].gap;
        layout.width[i] = table->columns[i].width;
    }
    return layout;
}

/* What the usual layout really takes: texts may be longer than their columns. */
static int usual_total(const struct table *table, const struct layout *layout)
{
    int sum = 0;
    for (int i = 0; i < table->count; i++) {
        const struct table_column *c = &table->columns[i];
        const bool grows = !c->is_name && table->seen[i] > layout->width[i];
        sum += layout->gap[i] + (grows ? table->seen[i] : layout->width[i]);
        if (c->width == 0 && c->is_name)
            sum += table->seen[i];
    }
    return sum;
}

/* Columns of a lower rank than `rank`, or of none, as narrow as they can be. */
static struct layout narrow_layout(const struct table *table, int rank)
{
    struct layout layout = {.is_narrow = true};
    int shown = 0;
    for (int i = 0; i < table->count; i++) {
        const struct table_column *c = &table->columns[i];
        const int word = c->spans ? 0 : longest_word(c->heading);
        const int least = c->least > word ? c->least : word;
        layout.width[i] = table->seen[i] > least ? table->seen[i] : least;
        if (c->rank >= rank || (table->seen[i] == 0 && c->rank > 0))
            layout.width[i] = -1;
        else
            layout.gap[i] = shown++ ? 1 : c->gap < 2 ? c->gap : 2;
    }
    return layout;
}

/* The widest name becomes narrower until all fits, or all have `least`. */
static bool shorten_names(const struct table *table, struct layout *layout, int columns,
                          int least)
{
    while (total(table, layout) > columns) {
        int widest = -1;
        for (int i = 0; i < table->count; i++)
            if (table->columns[i].is_name && layout->width[i] > least &&
                (widest < 0 || layout->width[i] > layout->width[widest]))
                widest = i;
        if (widest < 0)
            return false;
        layout->width[widest]--;
    }
    return true;
}

/* Names take what room there is; in a pipe those that are to be whole take all that they need.
 */
static void widen_names(const struct table *table, struct layout *layout, int columns)
{
    for (int i = 0; i < table->count; i++)
        while (
            table->columns[i].is_name && layout->width[i] > 0 &&
            layout->width[i] < table->seen[i] &&
            (columns == 0 ? table->columns[i].is_whole : usual_total(table, layout) < columns))
            layout->width[i]++;
}

static struct layout find_layout(const struct table *table)
{
    struct layout layout = usual_layout(table);
    const int columns = terminal_result_columns();
    widen_names(table, &layout, columns);
    int most = 0;
    for (int i = 0; i < table->count; i++)
        most = table->columns[i].rank > most ? table->columns[i].rank : most;
    if (columns == 0 || usual_total(table, &layout) <= columns)
        return layout;
    for (int rank = most + 1; rank > 0; rank--) {
        layout = narrow_layout(table, rank);
        if (shorten_names(table, &layout, columns, LEAST_NAME))
            return layout;
    }
    shorten_names(table, &layout, columns, LEAST_OF_ALL);
    return layout;
}

/* --- printing ---------------------------------------------------------------------------- */

/* Keeps the beginning and the end. */
static void print_shortened(const char *text, int width)
{
    const char *mark = terminal_has_unicode() ? "\xe2\x80\xa6" : "..";
    const int kept = width - terminal_width(mark), head = kept - kept / 2;
    int left = terminal_width(text) - kept / 2;
    uint32_t code;
    terminal_print(text, head);
    printf("%s", mark);
    for (; left > 0; left -= character_columns(code))
        text += character_read(text, &code);
    printf("%*s", -left, ""); /* for half of a wide character that is gone too */
    terminal_print(text, kept / 2 + left);
}

static void print_blanks(int count)
{
    printf("%*s", count > 0 ? count : 0, "");
}

static void print_cell(const struct table_column *column, const struct layout *layout,
                       const char *text, int width, bool is_last)
{
    text += layout->is_narrow ? strspn(text, " ") : 0;
    const int found = terminal_width(text);
    if (!column->is_left)
        print_blanks(width - found);
    if (layout->is_narrow && found > width && column->is_name)
        print_shortened(text, width);
    else
        terminal_print(text, column->is_name && width && found > width ? width : 0);
    if (column->is_left && !is_last)
        print_blanks(width - found);
}

/* The last column of the row `cells` that is shown and has a text. */
static int last_shown(const struct table *table, const struct layout *layout, char **cells)
{
    int last = 0;
    for (int i = 0; i < table->count; i++)
        if (layout->width[i] >= 0 && *cells[i])
            last = i;
    return last;
}

static void print_row(const struct table *table, const struct layout *layout, char **cells)
{
    const int last = last_shown(table, layout, cells);
    for (int i = 0; i <= last; i++) {
        if (layout->width[i] < 0)
            continue;
        print_blanks(layout->gap[i]);
        print_cell(&table->columns[i], layout, cells[i], layout->width[i], i == last);
    }
    printf("\n");
}

/* Where line `line` of a heading in so many columns begins; `lines` counts them. */
static const char *heading_line(const char *heading, int width, int line, int *lines,
                                int *length)
{
    const char *found = "";
    *length = *lines = 0;
    for (const char *at = heading; *at; at += strspn(at, " ")) {
        int taken = (int)strcspn(at, " ");
        while (at[taken] && taken + 1 + (int)strcspn(at + taken + 1, " ") <= width)
            taken += 1 + (int)strcspn(at + taken + 1, " ");
        if ((*lines)++ == line) {
            found = at;
            *length = taken;
        }
        at += taken;
    }
    return found;
}

/* The heading of column *i in its width, or of it and the next one, *i then, where it spans. */
static const char *heading_of(const struct table *table, const struct layout *layout, int *i,
                              int *width)
{
    const struct table_column *c = &table->columns[*i];
    *width = layout->width[*i];
    if (c->spans && *i + 1 < table->count && layout->width[*i + 1] >= 0) {
        ++*i;
        *width += layout->gap[*i] + layout->width[*i];
    }
    return c->heading ? c->heading : "";
}

/* Prints line `line` of `most`, a heading of fewer lines at the bottom; `most` 0: prints
 * nothing. Returns how many lines the longest heading has. */
static int print_heading_line(const struct table *table, const struct layout *layout, int line,
                              int most)
{
    int longest = 0, blanks = 0;
    for (int i = 0; i < table->count; i++) {
        const struct table_column *c = &table->columns[i];
        const int gap = layout->gap[i];
        int width, lines, length;
        if (layout->width[i] < 0)
            continue;
        const char *heading = heading_of(table, layout, &i, &width);
        const int room = layout->is_narrow ? width : (int)strlen(heading);
        heading_line(heading, room, 0, &lines, &length);
        longest = lines > longest ? lines : longest;
        const char *text = heading_line(heading, room, line - (most - lines), &lines, &length);
        if (most == 0)
            continue;
        blanks += gap + (c->is_left ? 0 : width - length);
        if (length > 0) {
            print_blanks(blanks);
            printf("%.*s", length, text);
            blanks = 0;
        }
        blanks += c->is_left ? width - length : 0;
    }
    if (most > 0)
        printf("\n");
    return longest;
}

static void print_heading(const struct table *table, const struct layout *layout)
{
    const int lines = print_heading_line(table, layout, 0, 0);
    for (int line = 0; line < lines; line++)
        print_heading_line(table, layout, line, lines);
}

void table_print(struct table *table)
{
    const size_t count = (size_t)table->count;
    const struct layout layout = find_layout(table);
    if (!table->has_heading)
        print_heading(table, &layout);
    table->has_heading = true;
    for (size_t at = 0; at + count <= table->used; at += count)
        print_row(table, &layout, table->cells + at);
    for (size_t i = 0; i < table->used; i++)
        free(table->cells[i]);
    table->used = 0;
}

void table_end(struct table *table)
{
    table_print(table);
    free(table->cells);
    *table = (struct table){0};
}
