/* Writes texts that may be no UTF-8, such as paths, as UTF-8, and reads them back. */
#include "base/escape.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Bytes of the UTF-8 character that the text begins with; 0: it begins with none. source: RFC
 * 3629 */
static size_t character_bytes(const char *text)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *p = (const unsigned char *)text;
    if (*p < 0x80)
        return 1;
    const size_t count = *p >= 0xf0 ? 4 : *p >= 0xe0 ? 3 : 2;
    uint32_t code = *p & (0x7fu >> count);
    if (*p < 0xc0 || *p > 0xf7)
        return 0;
    for (size_t i = 1; i < count; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (p[i] & 0x3f);
    }
    const bool is_surrogate = code >= 0xd800 && code < 0xe000;
    return code < least[count] || is_surrogate || code > 0x10ffff ? 0 : count;
}

static bool is_escaped(const char *text, size_t length)
{
    return length == 0 || (text[0] == '\\' && text[1] == 'x');
}

bool lk_needs_escape(const char *text)
{
    for (size_t length; *text; text += length) {
        length = character_bytes(text);
        if (is_escaped(text, length))
            return true;
    }
    return false;
}

void lk_escape(const char *text, char *escaped)
{
    while (*text) {
        const size_t length = character_bytes(text);
        if (is_escaped(text, length)) {
            escaped += sprintf(escaped, "\\x%02x", (unsigned char)*text);
            text++;
            continue;
        }
        memcpy(escaped, text, length);
        escaped += length;
        text += length;
    }
    *escaped = '\0';
}

/* The byte that \xHH stands for where lk_escape() writes it so; 0: none. */
static unsigned char escaped_byte(const char *text)
{
    unsigned value = 0;
    if (text[0] != '\\' || text[1] != 'x')
        return 0;
    for (int i = 2; i < 4; i++) {
        const char *digits = "0123456789abcdef";
        const char *digit = text[i] ? strchr(digits, text[i]) : NULL;
        if (!digit)
            return 0;
        value = 16 * value + (unsigned)(digit - digits);
    }
    return value >= 0x80 || value == '\\' ? (unsigned char)value : 0;
}

void lk_unescape(char *text)
{
    char *to = text;
    while (*text) {
        const unsigned char byte = escaped_byte(text);
        *to++ = byte ? (char)byte : *text;
        text += byte ? 4 : 1;
    }
    *to = '\0';
}
