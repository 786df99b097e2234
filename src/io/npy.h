/* Headers of NumPy's .npy files, read and written. Floor 1. Knows bytes only, and may be given
 * any.
 * source: numpy.org/neps/nep-0001-npy-format.html, versions 1.0 to 3.0 */
#ifndef LK_IO_NPY_H
#define LK_IO_NPY_H

#include <lockstep/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LK_NPY_MOST_AXES = 8, LK_NPY_MOST_HEADER = 1 << 16 };

struct lk_npy {
    char kind; /* 'u' unsigned, 'i' signed, 'f' floats, 'b' truth values, ... */
    int size;  /* bytes of an element */
    bool is_big_endian;
    int rank;
    int64_t shape[LK_NPY_MOST_AXES];
    int64_t count; /* of elements: below 2^62 in bytes */
    size_t offset; /* the byte at which they begin; elements along the last axis are
                    * neighbours */
};

/* Reads the header of a file that begins with `data` and has `file_bytes` bytes in all, which
 * must be as many as the header says. `data` is all of it, or LK_NPY_MOST_HEADER + 12 bytes.
 * fails: LK_E_DATA no .npy file, broken, another length; LK_E_UNSUPPORTED Fortran order,
 * elements of several values */
LK_MUST_CHECK enum lk_status lk_npy_parse(const void *data, size_t bytes, int64_t file_bytes,
                                          const char *where, struct lk_npy *npy);

/* A whole number of 1, 2, 4 or 8 bytes, kind 'u' or 'i'; what is above INT64_MAX becomes that.
 */
int64_t lk_npy_integer(const struct lk_npy *npy, const uint8_t *element);

/* Writes the header of a file of version 1 with little-endian float32 elements, the last axis
 * fastest; at most LK_NPY_MOST_AXES axes. Returns its bytes, a multiple of 64. */
enum { LK_NPY_WRITTEN_HEADER = 256 };
size_t lk_npy_write_header(const int64_t *shape, int rank,
                           uint8_t header[LK_NPY_WRITTEN_HEADER]);

#endif
