#include "terminal.h"

#include <langinfo.h>
#include <locale.h>
#include <lockstep/train.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static bool status_is_shown, is_quiet;

static void message(void *context, enum lk_log_level level, const char *text)
{
    (void)context;
    if (level == LK_LOG_WARNING)
        say("warning: %s", text);
    else if (level == LK_LOG_INFO && !is_quiet)
        say("%s", text);
}

void terminal_start(void)
{
    setlocale(LC_CTYPE, "");
    setvbuf(stderr, NULL, _IOLBF, BUFSIZ); /* lines of several processes stay whole */
    lk_log_set(message, NULL);
}

void terminal_quiet(void)
{
    is_quiet = true;
}

static void write_line(const char *prefix, const char *format, va_list values)
{
    terminal_status(NULL);
    fputs(prefix, stderr);
    vfprintf(stderr, format, values);
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

static bool begins_character(char byte)
{
    return (byte & 0xc0) != 0x80;
}

int terminal_width(const char *text)
{
    int width = 0;
    for (; *text; text++)
        width += begins_character(*text);
    return width;
}

/* Bytes of a code for the terminal, one or, in UTF-8, two; 0: it is none. */
static int control_bytes(const char *text)
{
    const unsigned char first = (unsigned char)text[0], second = (unsigned char)text[1];
    if (first == 0xc2 && second >= 0x80 && second < 0xa0)
        return 2;
    return first < ' ' || first == 127;
}

void terminal_print(const char *text, int width)
{
    int used = 0;
    for (; *text && (used < width || !begins_character(*text)); text++) {
        const int control = control_bytes(text);
        used += begins_character(*text);
        putchar(control ? '?' : *text);
        text += control > 1;
    }
    printf("%*s", width - used, "");
}

bool terminal_flush(void)
{
    return fflush(stdout) == 0 && !ferror(stdout);
}
