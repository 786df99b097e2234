/* Reads and writes UTF-8; knows what ASCII means, and asks utf8proc about all else. */
#include "data/text/unicode.h"

#ifdef LK_UTF8PROC
#include <utf8proc.h>
#endif

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

bool lk_unicode_is_space(uint32_t code)
{
    return (code >= 0x09 && code <= 0x0D) || code == 0x20 || code == 0x85 || code == 0xA0 ||
           code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 ||
           code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

static bool is_ascii_punctuation(uint32_t code)
{
    return (code >= '!' && code <= '/') || (code >= ':' && code <= '@') ||
           (code >= '[' && code <= '`') || (code >= '{' && code <= '~');
}

static uint32_t ascii_lower(uint32_t code)
{
    return code >= 'A' && code <= 'Z' ? code + 32 : code;
}

#ifdef LK_UTF8PROC
bool lk_unicode_is_complete(void)
{
    return true;
}

uint32_t lk_unicode_lower(uint32_t code)
{
    return code < 0x80 ? ascii_lower(code) : (uint32_t)utf8proc_tolower((utf8proc_int32_t)code);
}

bool lk_unicode_is_punctuation(uint32_t code)
{
    if (code < 0x80)
        return is_ascii_punctuation(code);
    const utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)code);
    return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}
#else
bool lk_unicode_is_complete(void)
{
    return false;
}

uint32_t lk_unicode_lower(uint32_t code)
{
    return ascii_lower(code);
}

bool lk_unicode_is_punctuation(uint32_t code)
{
    return is_ascii_punctuation(code);
}
#endif
