/* Text that grows. Floor 0. */
#ifndef LK_BASE_TEXT_H
#define LK_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* {0} is empty; the owner frees `bytes`, which ends in '\0' once something was appended. */
struct lk_text {
    char *bytes;
    size_t used, room;
    bool failed; /* memory ran out: the text is incomplete */
};

/* Appends; does nothing after a failure. */
void lk_text_append(struct lk_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The same of bytes, of which any may be zero. */
void lk_text_append_bytes(struct lk_text *text, const void *bytes, size_t count);

/* Whether a text ends in `end`. */
bool lk_text_ends(const char *text, const char *end);

#endif
