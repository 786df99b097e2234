/* What code points are, and what is done to them: lower case, punctuation. Floor 4. Knows no
 * token. */
#ifndef LK_DATA_TEXT_UNICODE_H
#define LK_DATA_TEXT_UNICODE_H

#include <stdbool.h>
#include <stdint.h>

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
