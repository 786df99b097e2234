/* ONNX files: graphs of operators with their constants. Floor 1. Knows the format, not what any
 * operator computes. A file may come from anyone: what it says of lengths is compared with what
 * it has, before anything is allocated for it; numbers outside the file are read from files
 * below its folder alone. protobuf-c takes the bytes apart, and with it memory is bounded by
 * the file's length. source: onnx.ai/onnx/repo-docs/IR.html */
#ifndef LK_IO_ONNX_H
#define LK_IO_ONNX_H

#include <lockstep/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LK_ONNX_AXES = 8, LK_ONNX_MOST_NODES = 1 << 15 };

/* Types of elements, with the numbers that files have for them. */
enum lk_onnx_type {
    LK_ONNX_NO_TYPE = 0,
    LK_ONNX_FLOAT = 1,
    LK_ONNX_UINT8 = 2,
    LK_ONNX_INT8 = 3,
    LK_ONNX_UINT16 = 4,
    LK_ONNX_INT16 = 5,
    LK_ONNX_INT32 = 6,
    LK_ONNX_INT64 = 7,
    LK_ONNX_BOOL = 9,
    LK_ONNX_HALF = 10,
    LK_ONNX_DOUBLE = 11,
    LK_ONNX_UINT32 = 12,
    LK_ONNX_UINT64 = 13,
    LK_ONNX_BFLOAT = 16
};

/* Constants: `data` has `count` elements of the type, in order of axes, aligned for them; where
 * is_one, a single one that all are equal to. */
struct lk_onnx_tensor {
    const char *name;
    enum lk_onnx_type type;
    int rank;
    int64_t dim[LK_ONNX_AXES], count;
    const void *data;
    bool is_one;
};

enum lk_onnx_kind {
    LK_ONNX_OTHER, /* a subgraph, or a list of tensors */
    LK_ONNX_REAL,
    LK_ONNX_INTEGER,
    LK_ONNX_TEXT,
    LK_ONNX_TENSOR,
    LK_ONNX_REALS,
    LK_ONNX_INTEGERS,
    LK_ONNX_TEXTS
};

/* What a node says beside its inputs; the fields of its kind are set. */
struct lk_onnx_attribute {
    const char *name;
    enum lk_onnx_kind kind;
    float real;
    int64_t integer;
    const char *text;
    const struct lk_onnx_tensor *tensor;
    const float *reals;       /* [count] */
    const int64_t *integers;  /* [count] */
    const char *const *texts; /* [count] */
    int count;
    const struct lk_onnx_graph *graph; /* the body of a Loop; NULL: unread, as of others */
};

/* An input "" is left out. */
struct lk_onnx_node {
    const char *name, *op, *domain; /* "" where the file says none */
    const char *const *inputs, *const *outputs;
    int input_count, output_count, attribute_count;
    const struct lk_onnx_attribute *attributes;
};

/* An input or output of the graph. dim -1: any length; rank -1: nothing is said. */
struct lk_onnx_port {
    const char *name, *batch; /* batch: a name for the first length where that is -1 */
    enum lk_onnx_type type;
    int rank;
    int64_t dim[LK_ONNX_AXES];
};

struct lk_onnx_graph {
    const char *name, *producer;
    int64_t version, operators; /* of the format, and of the set of operators */
    int node_count, constant_count, input_count, output_count;
    const struct lk_onnx_node *nodes;
    const struct lk_onnx_tensor *constants;
    const struct lk_onnx_port *inputs, *outputs;
};

/* A file that was read, and the memory of all that its graph points to. */
struct lk_onnx_file {
    struct lk_onnx_graph graph;
    struct lk_onnx_memory *memory;
};

/* Reads a model. fails: LK_E_IO; LK_E_DATA malformed, or its data lie elsewhere; LK_E_MEMORY;
 * LK_E_UNSUPPORTED built without protobuf-c, or types and parts that are not read */
LK_MUST_CHECK enum lk_status lk_onnx_read(const char *path, struct lk_onnx_file *file);
void lk_onnx_clear(struct lk_onnx_file *file);

/* Reads a file with one tensor alone; `file` keeps its numbers. fails: as lk_onnx_read() */
LK_MUST_CHECK enum lk_status lk_onnx_read_tensor(const char *path, struct lk_onnx_file *file,
                                                 struct lk_onnx_tensor *tensor);

/* Writes a model, replacing a file that is there. fails: LK_E_IO, LK_E_MEMORY;
 * LK_E_UNSUPPORTED built without protobuf-c, or more than 2 GB */
LK_MUST_CHECK enum lk_status lk_onnx_write(const char *path, const struct lk_onnx_graph *graph);

/* Bytes of an element; 0: no type that is known here. */
size_t lk_onnx_type_bytes(enum lk_onnx_type type);

/* "float32" */
const char *lk_onnx_type_name(enum lk_onnx_type type);

/* Whether elements are whole numbers or bool. */
bool lk_onnx_is_whole(enum lk_onnx_type type);

/* Element `index`; a real one is rounded towards 0, and INT64_MIN where it does not fit. */
int64_t lk_onnx_integer(const struct lk_onnx_tensor *tensor, int64_t index);
double lk_onnx_real(const struct lk_onnx_tensor *tensor, int64_t index);

#endif
