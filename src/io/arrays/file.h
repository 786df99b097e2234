/* An open file of named arrays, as the readers of the formats see it. Floor 1. Private to this
 * room: each reader fills one of these when it opens a file. */
#ifndef LK_IO_ARRAYS_FILE_H
#define LK_IO_ARRAYS_FILE_H

#include "base/arena.h"
#include "io/arrays/arrays.h"
#include "io/bytes.h"

enum {
    LK_ARRAYS_MOST = 1 << 16, /* arrays of a file */
    LK_ARRAYS_TEXTS = 16
};

/* Where an array's numbers are: at byte `offset` of the file, or of the reader's part `part`.
 */
struct lk_array_place {
    int part;
    uint64_t offset;
    int64_t strides[LK_SAFETENSOR_AXES]; /* in elements */
    bool strided;                        /* false: they lie densely */
    const void *inside;                  /* the reader's own, in the arena */
};

struct lk_arrays_file {
    struct lk_arrays public; /* the first member: what callers get */
    struct lk_arena arena;   /* names, texts */
    struct lk_bytes bytes;   /* the file */
    const char *path;
    struct lk_array *arrays;
    struct lk_array_place *places;
    int room;
    struct lk_safetensors_text texts[LK_ARRAYS_TEXTS];
    const struct lk_arrays_reader *reader;
    void *state; /* the reader's */
};

/* What a format's reader does with the file after it was opened. read: all of array i, densely,
 * as the bytes of its type, little-endian, into to[count * bytes of an element]. Any thread. */
struct lk_arrays_reader {
    enum lk_status (*read)(const struct lk_arrays_file *file, int i, void *to);
    void (*close)(struct lk_arrays_file *file);
};

/* Adds an array; its name is copied, its count computed. fails: LK_E_DATA too many of them, a
 * shape whose product does not fit or whose numbers are more than `most` bytes; LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_arrays_add(struct lk_arrays_file *file,
                                           const struct lk_array *array,
                                           const struct lk_array_place *place, uint64_t most);

/* Adds a text; both are copied. fails: LK_E_DATA, LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_arrays_add_text(struct lk_arrays_file *file, const char *key,
                                                const char *value);

/* The bytes of an element, and of the whole array, which lk_arrays_add() has checked. */
int lk_array_element_bytes(enum lk_safetensor_type type);
size_t lk_array_bytes(const struct lk_array *array);

#endif
