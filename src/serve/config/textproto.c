/* Protocol buffers in text form: fields, numbers, texts. */
#include "serve/config/textproto.h"

#include "base/fail.h"
#include "io/file.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 1 << 20 };

static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";

enum lk_status lk_textproto_fail(const struct lk_textproto *file, const char *format, ...)
{
    char what[256];
    va_list values;
    va_start(values, format);
    vsnprintf(what, sizeof what, format, values);
    va_end(values);
    return lk_fail(LK_E_DATA, "'%s', line %d: %s", file->path, file->line, what);
}

enum lk_status lk_textproto_open(const char *path, struct lk_textproto *file)
{
    void *text = NULL;
    size_t bytes = 0;
    LK_TRY(lk_file_read(path, MOST_BYTES, &text, &bytes));
    *file = (struct lk_textproto){.path = path, .at = text, .text = text, .line = 1};
    if (strlen(file->text) == bytes)
        return LK_OK;
    lk_textproto_clear(file);
    return lk_textproto_fail(file, "it has a zero byte, and is no text");
}

void lk_textproto_clear(struct lk_textproto *file)
{
    free(file->text);
    file->text = NULL;
}

/* The next character behind blanks and comments, which is not taken. */
static char next(struct lk_textproto *file)
{
    while (*file->at && strchr(" \t\r\n#", *file->at)) {
        file->line += *file->at == '\n';
        file->at += *file->at == '#' ? strcspn(file->at, "\n") : 1;
    }
    return *file->at;
}

static bool takes(struct lk_textproto *file, char wanted)
{
    const bool is_it = next(file) == wanted && wanted;
    file->at += is_it;
    return is_it;
}

static enum lk_status expected(struct lk_textproto *file, const char *what)
{
    const char c = next(file);
    if (!c)
        return lk_textproto_fail(file, "expected %s, the file ends", what);
    return lk_textproto_fail(file, "expected %s, found '%c'", what, c);
}

enum lk_status lk_textproto_field(struct lk_textproto *file, bool is_whole,
                                  char name[LK_TEXTPROTO_NAME], bool *more)
{
    while (takes(file, ',') || takes(file, ';'))
        continue;
    *more = next(file) != '\0';
    if (!*more)
        return is_whole ? LK_OK : expected(file, "'}'");
    if (!is_whole && (takes(file, '}') || takes(file, '>'))) {
        *more = false;
        return LK_OK;
    }
    const size_t length = strspn(file->at, letters);
    if (length == 0 || length >= LK_TEXTPROTO_NAME)
        return expected(file, "the name of a field");
    memcpy(name, file->at, length);
    name[length] = '\0';
    file->at += length;
    return LK_OK;
}

enum lk_status lk_textproto_enter(struct lk_textproto *file)
{
    (void)takes(file, ':');
    return takes(file, '{') || takes(file, '<') ? LK_OK : expected(file, "'{'");
}

static enum lk_status read_integer(struct lk_textproto *file, int64_t *value)
{
    char *end;
    const char c = next(file);
    errno = 0;
    const long long number = strtoll(file->at, &end, 10);
    if ((c != '-' && (c < '0' || c > '9')) || end == file->at || errno ||
        (*end && strchr("._", *end)) || strspn(end, letters) > 0)
        return expected(file, "a whole number");
    file->at = end;
    *value = number;
    return LK_OK;
}

enum lk_status lk_textproto_integer(struct lk_textproto *file, int64_t *value)
{
    return takes(file, ':') ? read_integer(file, value) : expected(file, "':'");
}

enum lk_status lk_textproto_integers(struct lk_textproto *file, int64_t *list, int room,
                                     int *count)
{
    if (!takes(file, ':'))
        return expected(file, "':'");
    const bool is_list = takes(file, '[');
    if (is_list && takes(file, ']'))
        return LK_OK;
    do {
        if (*count == room)
            return lk_textproto_fail(file, "more than %d numbers", room);
        LK_TRY(read_integer(file, &list[(*count)++]));
    } while (is_list && takes(file, ','));
    return !is_list || takes(file, ']') ? LK_OK : expected(file, "']'");
}

enum lk_status lk_textproto_text(struct lk_textproto *file, char *to, int room)
{
    if (!takes(file, ':'))
        return expected(file, "':'");
    const char quote = next(file);
    if (quote != '"' && quote != '\'')
        return expected(file, "a text in quotes");
    const char *end = file->at + 1 + strcspn(file->at + 1, quote == '"' ? "\"\n" : "'\n");
    const size_t length = (size_t)(end - file->at - 1);
    if (*end != quote)
        return lk_textproto_fail(file, "a text without its second quote");
    if (length >= (size_t)room || memchr(file->at, '\\', length))
        return lk_textproto_fail(file, "a text of more than %d bytes, or with a '\\'",
                                 room - 1);
    memcpy(to, file->at + 1, length);
    to[length] = '\0';
    file->at = end + 1;
    return LK_OK;
}
