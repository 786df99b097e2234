/* Keeps the text of a thread's first failure until lk_error_clear(). */
#include "base/fail.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES = 4096 };
static _Thread_local char first[TEXT_BYTES];

const char *lk_status_text(enum lk_status status)
{
    static const char *const texts[] = {
#define LK_X(code, meaning) [code] = meaning,
        LK_STATUSES(LK_X)
#undef LK_X
    };
    const int index = (int)status;
    return index >= 0 && index < LK_COUNT(texts) ? texts[index] : "unknown status";
}

const char *lk_error_text(void)
{
    return first;
}

void lk_error_clear(void)
{
    first[0] = '\0';
}

enum lk_status lk_fail(enum lk_status status, const char *format, ...)
{
    if (first[0] == '\0') {
        va_list args;
        va_start(args, format);
        vsnprintf(first, sizeof first, format, args);
        va_end(args);
    }
    return status;
}

enum lk_status lk_fail_memory(const char *what, unsigned long long bytes)
{
    return lk_fail(LK_E_MEMORY, "out of host memory: %llu bytes for %s", bytes, what);
}

enum lk_status lk_fail_within(enum lk_status status, const char *format, ...)
{
    char old[TEXT_BYTES];
    memcpy(old, first, sizeof old);
    va_list args;
    va_start(args, format);
    vsnprintf(first, sizeof first, format, args);
    va_end(args);
    const size_t used = strlen(first);
    snprintf(first + used, sizeof first - used, ": %.*s", (int)(sizeof first - used - 3), old);
    return status;
}
