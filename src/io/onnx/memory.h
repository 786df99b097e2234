/* What an opened ONNX file keeps. Floor 1. Private to src/io/onnx. */
#ifndef LK_IO_ONNX_MEMORY_H
#define LK_IO_ONNX_MEMORY_H

#include "base/arena.h"
#include "io/onnx/onnx.h"
#include <onnx.pb-c.h>

enum { LK_ONNX_MOST_BODIES = 64, LK_ONNX_MOST_BODY_PARTS = 256 };

struct lk_onnx_memory {
    struct lk_arena arena;
    LkOnnx__Model *model;   /* its messages have the texts and numbers; NULL: of a tensor */
    LkOnnx__Tensor *tensor; /* of a file with one alone; NULL: of a model */
    const char *path;       /* of the file; borrowed while it is read */
    char *folder;           /* that it lies in, without links; NULL: not asked for yet */
    size_t taken, most;     /* bytes that protobuf-c has, and may have */
    LkOnnx__Graph *bodies[LK_ONNX_MOST_BODIES]; /* of loops */
    int body_count;
    bool is_inside; /* a body is read, whose own ones stay unread */
};

/* Makes a tensor of a message, without copying numbers that can be used as they are.
 * `name`: for messages, where the tensor has none of its own.
 * fails: LK_E_DATA, LK_E_UNSUPPORTED, LK_E_MEMORY, LK_E_IO */
LK_MUST_CHECK enum lk_status lk_onnx_make_tensor(struct lk_onnx_memory *memory,
                                                 const LkOnnx__Tensor *from, const char *name,
                                                 struct lk_onnx_tensor *made);

/* Reads `bytes` at `offset` of a file that the model names, which must lie below the model's
 * folder: no "..", no path from the root, no link that leads out. fails: LK_E_DATA, LK_E_IO,
 * LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_onnx_read_outside(struct lk_onnx_memory *memory,
                                                  const char *location, int64_t offset,
                                                  size_t bytes, const void **data);

/* Refuses a model of far too many nodes or constants by its bytes alone. What is malformed is
 * left to protobuf-c. fails: LK_E_UNSUPPORTED */
LK_MUST_CHECK enum lk_status lk_onnx_check_counts(const char *path, const void *data,
                                                  size_t bytes);

/* Whether a loop's body has few enough nodes, constants, and inputs with outputs to be read. */
bool lk_onnx_is_small(const void *body, size_t bytes);

#endif
