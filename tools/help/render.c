/* Shows scdoc text on a terminal: wraps paragraphs, indents, makes words bold or underlined. */
#include "help/pages.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { TAB = 4, MOST_PARAGRAPH = 16384, MOST_COLUMNS = 100 };

/* Marks in a paragraph's text, which are no characters. */
enum { BOLD = 1, PLAIN = 2, UNDERLINE = 3, BREAK = 4 };

struct rendering {
    FILE *to;
    int columns, indent; /* columns that the paragraph is indented by */
    bool is_styled, is_item, is_literal, is_bold, is_underlined, wants_blank, has_printed;
    char style; /* of what was written last */
    char text[MOST_PARAGRAPH];
    size_t used;
};

int stdout_columns(void)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return 80;
}

static void put_style(const struct rendering *r, char style)
{
    static const char *const codes[] = {
        [BOLD] = "\x1b[1m", [PLAIN] = "\x1b[0m", [UNDERLINE] = "\x1b[4m"};
    if (r->is_styled)
        fputs(codes[(int)style], r->to);
}

static void add(struct rendering *r, char c)
{
    if (r->used + 1 < sizeof r->text)
        r->text[r->used++] = c;
}

/* Whether it is a mark; bytes of UTF-8 beyond ASCII are none. */
static bool is_mark(char c)
{
    return (unsigned char)c <= BREAK;
}

/* Marks take no column, nor do further bytes of a character. */
static int width_of(const char *word, size_t bytes)
{
    int width = 0;
    for (size_t i = 0; i < bytes; i++)
        width += !is_mark(word[i]) && ((unsigned char)word[i] & 0xc0) != 0x80;
    return width;
}

static void put_word(struct rendering *r, const char *word, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (is_mark(word[i]))
            put_style(r, r->style = word[i]);
        else
            fputc(word[i], r->to);
}

/* Spaces of an indentation are never underlined. */
static void begin_line(struct rendering *r, int indent)
{
    if (r->style != PLAIN)
        put_style(r, PLAIN);
    fprintf(r->to, "%*s", indent, "");
    if (r->style != PLAIN)
        put_style(r, r->style);
}

/* Writes the paragraph that has been collected. */
static void flush(struct rendering *r)
{
    const int indent = r->indent + (r->is_item ? 2 : 0);
    int column = indent;
    if (r->used == 0)
        return;
    r->text[r->used] = '\0';
    if (r->wants_blank && r->has_printed)
        fputc('\n', r->to);
    r->style = PLAIN;
    begin_line(r, r->indent);
    fputs(r->is_item ? "- " : "", r->to);
    for (const char *word = r->text; *word;) {
        const size_t bytes = strcspn(word, " \4");
        const int width = width_of(word, bytes);
        if (column > indent && column + 1 + width > r->columns) {
            fputc('\n', r->to);
            begin_line(r, indent);
            column = indent;
        } else if (column > indent && width > 0) {
            fputc(' ', r->to);
            column++;
        }
        put_word(r, word, bytes);
        column += width;
        word += bytes;
        if (*word == BREAK && word[1]) {
            fputc('\n', r->to);
            begin_line(r, indent);
            column = indent;
        }
        word += *word != '\0';
    }
    fputc('\n', r->to);
    if (r->style != PLAIN)
        put_style(r, PLAIN);
    r->used = 0;
    r->is_item = r->is_bold = r->is_underlined = r->wants_blank = false;
    r->has_printed = true;
}

/* Adds a line to the paragraph, its marks of style replaced. An underscore within a word is
 * one.
 */
static void add_line(struct rendering *r, const char *line, size_t bytes)
{
    bool breaks = false;
    if (bytes > 2 && memcmp(line + bytes - 2, "++", 2) == 0) {
        breaks = true;
        bytes -= 2;
    }
    if (r->used > 0 && r->text[r->used - 1] != BREAK)
        add(r, ' ');
    for (size_t i = 0; i < bytes; i++) {
        const bool in_word = i > 0 && isalnum((unsigned char)line[i - 1]);
        const bool goes_on = i + 1 < bytes && isalnum((unsigned char)line[i + 1]);
        if (line[i] == '\\' && i + 1 < bytes) {
            add(r, line[++i]);
        } else if (line[i] == '*') {
            r->is_bold = !r->is_bold;
            add(r, r->is_bold ? BOLD : PLAIN);
        } else if (line[i] == '_' && (!in_word || (r->is_underlined && !goes_on))) {
            r->is_underlined = !r->is_underlined;
            add(r, r->is_underlined ? UNDERLINE : PLAIN);
        } else {
            add(r, line[i]);
        }
    }
    if (breaks)
        add(r, BREAK);
}

static void put_heading(struct rendering *r, const char *line, size_t bytes)
{
    const bool is_small = bytes > 1 && line[1] == '#';
    const size_t skipped = is_small ? 3 : 2;
    flush(r);
    fprintf(r->to, "%s%s", r->has_printed ? "\n" : "", is_small ? "  " : "");
    put_style(r, BOLD);
    fwrite(line + skipped, 1, bytes > skipped ? bytes - skipped : 0, r->to);
    put_style(r, PLAIN);
    fputc('\n', r->to);
    r->has_printed = r->wants_blank = false;
}

/* Lines of a literal block, in which a backslash stands before what is no mark. */
static void put_literal(struct rendering *r, const char *line, size_t bytes)
{
    fprintf(r->to, "%*s", bytes ? r->indent + TAB : 0, "");
    for (size_t i = 0; i < bytes; i++) {
        i += line[i] == '\\' && i + 1 < bytes;
        fputc(line[i], r->to);
    }
    fputc('\n', r->to);
}

static void take_line(struct rendering *r, const char *line, size_t bytes)
{
    int tabs = 0;
    while (bytes > 0 && *line == '\t' && (!r->is_literal || tabs < r->indent / TAB - 1))
        tabs++, line++, bytes--;
    if (bytes >= 3 && memcmp(line, "```", 3) == 0) {
        flush(r);
        r->indent = TAB * (1 + tabs);
        r->is_literal = !r->is_literal;
        if (r->is_literal && r->has_printed)
            fputc('\n', r->to);
        r->wants_blank = r->has_printed = true;
    } else if (r->is_literal) {
        put_literal(r, line, bytes);
    } else if (bytes == 0) {
        flush(r);
        r->wants_blank = true;
    } else if (tabs == 0 && *line == '#') {
        put_heading(r, line, bytes);
    } else if (*line != ';' || tabs > 0) {
        const bool begins_item = bytes > 2 && memcmp(line, "- ", 2) == 0;
        const bool goes_on = bytes > 2 && memcmp(line, "  ", 2) == 0;
        if (begins_item || (!goes_on && TAB * (1 + tabs) != r->indent))
            flush(r);
        r->indent = TAB * (1 + tabs);
        r->is_item = r->is_item || begins_item;
        add_line(r, line + (begins_item || goes_on ? 2 : 0),
                 bytes - (begins_item || goes_on ? 2 : 0));
    }
}

void page_render(const char *scdoc, int columns, bool is_styled, FILE *to)
{
    struct rendering *r = calloc(1, sizeof *r);
    if (!r)
        return;
    r->to = to;
    r->columns = columns > MOST_COLUMNS ? MOST_COLUMNS : columns;
    r->is_styled = is_styled;
    scdoc += strcspn(scdoc, "\n"); /* the title: NAME(SECTION) */
    while (*scdoc) {
        scdoc += *scdoc == '\n';
        const size_t bytes = strcspn(scdoc, "\n");
        take_line(r, scdoc, bytes);
        scdoc += bytes;
    }
    flush(r);
    free(r);
}

void print_wrapped(const char *text, int indent, int columns)
{
    int column = indent;
    while (*text) {
        const int bytes = (int)strcspn(text, " \n");
        const bool breaks = column > indent && column + 1 + bytes > columns;
        if (breaks)
            printf("\n%*s", indent, "");
        column = breaks ? indent + bytes : column + bytes + (column > indent);
        printf("%s%.*s", !breaks && column > indent + bytes ? " " : "", bytes, text);
        text += bytes;
        text += *text != '\0';
    }
    printf("\n");
}
