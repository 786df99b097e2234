/* Files of weights, of any program that writes a format known here: what they hold, and writing
 * a run's weights for others. Floor 6. */
#ifndef LOCKSTEP_WEIGHTS_H
#define LOCKSTEP_WEIGHTS_H

#include <lockstep/status.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { LK_WEIGHTS_AXES = 8 };

/* An array of a file; name and type ("F32") live as long as the file is open. */
struct lk_weights_array {
    const char *name, *type;
    int rank; /* 0: a single number */
    int64_t shape[LK_WEIGHTS_AXES], count;
};

struct lk_weights_file;

/* Opens a file of weights: safetensors, HDF5 or an archive of Keras, PyTorch's .pt. Nothing in
 * it is executed. fails: LK_E_IO, LK_E_DATA, LK_E_UNSUPPORTED */
LK_API LK_MUST_CHECK enum lk_status lk_weights_open(const char *path,
                                                    struct lk_weights_file **file);
LK_API void lk_weights_close(struct lk_weights_file *file);

/* "safetensors", "Keras 2", "Keras 3" or "PyTorch" */
LK_API const char *lk_weights_format(const struct lk_weights_file *file);

/* Describes array `index` in the file's order; false past the last. */
LK_API bool lk_weights_array(const struct lk_weights_file *file, int index,
                             struct lk_weights_array *array);

/* Reads an array and computes the mean and the standard deviation of its numbers, NaN where it
 * has none. fails: LK_E_IO, LK_E_DATA, LK_E_MEMORY */
LK_API LK_MUST_CHECK enum lk_status lk_weights_measure(const struct lk_weights_file *file,
                                                       int index, double *mean,
                                                       double *deviation);

/* KERAS_H5: as Keras 2 writes weights, or as Keras 3 does where the name ends in .weights.h5.
 */
enum lk_weights_kind { LK_WEIGHTS_SAFETENSORS, LK_WEIGHTS_KERAS_H5 };

/* Writes the weights of a run directory or checkpoint to a file, which is replaced as a whole.
 * names: "lockstep", "torchvision", "keras", or "pytorch" for PyTorch's with our layers; NULL:
 * lockstep, keras in HDF5. Arrays are laid out as the program of that name has them.
 * fails: LK_E_ARGUMENT where the model has no such names, LK_E_IO, LK_E_DATA,
 * LK_E_UNSUPPORTED */
LK_API LK_MUST_CHECK enum lk_status lk_weights_export(const char *run, const char *path,
                                                      enum lk_weights_kind kind,
                                                      const char *names);

struct lk_weights_export_options {
    enum lk_weights_kind kind;
    const char *names;      /* as of lk_weights_export() */
    const char *vocabulary; /* the file for that of texts, as lk_tokenize() writes one, where
                             * the run has it; NULL: it is not written */
    bool may_replace;       /* that file, where it is there already and has another one */
};

/* As lk_weights_export(), with the vocabulary beside the weights. Neither is written where that
 * would replace another vocabulary. *has_vocabulary: whether the run has one.
 * fails: as lk_weights_export() */
LK_API LK_MUST_CHECK enum lk_status
lk_weights_export_with(const char *run, const char *path,
                       const struct lk_weights_export_options *options, bool *has_vocabulary);

/* Writes a bundle: a folder with the weights of a run directory, bundle or checkpoint, its
 * model text, names of classes, vocabulary, pipeline, tuned choices and the sums of them all.
 * It stands for a run wherever one is read: to predict, evaluate, serve, or begin a training
 * with. fails: LK_E_IO, also where the folder is there and may not be replaced; LK_E_DATA */
LK_API LK_MUST_CHECK enum lk_status lk_bundle_export(const char *run, const char *folder,
                                                     bool may_replace);

/* {0}: an open batch, operator set 17, images as the first layer reads them. */
struct lk_onnx_options {
    int64_t batch;   /* 0: of any length */
    int operators;   /* the set of operators, 13 to 28; 0: 17 */
    bool preprocess; /* images are uint8 [n, h, w, c], which the graph itself normalizes */
    bool fold;       /* batch norms behind convolutions become part of their weights */
};

/* Writes the model of a run directory or checkpoint, with its weights, as a file of ONNX, which
 * is replaced as a whole. Images are inputs [n, c, h, w] of the numbers that the first layer
 * reads; tokens and lengths are int32. fails: LK_E_UNSUPPORTED an operation that has no
 * counterpart, by name, or built without protobuf-c; LK_E_ARGUMENT, LK_E_IO, LK_E_DATA */
LK_API LK_MUST_CHECK enum lk_status lk_onnx_export(const char *run, const char *path,
                                                   const struct lk_onnx_options *options);

#ifdef __cplusplus
}
#endif
#endif
