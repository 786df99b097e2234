/* Knows what code points of ASCII are, and asks utf8proc about all others. */
#include "data/text/unicode.h"

#ifdef LK_UTF8PROC
#include <utf8proc.h>
#endif

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
