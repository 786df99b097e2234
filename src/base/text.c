/* A string that grows as text is appended to it. */
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void lk_text_append(struct lk_text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int need = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (need < 0 || text->failed)
        return;
    if (text->used + (size_t)need + 1 > text->room) {
        const size_t room = 2 * (text->used + (size_t)need + 1);
        char *bytes = realloc(text->bytes, room);
        text->failed = !bytes;
        if (!bytes)
            return;
        text->bytes = bytes;
        text->room = room;
    }
    va_start(args, format);
    vsnprintf(text->bytes + text->used, text->room - text->used, format, args);
    va_end(args);
    text->used += (size_t)need;
}
