/* Writes messages, the status line and texts of unknown origin to the terminal. */
#include "terminal/terminal.h"

#include "terminal/character.h"
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <lockstep/train.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { MOST_MESSAGE = 8192 }; /* bytes; the library's have half of that at most */

static bool status_is_shown, is_quiet;

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
    setvbuf(stderr, NULL, _IOLBF, BUFSIZ); /* lines of several processes stay whole */
    lk_log_set(message, NULL);
}

void terminal_quiet(void)
{
    is_quiet = true;
}

/* Writes the character that the text begins with and returns its bytes. */
static int put_character(const char *text, FILE *file)
{
    uint32_t code;
    const int bytes = character_read(text, &code);
    if (character_is_harmless(code))
        fwrite(text, 1, (size_t)bytes, file);
    else
        fputc('?', file);
    return bytes;
}

/* The names in it are anyone's; lines of a build log stay lines. */
static void write_line(const char *prefix, const char *format, va_list values)
{
    char text[MOST_MESSAGE];
    vsnprintf(text, sizeof text, format, values);
    terminal_status(NULL);
    fputs(prefix, stderr);
    for (const char *rest = text; *rest;)
        if (*rest == '\n' || *rest == '\t')
            fputc(*rest++, stderr);
        else
            rest += put_character(rest, stderr);
    fputc('\n', stderr);
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

bool terminal_has_status(void)
{
    const char *kind = getenv("TERM");
    return isatty(STDERR_FILENO) && kind && strcmp(kind, "dumb") != 0;
}

int terminal_columns(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return 80;
}

bool terminal_has_unicode(void)
{
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

void terminal_status(const char *text)
{
    if (!text && !status_is_shown)
        return;
    fprintf(stderr, "\r%s\x1b[K", text ? text : "");
    fflush(stderr);
    status_is_shown = text != NULL;
}

int terminal_width(const char *text)
{
    int width = 0;
    uint32_t code;
    for (; *text; width++)
        text += character_read(text, &code);
    return width;
}

void terminal_print(const char *text, int width)
{
    int used = 0;
    for (; *text && (width == 0 || used < width); used++)
        text += put_character(text, stdout);
    printf("%*s", width > 0 ? width - used : 0, "");
}

bool terminal_flush(void)
{
    return fflush(stdout) == 0 && !ferror(stdout);
}
