/* Cuts a text into pieces: words, characters, bytes, or the stretches within which pairs of
 * bytes are joined. Floor 4. Knows no vocabulary. */
#ifndef LK_DATA_TEXT_PIECES_H
#define LK_DATA_TEXT_PIECES_H

#include <lockstep/status.h>
#include <stdbool.h>
#include <stddef.h>

enum lk_text_unit {
    LK_UNIT_AUTO, /* as the vocabulary says, else bytes */
    LK_UNIT_BYTE,
    LK_UNIT_CHAR,  /* a code point */
    LK_UNIT_WORD,  /* what stands between white space */
    LK_UNIT_PAIRS, /* bytes, joined pair by pair */
};

enum lk_text_standard {
    LK_STANDARD_AUTO, /* words: lower_and_strip_punctuation; others: none */
    LK_STANDARD_NONE,
    LK_STANDARD_LOWER,
    LK_STANDARD_STRIP,
    LK_STANDARD_LOWER_AND_STRIP,
};

/* The names of both, in this order, and NULL. */
extern const char *const lk_text_units[], *const lk_text_standards[];

/* Finds the next line: *at moves behind its LF, or to the end where the last line has none. A
 * CR in front of the LF, or of the end, is not part of it. false: there is none. */
bool lk_text_next_line(const char **at, const char *end, const char **line, size_t *length);

/* Whether at least half of the first lines that are not empty have a TAB. One that got into a
 * long text does not make it labelled, nor does a broken line make the others one text. */
bool lk_text_has_labels(const char *text, size_t bytes);

/* Memory for a text that is prepared, used again and again. {0} is empty; free(bytes). */
struct lk_text_room {
    char *bytes;
    size_t used, room;
};

/* Writes the text to `room` in lower case, without punctuation, or as it is. The bytes of unit
 * byte and pairs may be anything, those of others have to be UTF-8.
 * fails: LK_E_DATA no UTF-8, naming the byte; LK_E_UNSUPPORTED letters beyond ASCII in a build
 * without utf8proc; LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_text_standardize(enum lk_text_unit unit,
                                                 enum lk_text_standard standard,
                                                 const char *text, size_t bytes,
                                                 struct lk_text_room *room);

/* Finds the next piece of such a text: *at moves behind it. false: there is none. Pieces of
 * unit pairs, one behind the other, are the whole text. */
bool lk_text_next(enum lk_text_unit unit, const char **at, const char *end, const char **piece,
                  size_t *length);

#endif
