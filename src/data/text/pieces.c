/* Standardizes texts as Keras's TextVectorization does, and cuts them into pieces. */
#include "data/text/pieces.h"

#include "base/fail.h"
#include "base/utf8.h"
#include "data/text/unicode.h"
#include <stdlib.h>
#include <string.h>

/* Joining the pairs of a piece takes the square of its length. */
enum { MOST_PIECE = 64 };

const char *const lk_text_units[] = {"auto", "byte", "char", "word", "pairs", NULL};
const char *const lk_text_standards[] = {
    "auto", "none", "lower", "strip_punctuation", "lower_and_strip_punctuation", NULL};

/* --- lower case, punctuation ------------------------------------------------------------- */

static enum lk_status make_room(struct lk_text_room *room, size_t bytes)
{
    if (bytes <= room->room)
        return LK_OK;
    char *grown = realloc(room->bytes, bytes);
    if (!grown)
        return lk_fail_memory("a text", bytes);
    room->bytes = grown;
    room->room = bytes;
    return LK_OK;
}

enum lk_status lk_text_standardize(enum lk_text_unit unit, enum lk_text_standard standard,
                                   const char *text, size_t bytes, struct lk_text_room *room)
{
    const bool lowers =
        standard == LK_STANDARD_LOWER || standard == LK_STANDARD_LOWER_AND_STRIP;
    const bool strips =
        standard == LK_STANDARD_STRIP || standard == LK_STANDARD_LOWER_AND_STRIP;
    const bool is_any = unit == LK_UNIT_BYTE || unit == LK_UNIT_PAIRS;
    LK_TRY(make_room(room, 2 * bytes + 4)); /* 2 bytes may become 3 in lower case, not 4 */
    room->used = 0;
    if (is_any && !lowers && !strips) {
        memcpy(room->bytes, text, bytes);
        room->used = bytes;
        return LK_OK;
    }
    for (size_t at = 0; at < bytes;) {
        uint32_t code;
        const int length = lk_utf8_read(text + at, bytes - at, &code);
        if (length == 0)
            return lk_fail(LK_E_DATA, "byte %zu of the text (0x%02X) is no UTF-8", at,
                           (unsigned char)text[at]);
        if (code >= 0x80 && (lowers || strips) && !lk_unicode_is_complete())
            return lk_fail(LK_E_UNSUPPORTED,
                           "letters beyond ASCII need a build with utf8proc, or "
                           "standardize=none");
        at += (size_t)length;
        if (strips && lk_unicode_is_punctuation(code))
            continue;
        room->used += (size_t)lk_utf8_write(lowers ? lk_unicode_lower(code) : code,
                                            room->bytes + room->used);
    }
    return LK_OK;
}

/* --- pieces ------------------------------------------------------------------------------ */

/* The code point at `at`, whose bytes are known to be UTF-8. */
static size_t read_known(const char *at, const char *end, uint32_t *code)
{
    const int length = lk_utf8_read(at, (size_t)(end - at), code);
    return length > 0 ? (size_t)length : 1;
}

static bool next_word(const char **at, const char *end, const char **piece, size_t *length)
{
    uint32_t code;
    const char *from = *at;
    for (size_t bytes; from < end; from += bytes) {
        bytes = read_known(from, end, &code);
        if (!lk_unicode_is_space(code))
            break;
    }
    const char *to = from;
    for (size_t bytes; to < end; to += bytes) {
        bytes = read_known(to, end, &code);
        if (lk_unicode_is_space(code))
            break;
    }
    *at = to;
    *piece = from;
    *length = (size_t)(to - from);
    return to > from;
}

enum kind { KIND_LETTER, KIND_DIGIT, KIND_SPACE, KIND_OTHER };

static enum kind kind_of(char byte)
{
    const unsigned char c = (unsigned char)byte;
    if (c >= 0x80 || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
        return KIND_LETTER;
    if (c >= '0' && c <= '9')
        return KIND_DIGIT;
    return c == ' ' || (c >= '\t' && c <= '\r') ? KIND_SPACE : KIND_OTHER;
}

/* Letters, digits, white space or other signs, with one blank in front. */
static size_t stretch(const char *at, const char *end)
{
    const bool begins = *at == ' ' && at + 1 < end && kind_of(at[1]) != KIND_SPACE;
    const char *to = at + begins;
    const enum kind kind = kind_of(*to);
    while (to < end && kind_of(*to) == kind && to - at < MOST_PIECE)
        to++;
    const bool leaves = kind == KIND_SPACE && to < end && to[-1] == ' ' && to - at > 1 &&
                        kind_of(*to) != KIND_SPACE;
    return (size_t)(to - at) - leaves; /* the last blank goes with what follows */
}

bool lk_text_next_line(const char **at, const char *end, const char **line, size_t *length)
{
    if (*at >= end)
        return false;
    const char *stop = memchr(*at, '\n', (size_t)(end - *at));
    *line = *at;
    *at = stop ? stop + 1 : end;
    stop = stop ? stop : end;
    *length = (size_t)(stop - *line) - (stop > *line && stop[-1] == '\r');
    return true;
}

bool lk_text_has_labels(const char *text, size_t bytes)
{
    enum { FIRST_LINES = 100 };
    const char *at = text, *line;
    size_t length;
    int seen = 0, with_tab = 0;
    while (seen < FIRST_LINES && lk_text_next_line(&at, text + bytes, &line, &length)) {
        seen += length > 0;
        with_tab += memchr(line, '\t', length) != NULL;
    }
    return with_tab > 0 && 2 * with_tab >= seen;
}

bool lk_text_next(enum lk_text_unit unit, const char **at, const char *end, const char **piece,
                  size_t *length)
{
    uint32_t code;
    if (*at >= end)
        return false;
    if (unit == LK_UNIT_WORD)
        return next_word(at, end, piece, length);
    *piece = *at;
    *length = unit == LK_UNIT_CHAR    ? read_known(*at, end, &code)
              : unit == LK_UNIT_PAIRS ? stretch(*at, end)
                                      : 1;
    *at += *length;
    return true;
}
