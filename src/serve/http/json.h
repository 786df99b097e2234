/* Reads JSON piece by piece from bytes that anyone may have sent: nothing is allocated but
 * texts that are asked for, and nothing is deeper than LK_JSON_DEPTH. Floor 9. Knows no model.
 * NaN, Infinity and -Infinity are numbers. source: RFC 8259 */
#ifndef LK_SERVE_JSON_H
#define LK_SERVE_JSON_H

#include <lockstep/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LK_JSON_DEPTH = 32, LK_JSON_NAME = 128 };

/* A place in a text; a copy of it can be read from again. */
struct lk_json {
    const char *begin, *at, *end;
    int depth;
};

/* Begins at the first value. */
void lk_json_begin(struct lk_json *json, const void *text, size_t bytes);

/* Nothing but blanks may be left. fails: LK_E_DATA */
LK_MUST_CHECK enum lk_status lk_json_end(struct lk_json *json);

/* The first character of the value that is next: '{', '[', '"', 't', 'f', 'n', or '0' for
 * numbers; '\0': none. */
char lk_json_kind(struct lk_json *json);

/* Enters an object or a list. Then lk_json_key() or lk_json_item() comes before each of its
 * values; *more false: it has ended. first: whether nothing was read of it yet, which is then
 * set to false. fails: LK_E_DATA, as all that follow */
LK_MUST_CHECK enum lk_status lk_json_open(struct lk_json *json, char kind);
LK_MUST_CHECK enum lk_status lk_json_item(struct lk_json *json, bool *first, bool *more);
/* A longer key is cut, and so is none of ours; one with a zero character is refused. */
LK_MUST_CHECK enum lk_status lk_json_key(struct lk_json *json, bool *first, bool *more,
                                         char key[LK_JSON_NAME]);

LK_MUST_CHECK enum lk_status lk_json_number(struct lk_json *json, double *number);
LK_MUST_CHECK enum lk_status lk_json_bool(struct lk_json *json, bool *value);

/* A text, decoded, with '\0' behind it; the caller frees it. fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_json_text(struct lk_json *json, char **text, size_t *bytes);

/* A text of less than LK_JSON_NAME bytes. */
LK_MUST_CHECK enum lk_status lk_json_name(struct lk_json *json, char name[LK_JSON_NAME]);

/* Passes over a value of any kind. */
LK_MUST_CHECK enum lk_status lk_json_skip(struct lk_json *json);

/* Returns lk_fail(LK_E_DATA, ...) with the place in the text before it. */
enum lk_status lk_json_fail(const struct lk_json *json, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* 0 to 15; -1: it is none. */
int lk_hex_digit(char c);

/* Bytes of base 64, with '=' behind them or without; line ends between them are refused. The
 * caller frees them. fails: LK_E_DATA, LK_E_MEMORY. source: RFC 4648, sections 4 and 5 */
LK_MUST_CHECK enum lk_status lk_base64_read(const char *text, size_t length, uint8_t **bytes,
                                            size_t *count);

#endif
