/* One .npy file as a field: a sample is a row of numbers, read straight from the file. Floor 4.
 * Knows no other field. */
#ifndef LK_DATA_TABLES_ARRAY_H
#define LK_DATA_TABLES_ARRAY_H

#include "io/npy.h"
#include <lockstep/field.h>
#include <stdbool.h>

enum { LK_ARRAY_MOST_PATH = 4096 };

struct lk_array {
    char path[LK_ARRAY_MOST_PATH];
    int file; /* -1: closed */
    struct lk_npy npy;
    enum lk_dtype dtype; /* in samples: uint8, float of 4 or 8 bytes, whole numbers of others */
    struct lk_shape shape; /* of a sample */
    int64_t elements;      /* of a sample */
    bool is_label;         /* whole numbers are classes */
    int64_t least, most;   /* of whole numbers */
    int32_t *kept;         /* all values of a label, in 4 bytes each; NULL: they are read from
                            * the file */
};

/* {.file = -1} is closed. */
void lk_array_close(struct lk_array *array);

/* Opens the array of an input: uint8 is an image [n, h, w, c], [n, h, w] or [n, w]; other
 * numbers have up to four axes behind n. Whole numbers are looked at.
 * fails: LK_E_IO; LK_E_DATA, LK_E_SHAPE, LK_E_UNSUPPORTED what is in it */
LK_MUST_CHECK enum lk_status lk_array_open_input(struct lk_array *array);

/* Opens that of a label, and keeps it in memory. Whole numbers [n] are a class each, those of
 * more axes a class for each time step; floats are numbers. fails: as lk_array_open_input();
 * LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_array_open_label(struct lk_array *array);

/* Reads a sample's numbers. Any thread. fails: LK_E_IO; LK_E_DATA a number that is not finite
 * or does not fit its type */
LK_MUST_CHECK enum lk_status lk_array_read(const struct lk_array *array, int64_t index,
                                           void *to);

#endif
