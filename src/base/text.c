/* A string that grows as text is appended to it. */
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for so many bytes more, and the zero behind them. */
static bool reserve(struct lk_text *text, size_t count)
{
    if (text->failed || text->used + count + 1 <= text->room)
        return !text->failed;
    const size_t room = 2 * (text->used + count + 1);
    char *bytes = realloc(text->bytes, room);
    text->failed = !bytes;
    if (!bytes)
        return false;
    text->bytes = bytes;
    text->room = room;
    return true;
}

void lk_text_append(struct lk_text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int need = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (need < 0 || !reserve(text, (size_t)need))
        return;
    va_start(args, format);
    vsnprintf(text->bytes + text->used, text->room - text->used, format, args);
    va_end(args);
    text->used += (size_t)need;
}

void lk_text_append_bytes(struct lk_text *text, const void *bytes, size_t count)
{
    if (!reserve(text, count))
        return;
    memcpy(text->bytes + text->used, bytes, count);
    text->used += count;
    text->bytes[text->used] = '\0';
}

bool lk_text_ends(const char *text, const char *end)
{
    const size_t length = strlen(text), own = strlen(end);
    return length >= own && strcmp(text + length - own, end) == 0;
}
