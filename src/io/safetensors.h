/* The safetensors format: named arrays of numbers in one file. Floor 1. Knows bytes and the
 * format's names of number types; no tensor of ours, no device.
 *
 * A file is the header's length (8 bytes, little-endian), the header (JSON: name -> dtype,
 * shape, data_offsets; "__metadata__" -> texts), and the arrays' bytes without a gap. source:
 * github.com/huggingface/safetensors, README, "Format" */
#ifndef LK_IO_SAFETENSORS_H
#define LK_IO_SAFETENSORS_H

#include <lockstep/status.h>
#include <stddef.h>
#include <stdint.h>

/* X(name in the file, bytes of an element) */
#define LK_SAFETENSOR_TYPES(X)                                                                 \
    X(BOOL, 1)                                                                                 \
    X(U8, 1)                                                                                   \
    X(I8, 1)                                                                                   \
    X(F8_E5M2, 1)                                                                              \
    X(F8_E4M3, 1)                                                                              \
    X(U16, 2)                                                                                  \
    X(I16, 2)                                                                                  \
    X(F16, 2)                                                                                  \
    X(BF16, 2)                                                                                 \
    X(U32, 4)                                                                                  \
    X(I32, 4)                                                                                  \
    X(F32, 4)                                                                                  \
    X(U64, 8)                                                                                  \
    X(I64, 8)                                                                                  \
    X(F64, 8)

enum lk_safetensor_type {
#define LK_X(name, bytes) LK_SAFETENSOR_##name,
    LK_SAFETENSOR_TYPES(LK_X)
#undef LK_X
};

enum { LK_SAFETENSOR_AXES = 8 };

/* The metadata's key of the header's own checksum: writing sets its value where the key is
 * given, opening compares it where the key is there. */
#define LK_SAFETENSORS_SUM "header_sha256"

/* data: what is written; NULL in a file that was opened. offset (from the first array's first
 * byte) and bytes: set by reading, ignored by writing. */
struct lk_safetensor {
    const char *name;
    enum lk_safetensor_type type;
    int rank;
    int64_t shape[LK_SAFETENSOR_AXES];
    const void *data;
    uint64_t offset, bytes;
};

struct lk_safetensors_text {
    const char *key, *value;
};

/* What a file holds, in the order of its header; all of it lives until lk_safetensors_close().
 */
struct lk_safetensors {
    int count, texts;
    const struct lk_safetensor *tensors;
    const struct lk_safetensors_text *metadata;
};

/* "F32" */
const char *lk_safetensor_type_name(enum lk_safetensor_type type);

/* Elements times their bytes; UINT64_MAX where that does not fit or a dimension is negative. */
uint64_t lk_safetensor_bytes(const struct lk_safetensor *tensor);

/* Replaces the file as lk_file_write_pieces() does; the arrays lie in the order given.
 * fails: LK_E_IO; LK_E_ARGUMENT for a name twice or not UTF-8, a wrong shape, or an array that
 * would not lie at a multiple of its element's bytes (larger elements go first) */
LK_MUST_CHECK enum lk_status
lk_safetensors_write(const char *path, const struct lk_safetensor *tensors, int count,
                     const struct lk_safetensors_text *metadata, int texts);

/* Opens a file and checks its whole header; data is read later. The file may come from anyone.
 * fails: LK_E_IO; LK_E_DATA malformed: what, where; LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_safetensors_open(const char *path,
                                                 struct lk_safetensors **file);
void lk_safetensors_close(struct lk_safetensors *file);

/* The array of that name; the text of that key; NULL: absent. */
const struct lk_safetensor *lk_safetensors_find(const struct lk_safetensors *file,
                                                const char *name);
const char *lk_safetensors_text(const struct lk_safetensors *file, const char *key);

/* Reads all of the array into to[tensor->bytes], of any alignment. Any thread.
 * fails: LK_E_IO, also where the file has become shorter */
LK_MUST_CHECK enum lk_status lk_safetensors_read(const struct lk_safetensors *file,
                                                 const struct lk_safetensor *tensor, void *to);

#endif
