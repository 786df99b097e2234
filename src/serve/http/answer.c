/* Pieces of answers in JSON. */
#include "serve/http/answer.h"

#include "base/escape.h"
#include "base/number.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER = 48 };

/* number = digits * 10^-shift in so many digits, if that is the same float. */
static bool fits(double number, int digits, int place, int64_t *mantissa, int *shift)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    *shift = digits - 1 - place;
    if (*shift < 0 || *shift > 22)
        return false;
    *mantissa = llround(number * powers[*shift]);
    return (float)((double)*mantissa / powers[*shift]) == (float)number;
}

/* "-0.00125" of 125 and 5. */
static void print_digits(int64_t mantissa, int shift, bool is_negative, char text[NUMBER])
{
    char digits[24];
    for (; shift > 0 && mantissa % 10 == 0; shift--)
        mantissa /= 10;
    int length = snprintf(digits, sizeof digits, "%0*lld", shift + 1, (long long)mantissa);
    const int whole = length - shift;
    snprintf(text, NUMBER, "%s%.*s.%s", is_negative ? "-" : "", whole, digits,
             shift > 0 ? digits + whole : "0");
}

void lk_answer_float(struct lk_text *text, float number)
{
    char printed[NUMBER] = "";
    const double size = fabs((double)number);
    int64_t mantissa = 0;
    int shift = 0;
    if (isnan(number)) {
        lk_text_append(text, "NaN");
        return;
    }
    if (isinf(number)) {
        lk_text_append(text, number > 0 ? "Infinity" : "-Infinity");
        return;
    }
    if (size >= 1e-5 && size < 1e9) {
        const int place = (int)floor(log10(size));
        for (int digits = place < 0 ? 6 : 6 + place; digits <= 12 && !*printed; digits++)
            if (fits(size, digits, place, &mantissa, &shift))
                print_digits(mantissa, shift, number < 0, printed);
    } else if (size == 0) {
        snprintf(printed, sizeof printed, "0.0");
    }
    if (!*printed)
        lk_number_print((double)number, printed, sizeof printed);
    lk_text_append(text, "%s", printed);
}

void lk_answer_text(struct lk_text *text, const char *value)
{
    char *escaped = NULL;
    if (lk_needs_escape(value)) {
        escaped = malloc(LK_ESCAPED_BYTES(strlen(value)));
        text->failed |= !escaped;
        if (!escaped)
            return;
        lk_escape(value, escaped);
        value = escaped;
    }
    lk_text_append(text, "\"");
    for (const char *at = value; *at; at++) {
        const size_t plain = strcspn(at, "\"\\\b\f\n\r\t\x01\x02\x03\x04\x05\x06\x07\x0b\x0e"
                                         "\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a"
                                         "\x1b\x1c\x1d\x1e\x1f");
        lk_text_append(text, "%.*s", (int)plain, at);
        at += plain;
        if (!*at)
            break;
        if (*at == '"' || *at == '\\')
            lk_text_append(text, "\\%c", *at);
        else
            lk_text_append(text, "\\u%04x", (unsigned)*at);
    }
    lk_text_append(text, "\"");
    free(escaped);
}

static const float *print_axis(struct lk_text *text, const struct lk_shape *shape, int axis,
                               const float *values)
{
    if (axis == shape->rank || axis == LK_MOST_AXES) {
        lk_answer_float(text, *values);
        return values + 1;
    }
    for (int64_t i = 0; i < shape->dim[axis]; i++) {
        lk_text_append(text, i ? "," : "[");
        values = print_axis(text, shape, axis + 1, values);
    }
    lk_text_append(text, "]");
    return values;
}

void lk_answer_values(struct lk_text *text, const struct lk_shape *shape, const float *values)
{
    (void)print_axis(text, shape, 0, values);
}

void lk_answer_shape(struct lk_text *text, const struct lk_shape *shape)
{
    lk_text_append(text, "[-1");
    for (int i = 0; i < shape->rank; i++)
        lk_text_append(text, ",%lld", (long long)shape->dim[i]);
    lk_text_append(text, "]");
}

void lk_answer_send(struct lk_http_exchange *exchange, struct lk_http_reply reply,
                    struct lk_text *text)
{
    static const char lost[] = "{\"error\": \"out of memory\"}\n";
    if (text->failed) {
        free(text->bytes);
        reply.status = 500;
        reply.body = NULL;
        reply.page = lost;
        reply.bytes = sizeof lost - 1;
    } else {
        reply.body = text->bytes;
        reply.bytes = text->used;
    }
    *text = (struct lk_text){0};
    lk_http_answer(exchange, &reply);
}

void lk_answer_error(struct lk_http_exchange *exchange, struct lk_http_reply reply,
                     const char *format, ...)
{
    char message[1024];
    struct lk_text text = {0};
    va_list values;
    va_start(values, format);
    vsnprintf(message, sizeof message, format, values);
    va_end(values);
    lk_error_clear();
    lk_text_append(&text, "{\"error\": ");
    lk_answer_text(&text, message);
    lk_text_append(&text, "}\n");
    lk_answer_send(exchange, reply, &text);
}
