/* Opens the bytes as a file of named arrays of one format and reads all of them. */
#ifndef TESTS_FUZZ_ARRAYS_H
#define TESTS_FUZZ_ARRAYS_H

#include "files.h"
#include "fuzz.h"
#include "io/arrays/arrays.h"

enum { FUZZ_ELEMENTS = 1 << 16 }; /* larger arrays are as the others, but slow */

static inline void fuzz_read_array(const struct lk_arrays *file, const struct lk_array *array)
{
    double *values = malloc((size_t)array->count * sizeof *values + 1);
    int64_t count = 1;
    for (int i = 0; i < array->rank; i++)
        count *= array->shape[i];
    if (!values || array->rank < 0 || array->rank > LK_SAFETENSOR_AXES ||
        count != array->count || lk_arrays_find(file, array->name) != array)
        abort();
    if (lk_arrays_read(file, array, LK_SAFETENSOR_F64, values) != LK_OK)
        lk_error_clear();
    free(values);
}

static inline void fuzz_arrays(const uint8_t *data, size_t bytes)
{
    struct lk_arrays *file;
    if (lk_arrays_open(fuzz_put("weights", data, bytes), &file) == LK_OK) {
        for (int i = 0; i < file->count && i < 100; i++)
            if (file->arrays[i].count <= FUZZ_ELEMENTS)
                fuzz_read_array(file, &file->arrays[i]);
        for (int i = 0; i < file->texts; i++)
            if (!lk_arrays_text(file, file->metadata[i].key))
                abort();
        lk_arrays_close(file);
    } else if (!lk_error_text()[0]) {
        abort(); /* a refusal says why */
    }
    lk_error_clear();
}

#endif
