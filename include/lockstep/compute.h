/* Values of a model's entries, computed on arrays of numbers. Floor 8. */
#ifndef LOCKSTEP_COMPUTE_H
#define LOCKSTEP_COMPUTE_H

#include <lockstep/field.h>
#include <lockstep/status.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A model with its weights, ready to compute its outputs and other values. */
struct lk_computation;
struct lk_settings;

/* {0} is fine. */
struct lk_computation_options {
    const char *weights; /* a file with them; NULL: those of the run, the checkpoint or the
                          * folder, or of a model without any the first ones of `seed` */
    const char *device;  /* NULL: the default */
    const char *math;    /* "strict", "normal", "fast"; NULL: strict; a run has its own */
    uint64_t seed;
    int64_t batch;           /* most samples at a time; 0: 16 */
    const char *const *taps; /* [tap_count]: entries or inputs whose values are wanted beside
                              * the outputs, by their names in the model text */
    int tap_count;
    const struct lk_settings *settings; /* of a zoo model or a model file that is opened with
                                         * another input, number of classes or parameters: they
                                         * name the model too; NULL: as it is */
};

/* Opens a model of the zoo, a model file, a folder that `lockstep import` made, a run directory
 * (its newest checkpoint) or a checkpoint. fails: LK_E_MODEL, LK_E_IO, LK_E_DATA;
 * LK_E_ARGUMENT a tap that is not there, with the nearest name; settings for a run */
LK_API LK_MUST_CHECK enum lk_status
lk_computation_open(const char *model, const struct lk_computation_options *options,
                    struct lk_computation **computation);
LK_API void lk_computation_close(struct lk_computation *computation);

/* Input `index` as arrays have it, an image as [h, w, c]; false past the last. */
LK_API bool lk_computation_input(const struct lk_computation *computation, int index,
                                 struct lk_field *input);

/* Value `index` of a sample as it will be computed, of floats, an image as [h, w, c]: first the
 * outputs, then the taps that are none. False past the last. */
LK_API bool lk_computation_value(const struct lk_computation *computation, int index,
                                 struct lk_field *value);

/* Samples of one input, [count][its shape], of type LK_U8, LK_I32 or LK_F32. uint8 for an image
 * is treated as prediction treats images; other numbers for an image are what its readers read.
 * An input of numbers has its scale and shift, and the run's `standardize`, in any case. */
struct lk_computation_array {
    enum lk_dtype dtype;
    const void *data;
};

/* Computes all values of `count` samples, to[v]: [count][shape of value v]. Waits. Builds
 * kernels at the first call, and where types are other ones than in the call before.
 * fails: LK_E_ARGUMENT floats for an input of whole numbers; LK_E_DATA, LK_E_DEVICE */
LK_API LK_MUST_CHECK enum lk_status
lk_computation_run(struct lk_computation *computation, int64_t count,
                   const struct lk_computation_array *inputs, float *const *to);

/* A .npy file for an input. */
struct lk_computation_file {
    const char *input, *path; /* input NULL: the only one */
};

/* Reads each input from a .npy file, whose first axis is the batch (uint8, other whole numbers
 * that fit int32, float32, float64), and writes each value to FOLDER/NAME.npy as float32,
 * whole or not at all. Batches of any size: little of them is in memory at a time.
 * fails: LK_E_ARGUMENT an input missing, twice or unknown; LK_E_SHAPE; LK_E_DATA; LK_E_IO, also
 * where a file is there already and may not be replaced */
LK_API LK_MUST_CHECK enum lk_status
lk_computation_run_files(struct lk_computation *computation,
                         const struct lk_computation_file *files, int count, const char *folder,
                         bool may_replace, int64_t *samples);

/* How an ONNX model's outputs are compared: |a - b| <= absolute + relative |b|; NaN is near
 * NaN, an infinite number near itself. */
struct lk_comparison {
    double relative, absolute;
    char difference[640]; /* what differs, of the first output that does; "": all are near */
    bool computes;        /* false: its outputs follow from whole numbers, nothing was run */
};

/* Computes an ONNX file on FOLDER/input_0.pb, input_1.pb ... (its inputs in their order, each a
 * tensor of ONNX) and compares its outputs with FOLDER/output_0.pb ... No axis need be a batch.
 * fails: LK_E_MODEL what is not supported, with the node's name; as lk_import() */
LK_API LK_MUST_CHECK enum lk_status
lk_compare_onnx(const char *file, const char *folder,
                const struct lk_computation_options *options, struct lk_comparison *comparison);

/* Computes an ONNX file on .npy files and tensors of ONNX (.pb), and writes each output to
 * FOLDER/NAME.npy as float32, in ONNX's order of axes. fails: as lk_compare_onnx(); LK_E_IO */
LK_API LK_MUST_CHECK enum lk_status lk_run_onnx(const char *file,
                                                const struct lk_computation_file *files,
                                                int count, const char *folder, bool may_replace,
                                                const struct lk_computation_options *options);

/* Asks lk_computation_run_files() to end soon with LK_E_INTERRUPTED and without a file; on any
 * thread, also within a signal handler. */
LK_API void lk_computation_stop(struct lk_computation *computation);
LK_API bool lk_computation_is_stopped(const struct lk_computation *computation);

#ifdef __cplusplus
}
#endif
#endif
