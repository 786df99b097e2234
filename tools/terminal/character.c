/* Decodes UTF-8 and recognizes characters that must not be shown. */
#include "terminal/character.h"

#include <stddef.h>

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
    static const struct {
        uint32_t first, last;
        int columns;
    } blocks[] = {{0x300, 0x36f, 0},     {0x1100, 0x115f, 2},   {0x200b, 0x200d, 0},
                  {0x20d0, 0x20ff, 0},   {0x2e80, 0x303e, 2},   {0x3041, 0xa4cf, 2},
                  {0xac00, 0xd7a3, 2},   {0xf900, 0xfaff, 2},   {0xfe00, 0xfe0f, 0},
                  {0xfe30, 0xfe6f, 2},   {0xff00, 0xff60, 2},   {0xffe0, 0xffe6, 2},
                  {0x1f300, 0x1f64f, 2}, {0x1f680, 0x1f6ff, 2}, {0x1f900, 0x1faff, 2},
                  {0x20000, 0x3fffd, 2}};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks && code >= blocks[i].first; i++)
        if (code <= blocks[i].last)
            return blocks[i].columns;
    return 1;
}
