/* NumPy files of version 1 in a test's own folder. */
#ifndef TESTS_NPY_H
#define TESTS_NPY_H

#include "scratch.h"

/* Writes `scratch`/name: type such as "<f4", shape such as "(2, 3)"; data NULL: its bytes are
 * 0, 1, 2, ... */
static inline void put_npy(const char *name, const char *type, const char *shape,
                           const void *data, size_t bytes)
{
    static uint8_t file[16384];
    char text[512];
    const int length =
        snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n",
                 type, shape);
    assert_in_range(length, 1, sizeof text - 1);
    assert_in_range(bytes, 0, sizeof file - 10 - (size_t)length);
    memcpy(file, "\x93NUMPY\1\0", 8);
    file[8] = (uint8_t)length;
    file[9] = (uint8_t)(length >> 8);
    memcpy(file + 10, text, (size_t)length);
    for (size_t i = 0; i < bytes; i++)
        file[10 + (size_t)length + i] = data ? ((const uint8_t *)data)[i] : (uint8_t)i;
    scratch_put(scratch_path(name), file, 10 + (size_t)length + bytes);
}

#endif
