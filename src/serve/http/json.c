/* Reads JSON piece by piece. */
#include "serve/http/json.h"

#include "base/fail.h"
#include "base/number.h"
#include "base/utf8.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DIGITS = 400 };

enum lk_status lk_json_fail(const struct lk_json *json, const char *format, ...)
{
    char text[512];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    return lk_fail(LK_E_DATA, "JSON, byte %zu: %s", (size_t)(json->at - json->begin), text);
}

void lk_json_begin(struct lk_json *json, const void *text, size_t bytes)
{
    *json = (struct lk_json){.begin = text, .at = text, .end = (const char *)text + bytes};
}

static char next(struct lk_json *json)
{
    while (json->at < json->end &&
           (*json->at == ' ' || *json->at == '\n' || *json->at == '\t' || *json->at == '\r'))
        json->at++;
    return json->at < json->end ? *json->at : '\0';
}

enum lk_status lk_json_end(struct lk_json *json)
{
    next(json);
    return json->at == json->end ? LK_OK : lk_json_fail(json, "something behind the end");
}

char lk_json_kind(struct lk_json *json)
{
    const char c = next(json);
    return (c >= '0' && c <= '9') || c == '-' || c == 'N' || c == 'I' ? '0' : c;
}

/* "'x'", or what stands for bytes that cannot be shown. */
static enum lk_status refuse(struct lk_json *json, const char *expected)
{
    const char c = next(json);
    if (json->at == json->end)
        return lk_json_fail(json, "expected %s, found the end", expected);
    if (c < ' ' || c > '~')
        return lk_json_fail(json, "expected %s, found byte %d", expected, (unsigned char)c);
    return lk_json_fail(json, "expected %s, found '%c'", expected, c);
}

enum lk_status lk_json_open(struct lk_json *json, char kind)
{
    if (next(json) != kind)
        return refuse(json, kind == '{' ? "an object" : "a list");
    if (json->depth == LK_JSON_DEPTH)
        return lk_json_fail(json, "more than %d values in one another", LK_JSON_DEPTH);
    json->depth++;
    json->at++;
    return LK_OK;
}

/* What stands between the values of an object or a list, or ends it. */
static enum lk_status go_on(struct lk_json *json, char end, bool *first, bool *more)
{
    const char c = next(json);
    *more = c != end;
    if (c == end) {
        json->at++;
        json->depth--;
        return LK_OK;
    }
    if (!*first) {
        if (c != ',')
            return refuse(json, end == '}' ? "',' or '}'" : "',' or ']'");
        json->at++;
    }
    *first = false;
    return LK_OK;
}

enum lk_status lk_json_item(struct lk_json *json, bool *first, bool *more)
{
    return go_on(json, ']', first, more);
}

enum lk_status lk_json_key(struct lk_json *json, bool *first, bool *more,
                           char key[LK_JSON_NAME])
{
    char *text = NULL;
    size_t bytes = 0;
    LK_TRY(go_on(json, '}', first, more));
    if (!*more)
        return LK_OK;
    LK_TRY(lk_json_text(json, &text, &bytes));
    const bool is_text = strlen(text) == bytes;
    snprintf(key, LK_JSON_NAME, "%s", text);
    free(text);
    if (!is_text)
        return lk_json_fail(json, "a key with a zero character");
    if (next(json) != ':')
        return refuse(json, "':'");
    json->at++;
    return LK_OK;
}

/* --- numbers -------------------------------------------------------------------------------
 */

static bool takes_word(struct lk_json *json, const char *word)
{
    const size_t length = strlen(word);
    if ((size_t)(json->end - json->at) < length || memcmp(json->at, word, length) != 0)
        return false;
    json->at += length;
    return true;
}

static bool is_digit(const struct lk_json *json, const char *at)
{
    return at < json->end && *at >= '0' && *at <= '9';
}

/* Passes over "-12.5e+3"; NULL: it is none. *mantissa and *exponent: its value, unless it has
 * more digits than fit, when *digits says so. */
static const char *scan(const struct lk_json *json, uint64_t *mantissa, int *exponent,
                        int *digits)
{
    const char *at = json->at;
    int shift = 0;
    at += *at == '-';
    if (!is_digit(json, at) || (*at == '0' && is_digit(json, at + 1)))
        return NULL;
    for (; is_digit(json, at); at++, (*digits)++)
        *mantissa = *digits < 18 ? *mantissa * 10 + (uint64_t)(*at - '0') : *mantissa;
    if (at < json->end && *at == '.') {
        if (!is_digit(json, ++at))
            return NULL;
        for (; is_digit(json, at); at++, (*digits)++, shift--)
            *mantissa = *digits < 18 ? *mantissa * 10 + (uint64_t)(*at - '0') : *mantissa;
    }
    if (at < json->end && (*at == 'e' || *at == 'E')) {
        at++;
        const bool is_negative = at < json->end && *at == '-';
        at += at < json->end && (*at == '-' || *at == '+');
        if (!is_digit(json, at))
            return NULL;
        int power = 0;
        for (; is_digit(json, at); at++)
            power = power < 10000 ? power * 10 + (*at - '0') : power;
        shift += is_negative ? -power : power;
    }
    *exponent = shift;
    return at;
}

static enum lk_status read_long(struct lk_json *json, const char *end, double *number)
{
    char copy[MOST_DIGITS];
    const size_t length = (size_t)(end - json->at);
    if (length >= sizeof copy)
        return lk_json_fail(json, "a number of %zu characters", length);
    memcpy(copy, json->at, length);
    copy[length] = '\0';
    *number = lk_number_read(copy, NULL);
    json->at = end;
    return LK_OK;
}

enum lk_status lk_json_number(struct lk_json *json, double *number)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    uint64_t mantissa = 0;
    int exponent = 0, digits = 0;
    if (lk_json_kind(json) != '0')
        return refuse(json, "a number");
    const bool is_negative = *json->at == '-';
    if (takes_word(json, "NaN")) {
        *number = (double)NAN;
        return LK_OK;
    }
    if (takes_word(json, is_negative ? "-Infinity" : "Infinity")) {
        *number = is_negative ? -(double)INFINITY : (double)INFINITY;
        return LK_OK;
    }
    const char *end = scan(json, &mantissa, &exponent, &digits);
    if (!end)
        return lk_json_fail(json, "no number");
    if (digits > 18 || mantissa > (uint64_t)1 << 53 || exponent < -22 || exponent > 22)
        return read_long(json, end, number);
    const double whole = (double)mantissa; /* both are exact: one rounding */
    const double value = exponent < 0 ? whole / powers[-exponent] : whole * powers[exponent];
    *number = is_negative ? -value : value;
    json->at = end;
    return LK_OK;
}

enum lk_status lk_json_bool(struct lk_json *json, bool *value)
{
    next(json);
    *value = takes_word(json, "true");
    return *value || takes_word(json, "false") ? LK_OK : refuse(json, "true or false");
}

/* --- texts ---------------------------------------------------------------------------------
 */

int lk_hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Four digits of base 16 behind "\u"; -1: they are none. */
static int read_unit(struct lk_json *json)
{
    int unit = 0;
    if (json->end - json->at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        const int digit = lk_hex_digit(json->at[i]);
        if (digit < 0)
            return -1;
        unit = unit * 16 + digit;
    }
    json->at += 4;
    return unit;
}

/* What stands behind a backslash; a character beyond 16 bits is two units. */
static enum lk_status read_escape(struct lk_json *json, char *to, size_t *used)
{
    static const char known[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    const char c = json->at < json->end ? *json->at++ : '\0';
    const char *at = c ? strchr(known, c) : NULL;
    if (at) {
        to[(*used)++] = meant[at - known];
        return LK_OK;
    }
    int code = c == 'u' ? read_unit(json) : -1;
    if (code >= 0xD800 && code < 0xDC00) {
        const bool has_low = takes_word(json, "\\u");
        const int low = has_low ? read_unit(json) : -1;
        code = low >= 0xDC00 && low < 0xE000
                   ? 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
                   : -1;
    }
    if (code < 0 || (code >= 0xDC00 && code < 0xE000))
        return lk_json_fail(json, "a text with a wrong '\\'");
    *used += (size_t)lk_utf8_write((uint32_t)code, to + *used);
    return LK_OK;
}

/* The quote that ends the text whose inside begins at `at`; NULL: there is none. */
static const char *find_quote(const struct lk_json *json, const char *at)
{
    while (at < json->end && *at != '"')
        at += *at == '\\' && json->end - at > 1 ? 2 : 1;
    return at < json->end ? at : NULL;
}

static enum lk_status decode(struct lk_json *json, const char *quote, char *to, size_t *used)
{
    while (json->at < quote) {
        const char c = *json->at++;
        if ((unsigned char)c < ' ')
            return lk_json_fail(json, "a control character in a text");
        if (c != '\\')
            to[(*used)++] = c;
        else
            LK_TRY(read_escape(json, to, used));
    }
    return lk_utf8_find_broken(to, *used) == *used
               ? LK_OK
               : lk_json_fail(json, "a text that is no UTF-8");
}

enum lk_status lk_json_text(struct lk_json *json, char **text, size_t *bytes)
{
    if (next(json) != '"')
        return refuse(json, "a text");
    const char *quote = find_quote(json, json->at + 1);
    if (!quote)
        return lk_json_fail(json, "a text without an end");
    json->at++;
    const size_t room = (size_t)(quote - json->at) + 1; /* no escape is shorter than its text */
    char *made = malloc(room);
    size_t used = 0;
    if (!made)
        return lk_fail_memory("a text", room);
    const enum lk_status status = decode(json, quote, made, &used);
    if (status != LK_OK) {
        free(made);
        return status;
    }
    made[used] = '\0';
    json->at = quote + 1;
    *text = made;
    *bytes = used;
    return LK_OK;
}

enum lk_status lk_json_name(struct lk_json *json, char name[LK_JSON_NAME])
{
    char *text = NULL;
    size_t bytes = 0;
    LK_TRY(lk_json_text(json, &text, &bytes));
    const bool fits = bytes < LK_JSON_NAME && strlen(text) == bytes;
    if (fits)
        memcpy(name, text, bytes + 1);
    free(text);
    return fits ? LK_OK : lk_json_fail(json, "a name of %zu bytes", bytes);
}

static enum lk_status skip_inside(struct lk_json *json, char kind)
{
    char key[LK_JSON_NAME];
    bool first = true, more = true;
    LK_TRY(lk_json_open(json, kind));
    while (true) {
        LK_TRY(kind == '{' ? lk_json_key(json, &first, &more, key)
                           : lk_json_item(json, &first, &more));
        if (!more)
            return LK_OK;
        LK_TRY(lk_json_skip(json));
    }
}

/* Lists of numbers are what large requests are made of. */
enum lk_status lk_json_skip(struct lk_json *json)
{
    const char kind = lk_json_kind(json);
    char *text = NULL;
    size_t bytes;
    double number;
    bool value;
    if (kind == '{' || kind == '[')
        return skip_inside(json, kind);
    if (kind == '0')
        return lk_json_number(json, &number);
    if (kind == '"') {
        const enum lk_status status = lk_json_text(json, &text, &bytes);
        free(text);
        return status;
    }
    if (kind == 'n')
        return takes_word(json, "null") ? LK_OK : refuse(json, "null");
    if (kind == 't' || kind == 'f')
        return lk_json_bool(json, &value);
    return refuse(json, "a value");
}

/* --- base 64 -------------------------------------------------------------------------------
 */

static int base64_digit(char c)
{
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+' || c == '-' ? 62
           : c == '/' || c == '_' ? 63
                                  : -1;
}

enum lk_status lk_base64_read(const char *text, size_t length, uint8_t **bytes, size_t *count)
{
    size_t used = 0;
    uint32_t bits = 0;
    for (int i = 0; i < 2 && length > 0 && text[length - 1] == '='; i++)
        length--;
    uint8_t *made = malloc(length / 4 * 3 + 3);
    if (!made)
        return lk_fail_memory("bytes of base 64", length);
    bool is_good = length % 4 != 1;
    for (size_t i = 0; i < length && is_good; i++) {
        const int digit = base64_digit(text[i]);
        is_good = digit >= 0;
        bits = bits << 6 | ((uint32_t)digit & 63);
        if (i % 4 > 0)
            made[used++] = (uint8_t)(bits >> (6 - 2 * (i % 4)));
    }
    if (!is_good) {
        free(made);
        return lk_fail(LK_E_DATA, "'b64' is no base 64");
    }
    *bytes = made;
    *count = used;
    return LK_OK;
}
