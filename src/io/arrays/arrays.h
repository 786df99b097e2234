/* Files of named arrays in any format that weights come in. Floor 1. The one door to them: the
 * format is found by what the file begins with, never by its name. Knows bytes, names and types
 * of numbers; no tensor of ours, no layer. Files may come from anyone: nothing in them is ever
 * executed, and sizes are checked before anything is allocated. */
#ifndef LK_IO_ARRAYS_ARRAYS_H
#define LK_IO_ARRAYS_ARRAYS_H

#include "io/safetensors.h"
#include <stdbool.h>

enum lk_arrays_format {
    LK_ARRAYS_SAFETENSORS,
    LK_ARRAYS_KERAS_2, /* .h5, .hdf5: weights, or a whole model */
    LK_ARRAYS_KERAS_3, /* .weights.h5, or .keras: an archive with one */
    LK_ARRAYS_TORCH    /* .pth, .pt: an archive, or a stream of pickles */
};

/* name: as the file has it, each once. Keras 2: "block1_conv1/kernel:0", the layer's group and
 * the last part of the weight's name, or all of its parts in layers that contain others with
 * weights of the same names; Keras 3: "layers/conv2d/vars/0"; PyTorch: "features.0.0.weight",
 * the keys of nested dictionaries joined by dots, "state_dict." and the like kept.
 * label: with the own names of layers and of models that they are in; NULL: the file does not
 * tell them. "base/block1_conv1/vars/0" for "layers/functional/layers/conv2d/vars/0" of Keras
 * 3, "base/block1_conv1/kernel:0" for "base/kernel:0" of Keras 2. */
struct lk_array {
    const char *name, *label;
    enum lk_safetensor_type type;
    int rank; /* 0: a single number */
    int64_t shape[LK_SAFETENSOR_AXES];
    int64_t count; /* of elements */
};

/* What a file holds, in its own order: that of layers in Keras 2 files, of a dictionary's
 * entries in PyTorch's, of names with their numbers counted in Keras 3 files (conv2d, conv2d_1,
 * conv2d_2, conv2d_10). All of it lives until lk_arrays_close(). */
struct lk_arrays {
    enum lk_arrays_format format;
    int count, texts;
    const struct lk_array *arrays;
    const struct lk_safetensors_text *metadata; /* "model_config" (JSON), "keras_version",
                                                 * "backend", a safetensors file's own */
};

/* Opens a file and checks all but the numbers. fails: LK_E_IO; LK_E_DATA malformed or hostile:
 * what was expected, where; LK_E_UNSUPPORTED: of a kind that this program was built without, or
 * has something that is not read, by name; LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_arrays_open(const char *path, struct lk_arrays **file);
void lk_arrays_close(struct lk_arrays *file);

/* The array of that name; the text of that key; NULL: absent. */
const struct lk_array *lk_arrays_find(const struct lk_arrays *file, const char *name);
const char *lk_arrays_text(const struct lk_arrays *file, const char *key);

/* Any thread. Reads an array as numbers of type LK_SAFETENSOR_F32 or LK_SAFETENSOR_F64, in the
 * file's order of axes, the last one fastest: to[count]. Whole numbers and truth values become
 * numbers too. fails: LK_E_IO, LK_E_DATA, LK_E_ARGUMENT another type */
LK_MUST_CHECK enum lk_status lk_arrays_read(const struct lk_arrays *file,
                                            const struct lk_array *array,
                                            enum lk_safetensor_type as, void *to);

#endif
