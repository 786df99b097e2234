/* Reads and writes the code points of UTF-8. */
#include "base/utf8.h"

#include <stdbool.h>

static bool is_continuation(const char *bytes, int from, int to)
{
    for (int i = from; i < to; i++)
        if (((unsigned char)bytes[i] & 0xC0) != 0x80)
            return false;
    return true;
}

int lk_utf8_read(const char *bytes, size_t count, uint32_t *code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char first = (unsigned char)bytes[0];
    if (first < 0x80) {
        *code = first;
        return 1;
    }
    const int length = first >= 0xF8   ? 0
                       : first >= 0xF0 ? 4
                       : first >= 0xE0 ? 3
                       : first >= 0xC0 ? 2
                                       : 0;
    if (length == 0 || (size_t)length > count || !is_continuation(bytes, 1, length))
        return 0;
    uint32_t found = first & (0x7FU >> length);
    for (int i = 1; i < length; i++)
        found = found << 6 | ((unsigned char)bytes[i] & 0x3F);
    if (found < least[length] || found > 0x10FFFF || (found >= 0xD800 && found < 0xE000))
        return 0;
    *code = found;
    return length;
}

int lk_utf8_write(uint32_t code, char to[4])
{
    const int length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    if (length == 1) {
        to[0] = (char)code;
        return 1;
    }
    for (int i = length - 1; i > 0; i--) {
        to[i] = (char)(0x80 | (code & 0x3F));
        code >>= 6;
    }
    to[0] = (char)((0xF00U >> length & 0xF0) | code);
    return length;
}

size_t lk_utf8_find_broken(const char *bytes, size_t count)
{
    uint32_t code;
    for (size_t at = 0; at < count;) {
        const int length = lk_utf8_read(bytes + at, count - at, &code);
        if (length == 0)
            return at;
        at += (size_t)length;
    }
    return count;
}
