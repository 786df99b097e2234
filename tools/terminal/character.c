/* Decodes UTF-8 and recognizes characters that must not be shown. */
#define _XOPEN_SOURCE 700 /* wcwidth() */
#include "terminal/character.h"

#include <locale.h>
#include <wchar.h>

/* least_codes[n]: the lowest code that needs n bytes; UTF-8 of n bytes with a lower one is
 * invalid. */
static const uint32_t least_codes[] = {0, 0, 0x80, 0x800, 0x10000};

int character_read(const char *text, uint32_t *code)
{
    const unsigned char *p = (const unsigned char *)text;
    *code = *p;
    if (*p < 0x80)
        return 1;
    const int count = *p >= 0xf0 ? 4 : *p >= 0xe0 ? 3 : 2;
    uint32_t found = *p & (0x7fu >> count);
    *code = 0;
    if (*p < 0xc0 || *p > 0xf7)
        return 1;
    for (int i = 1; i < count; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 1;
        found = found << 6 | (p[i] & 0x3f);
    }
    const bool is_surrogate = found >= 0xd800 && found < 0xe000;
    if (found < least_codes[count] || is_surrogate || found > 0x10ffff)
        return 1;
    *code = found;
    return count;
}

/* Marks, embeddings, overrides and isolates of the Unicode Bidirectional Algorithm. */
static bool is_direction(uint32_t code)
{
    return code == 0x61c || code == 0x200e || code == 0x200f ||
           (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

bool character_is_harmless(uint32_t code)
{
    const bool is_control = code < ' ' || (code >= 0x7f && code < 0xa0);
    return !is_control && !is_direction(code) && (code & 0xfffe) != 0xfffe;
}

int character_columns(uint32_t code)
{
    static locale_t unicode;
    if (code < 0x7f)
        return 1;
    if (!unicode)
        unicode = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    if (!unicode)
        return 1;
    const locale_t before = uselocale(unicode);
    const int columns = wcwidth((wchar_t)code);
    uselocale(before);
    return columns < 0 ? 1 : columns;
}
