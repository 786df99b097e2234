/* Code points as UTF-8. Floor 0. */
#ifndef LK_BASE_UTF8_H
#define LK_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of the code point at the start of bytes[count], count at least 1, and its number; 0:
 * they are no UTF-8. source: Unicode 15, table 3-7 */
int lk_utf8_read(const char *bytes, size_t count, uint32_t *code);

/* Writes a code point; returns its bytes, at most 4. */
int lk_utf8_write(uint32_t code, char to[4]);

/* Where the first byte is that is no UTF-8; `count`: there is none. */
size_t lk_utf8_find_broken(const char *bytes, size_t count);

#endif
