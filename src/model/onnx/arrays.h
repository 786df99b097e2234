/* A graph of ONNX that is computed on given arrays, as a graph of ours. Floor 6.
 *
 * No axis need be a batch: each array is one sample, all of it. Whole numbers that are given
 * are constants, so that shapes and indices may depend on them, and what depends on them alone
 * is folded; given floats are inputs of the graph, and what depends on them is computed by its
 * nodes. A float array may also become a parameter, such as the kernel of a convolution.
 * Where a file with convolutions computes each sample of a batch by itself, the graph is that
 * of one sample, as an import makes it, to be computed for so many: kernels for images are
 * built for that. */
#ifndef LK_MODEL_ONNX_ARRAYS_H
#define LK_MODEL_ONNX_ARRAYS_H

#include "graph/nodes/node.h"
#include "io/onnx/onnx.h"
#include "io/safetensors.h"

/* An input or an output. Of what is given `name` NULL: the next one that has no array. */
struct lk_onnx_array {
    const char *name;
    const struct lk_onnx_tensor *tensor; /* of an output NULL: it is computed */
    struct lk_node *node;                /* NULL: it is no part of the graph */
    enum lk_onnx_type type;              /* of an output that is computed; 0: floats */
    int rank;
    int64_t dim[LK_ONNX_AXES];
    bool is_last; /* an image of which ONNX has the channels last, the node has them first */
};

struct lk_onnx_arrays;

/* Makes the graph of a file; what is given must outlive it. fails: as lk_import();
 * LK_E_ARGUMENT an input that is missing, or has none of that name */
LK_MUST_CHECK enum lk_status lk_onnx_open_arrays(const char *file,
                                                 const struct lk_onnx_array *given, int count,
                                                 struct lk_onnx_arrays **arrays);
void lk_onnx_close_arrays(struct lk_onnx_arrays *arrays);

/* How many samples the graph is to be computed for, one behind the other in the arrays of all
 * inputs and outputs; 1 where an array is one sample. */
int64_t lk_onnx_array_samples(const struct lk_onnx_arrays *arrays);

/* Input or output `index`; NULL past the last. */
const struct lk_onnx_array *lk_onnx_array_input(const struct lk_onnx_arrays *arrays, int index);
const struct lk_onnx_array *lk_onnx_array_output(const struct lk_onnx_arrays *arrays,
                                                 int index);

/* The numbers of the parameter of that name, of floats; NULL: it has none. */
const struct lk_safetensor *lk_onnx_array_param(const struct lk_onnx_arrays *arrays,
                                                const char *name);

#endif
