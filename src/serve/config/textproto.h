/* Reads protocol buffers in text form piece by piece, as TensorFlow Serving's files are
 * written. Floor 9. Knows no message. source: protobuf.dev, "Text Format Language" */
#ifndef LK_SERVE_TEXTPROTO_H
#define LK_SERVE_TEXTPROTO_H

#include <lockstep/status.h>
#include <stdbool.h>
#include <stdint.h>

enum { LK_TEXTPROTO_NAME = 64 };

/* A place in a file. */
struct lk_textproto {
    const char *path, *at;
    char *text;
    int line;
};

/* Reads the whole file; clear releases it. fails: LK_E_IO; LK_E_DATA with a zero byte */
LK_MUST_CHECK enum lk_status lk_textproto_open(const char *path, struct lk_textproto *file);
void lk_textproto_clear(struct lk_textproto *file);

/* The name of the message's next field; *more false: it has ended, and so has the file where
 * is_whole. fails: LK_E_DATA with file and line, as all that follow */
LK_MUST_CHECK enum lk_status lk_textproto_field(struct lk_textproto *file, bool is_whole,
                                                char name[LK_TEXTPROTO_NAME], bool *more);

/* The value of that field: enters a message, or reads a whole number or a text. */
LK_MUST_CHECK enum lk_status lk_textproto_enter(struct lk_textproto *file);
LK_MUST_CHECK enum lk_status lk_textproto_integer(struct lk_textproto *file, int64_t *value);
LK_MUST_CHECK enum lk_status lk_textproto_text(struct lk_textproto *file, char *to, int room);

/* One number, or several in brackets, added to list[*count], which has `room`. */
LK_MUST_CHECK enum lk_status lk_textproto_integers(struct lk_textproto *file, int64_t *list,
                                                   int room, int *count);

/* Returns lk_fail(LK_E_DATA, ...) with the file's name and the line before it. */
enum lk_status lk_textproto_fail(const struct lk_textproto *file, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
