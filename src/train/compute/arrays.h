/* Computes a graph of ONNX on arrays, on a device. Floor 8. Private to src/train/compute. */
#ifndef LK_TRAIN_COMPUTE_ARRAYS_H
#define LK_TRAIN_COMPUTE_ARRAYS_H

#include "model/onnx/arrays.h"
#include <lockstep/compute.h>

/* An output: its numbers as floats, or as the constant that they are. */
struct lk_computed_array {
    const struct lk_onnx_array *about;
    const float *numbers; /* NULL: about->tensor has them */
    int64_t count;
};

struct lk_computed;

/* Computes all outputs. What is given must outlive the result. fails: as lk_onnx_open_arrays(),
 * or the device */
LK_MUST_CHECK enum lk_status lk_compute_arrays(const char *file,
                                               const struct lk_onnx_array *given, int count,
                                               const struct lk_computation_options *options,
                                               struct lk_computed **computed);
void lk_computed_destroy(struct lk_computed *computed);

/* Output `index`; false past the last. */
bool lk_computed_output(const struct lk_computed *computed, int index,
                        struct lk_computed_array *output);

/* Element `index` of an output. */
double lk_computed_number(const struct lk_computed_array *output, int64_t index);

#endif
