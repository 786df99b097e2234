/* Python's pickles, as far as PyTorch's files need them. Floor 1. Private to this room. Nothing
 * is executed: of the globals that a pickle may name, a few are known, and what they would be
 * called with is kept as a value; every other one is refused by its name.
 * source: Python's Lib/pickletools.py, which describes each opcode */
#ifndef LK_IO_ARRAYS_PICKLE_H
#define LK_IO_ARRAYS_PICKLE_H

#include "base/arena.h"
#include <stdbool.h>
#include <stdint.h>

enum lk_pickle_kind {
    LK_PICKLE_OTHER, /* None, a real, bytes, a large integer: nothing of it is kept */
    LK_PICKLE_TRUTH,
    LK_PICKLE_INTEGER,
    LK_PICKLE_TEXT,
    LK_PICKLE_TUPLE,
    LK_PICKLE_LIST,
    LK_PICKLE_DICT, /* items: key, value, key, value, ... */
    LK_PICKLE_GLOBAL,
    LK_PICKLE_CALL,      /* items: the global, the arguments (a tuple) */
    LK_PICKLE_PERSISTENT /* items: what identifies it */
};

/* Names and texts are borrowed from the pickle's bytes and are not ended by '\0'. */
struct lk_pickle_value {
    uint8_t kind;   /* enum lk_pickle_kind */
    bool visited;   /* for whoever walks through the values; false at first */
    uint32_t count; /* of items, or of the text's bytes */
    uint32_t room;
    union {
        int64_t integer;
        const char *text; /* a global: "torch FloatStorage", ended by '\0' */
        struct lk_pickle_value **items;
    };
};

/* The values of one or more pickles; {0} at first. */
struct lk_pickle {
    struct lk_arena arena;
    size_t used; /* bytes of the arena, which are limited */
    char *block; /* of the arena: what is left of the last allocation */
    size_t left;
    struct lk_pickle_value *root;        /* of the last pickle that was read */
    struct lk_pickle_value **persistent; /* of that one, in order */
    uint32_t persistent_count, persistent_room;
};

/* Reads the pickle that begins at data[*at] and sets *at behind it.
 * fails: LK_E_DATA malformed, or larger than a file of weights needs; LK_E_UNSUPPORTED a global
 * or opcode that is not read, by name; LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_pickle_read(const void *data, size_t bytes, size_t *at,
                                            struct lk_pickle *pickle);
void lk_pickle_clear(struct lk_pickle *pickle);

/* Whether it is that text; NULL is none. */
bool lk_pickle_is_text(const struct lk_pickle_value *value, const char *text);

/* Whether it is the global of that name, "torch Size". */
bool lk_pickle_is_global(const struct lk_pickle_value *value, const char *name);

#endif
