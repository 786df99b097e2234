/* Code points of UTF-8, and what is done to them: lower case, punctuation. Floor 4. Knows no
 * token. */
#ifndef LK_DATA_TEXT_UNICODE_H
#define LK_DATA_TEXT_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the code point at the start of bytes[count], count at least 1, and its number; 0:
 * they are no UTF-8. source: Unicode 15, table 3-7 */
int lk_utf8_read(const char *bytes, size_t count, uint32_t *code);

/* Writes a code point; returns its bytes, at most 4. */
int lk_utf8_write(uint32_t code, char to[4]);

/* Where the first byte is that is no UTF-8; `count`: there is none. */
size_t lk_utf8_find_broken(const char *bytes, size_t count);

/* Whether code points beyond ASCII can be asked for in the three functions below. It takes
 * utf8proc; without it only white space beyond ASCII is known. */
bool lk_unicode_is_complete(void);

uint32_t lk_unicode_lower(uint32_t code);

/* In ASCII all that is printed and no letter, digit or blank, as in Keras; beyond it the
 * categories P. */
bool lk_unicode_is_punctuation(uint32_t code);

/* The property White_Space. */
bool lk_unicode_is_space(uint32_t code);

#endif
