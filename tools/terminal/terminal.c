/* Writes messages, the status line and texts of unknown origin to the terminal. */
#include "terminal/terminal.h"

#include "terminal/character.h"
#include "terminal/outlet.h"
#include "terminal/status.h"
#include "terminal/task.h"
#include <fcntl.h>
#include <langinfo.h>
#include <limits.h>
#include <locale.h>
#include <lockstep/train.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { MOST_MESSAGE = 8192 }; /* bytes; the library's have half of that at most */

static bool is_quiet;

static void message(void *context, enum lk_log_level level, const char *text)
{
    (void)context;
    if (level == LK_LOG_WARNING)
        say("warning: %s", text);
    else if (level == LK_LOG_INFO && !is_quiet)
        say("%s", text);
}

/* Where stdin, stdout or stderr is closed the next file that is opened would take its place,
 * and get what is said. What stands there now can neither be read nor written. */
static void fill_closed_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

void terminal_start(void)
{
    fill_closed_streams();
    setlocale(LC_CTYPE, "");
    lk_log_set(message, NULL);
    task_start();
}

void terminal_quiet(void)
{
    is_quiet = true;
    task_quiet();
}

/* Writes the character that the text begins with, adds its columns and returns its bytes. */
static int put_character(const char *text, FILE *file, int *columns)
{
    uint32_t code;
    const int bytes = character_read(text, &code);
    *columns += character_columns(code);
    if (character_is_harmless(code))
        fwrite(text, 1, (size_t)bytes, file);
    else
        fputc('?', file);
    return bytes;
}

/* Columns up to the end of the word that begins behind the blank at text[0]. */
static int word_columns(const char *text)
{
    int columns = 1;
    uint32_t code;
    for (text++; *text && !strchr(" \n\t", *text); columns += character_columns(code))
        text += character_read(text, &code);
    return columns;
}

/* Writes a text whose lines break between words where they have more than `most` columns. The
 * names in it are anyone's; lines of a build log stay lines. */
static void put_lines(const char *text, int most, FILE *file)
{
    enum { INDENT = 2 };
    for (int column = 0; *text;) {
        const int word = *text == ' ' ? word_columns(text) : 0;
        if (word > 1 && column > INDENT && column + word > most && INDENT + word - 1 <= most) {
            fprintf(file, "\n%*s", INDENT, "");
            column = INDENT;
            text++;
        } else if (*text == '\n' || *text == '\t') {
            column = *text == '\n' ? 0 : column / 8 * 8 + 8;
            fputc(*text++, file);
        } else {
            text += put_character(text, file, &column);
        }
    }
}

static void write_message(const char *text)
{
    char *lines = NULL;
    size_t bytes = 0;
    FILE *memory = open_memstream(&lines, &bytes);
    if (!memory)
        return;
    put_lines(text, terminal_has_status() ? terminal_columns() : INT_MAX, memory);
    fputc('\n', memory);
    if (fclose(memory) == 0)
        status_message(lines, bytes);
    free(lines);
}

void print_lines(const char *format, ...)
{
    char text[MOST_MESSAGE];
    const int columns = terminal_result_columns();
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    put_lines(text, columns ? columns : INT_MAX, stdout);
}

static void write_line(const char *prefix, const char *format, va_list values)
{
    char text[MOST_MESSAGE];
    const int used = snprintf(text, sizeof text, "%s", prefix);
    vsnprintf(text + used, sizeof text - (size_t)used, format, values);
    write_message(text);
}

void say(const char *format, ...)
{
    char prefix[32] = "lockstep: ";
    va_list values;
    va_start(values, format);
    if (lk_rank() > 0)
        snprintf(prefix, sizeof prefix, "lockstep: rank %d: ", lk_rank());
    write_line(prefix, format, values);
    va_end(values);
}

void say_plain(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    write_line("", format, values);
    va_end(values);
}

/* A terminal that moves its cursor. */
static bool is_capable(int stream)
{
    const char *kind = getenv("TERM");
    return isatty(stream) && kind && strcmp(kind, "dumb") != 0;
}

bool terminal_has_status(void)
{
    return is_capable(STDERR_FILENO);
}

bool terminal_has_colour(enum terminal_stream stream)
{
    const char *refused = getenv("NO_COLOR");
    return is_capable((int)stream) && !(refused && *refused);
}

int terminal_columns(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return 80;
}

int terminal_result_columns(void)
{
    struct winsize size;
    const bool is_there = isatty(STDOUT_FILENO) != 0;
    if (is_there && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return is_there ? 80 : 0;
}

int terminal_result_rows(void)
{
    struct winsize size;
    if (!is_capable(STDOUT_FILENO))
        return 0;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : 24;
}

bool terminal_has_unicode(void)
{
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

/* The bytes of a text's beginning that have room in so many columns. */
static size_t fitting_bytes(const char *text, int columns)
{
    size_t bytes = 0;
    uint32_t code;
    for (int used = 0; text[bytes];) {
        const int next = character_read(text + bytes, &code);
        used += character_columns(code);
        if (used > columns)
            break;
        bytes += (size_t)next;
    }
    return bytes;
}

static void draw_text(const void *from, int columns, char text[STATUS_TEXT])
{
    const size_t bytes = fitting_bytes(from, columns);
    memcpy(text, from, bytes);
    text[bytes] = '\0';
}

void terminal_status(const char *text)
{
    char copy[STATUS_TEXT];
    if (!text) {
        status_hide(STATUS_MAIN);
        return;
    }
    snprintf(copy, sizeof copy, "%s", text);
    status_show(STATUS_MAIN, draw_text, copy, strlen(copy) + 1);
}

int terminal_width(const char *text)
{
    int width = 0;
    uint32_t code;
    for (; *text; width += character_columns(code))
        text += character_read(text, &code);
    return width;
}

void terminal_print(const char *text, int width)
{
    const char *end = text + (width == 0 ? strlen(text) : fitting_bytes(text, width));
    int used = 0;
    while (text < end)
        text += put_character(text, stdout, &used);
    printf("%*s", width > 0 ? width - used : 0, "");
}

bool terminal_flush(void)
{
    return fflush(stdout) == 0 && !ferror(stdout) && !outlet_has_failed(outlet_result);
}
