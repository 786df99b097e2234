/* Pieces of answers in JSON, and answering. Floor 9. Knows no protocol. */
#ifndef LK_SERVE_ANSWER_H
#define LK_SERVE_ANSWER_H

#include "base/text.h"
#include "serve/http/http.h"
#include <lockstep/tensor.h>

/* The shortest text that reads back as the same float; NaN, Infinity, -Infinity. */
void lk_answer_float(struct lk_text *text, float number);

/* A text in quotes; bytes that are no UTF-8 become "\xNN". */
void lk_answer_text(struct lk_text *text, const char *value);

/* Values of a shape as lists in lists; a single number stands alone. */
void lk_answer_values(struct lk_text *text, const struct lk_shape *shape, const float *values);

/* "[-1,28,28,1]": with an axis for samples. */
void lk_answer_shape(struct lk_text *text, const struct lk_shape *shape);

/* Answers with the text, which is then empty, or 500 where memory has run out. reply: all but
 * the body. */
void lk_answer_send(struct lk_http_exchange *exchange, struct lk_http_reply reply,
                    struct lk_text *text);

/* {"error": "..."}; what the text says of this thread's last failure is forgotten. */
void lk_answer_error(struct lk_http_exchange *exchange, struct lk_http_reply reply,
                     const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
