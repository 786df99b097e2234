/* The values of a pickle while it is read: memory for them, the stack, the memo. Floor 1.
 * Private to src/io/arrays/pickle*.c. */
#ifndef LK_IO_ARRAYS_PICKLE_VALUES_H
#define LK_IO_ARRAYS_PICKLE_VALUES_H

#include "base/fail.h"
#include "io/arrays/pickle.h"

/* A list of values that grows. A mark of the stack is NULL. */
struct lk_pickle_values {
    struct lk_pickle_value **at;
    uint32_t count, room;
};

struct lk_pickle_reader {
    const uint8_t *data;
    size_t bytes, at, begin; /* begin: of the opcode that is read */
    struct lk_pickle *pickle;
    struct lk_pickle_values stack, memo;
    bool stopped;
};

#define LK_PICKLE_FAIL(reader, status, format, ...)                                            \
    lk_fail(status, "pickle, byte %zu: " format, (reader)->begin, __VA_ARGS__)

/* Adds to a list of values. fails: LK_E_DATA all values take too much memory; LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_pickle_add(struct lk_pickle_reader *reader,
                                           struct lk_pickle_value ***items, uint32_t *count,
                                           uint32_t *room, struct lk_pickle_value *value);

/* A new value without items; room for `count` of them. fails: as lk_pickle_add() */
LK_MUST_CHECK enum lk_status lk_pickle_make(struct lk_pickle_reader *reader,
                                            enum lk_pickle_kind kind,
                                            struct lk_pickle_value **value);
LK_MUST_CHECK enum lk_status lk_pickle_make_room(struct lk_pickle_reader *reader,
                                                 struct lk_pickle_value *value, uint32_t count);

/* The stack. fails: LK_E_DATA too large, or without the value that an opcode needs */
LK_MUST_CHECK enum lk_status lk_pickle_push(struct lk_pickle_reader *reader,
                                            struct lk_pickle_value *value);
LK_MUST_CHECK enum lk_status lk_pickle_pop(struct lk_pickle_reader *reader,
                                           struct lk_pickle_value **value);

/* Where the stack's values behind the last mark begin. fails: LK_E_DATA there is none */
LK_MUST_CHECK enum lk_status lk_pickle_find_mark(struct lk_pickle_reader *reader,
                                                 uint32_t *first);

/* The memo: keeps the value on top of the stack; pushes one that was kept.
 * fails: LK_E_DATA a number beyond what is allowed, or never kept */
LK_MUST_CHECK enum lk_status lk_pickle_store(struct lk_pickle_reader *reader, uint64_t index);
LK_MUST_CHECK enum lk_status lk_pickle_recall(struct lk_pickle_reader *reader, uint64_t index);

#endif
