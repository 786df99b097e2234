/* Writes texts that may be no UTF-8, such as paths, as UTF-8, and reads them back. */
#include "base/escape.h"

#include "base/utf8.h"
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Bytes of the UTF-8 character that the text begins with; 0: it begins with none. */
static size_t character_bytes(const char *text)
{
    uint32_t code;
    return (size_t)lk_utf8_read(text, strnlen(text, 4), &code);
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
