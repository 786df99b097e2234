/* Reads how much device memory a run may take. */
#include "base/fail.h"
#include "train/settings/settings.h"
#include <string.h>

enum lk_status lk_memory_limit_parse(const char *text, size_t *bytes)
{
    static const char units[] = "KMGT";
    const size_t digits = strspn(text, "0123456789");
    const char *unit = text[digits] ? strchr(units, text[digits]) : NULL;
    size_t value = 0;
    bool is_right = digits > 0 && (!text[digits] || (unit && !text[digits + 1]));
    for (size_t i = 0; i < digits; i++)
        is_right &= !__builtin_mul_overflow(value, 10, &value) &&
                    !__builtin_add_overflow(value, (size_t)(text[i] - '0'), &value);
    for (const char *u = units; unit && u <= unit; u++)
        is_right &= !__builtin_mul_overflow(value, 1024, &value);
    if (!*text)
        value = 0;
    else if (!is_right || value == 0)
        return lk_fail(LK_E_ARGUMENT,
                       "a memory limit of '%.60s': expected bytes, such as 4G, 512M or "
                       "1000000000",
                       text);
    *bytes = value;
    return LK_OK;
}
