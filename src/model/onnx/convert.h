/* Going through the nodes of a graph of ONNX. Floor 6. Private to the rooms of ONNX. */
#ifndef LK_MODEL_ONNX_CONVERT_H
#define LK_MODEL_ONNX_CONVERT_H

#include "model/onnx/draft.h"

/* Tables of src/model/onnx_operators, which end with {0}. */
extern const struct lk_onnx_operator lk_onnx_images[], lk_onnx_functions[],
    lk_onnx_arrangements[], lk_onnx_products[];

/* Tables for whole arrays, of src/model/onnx_arrays; end with NULL. */
extern const struct lk_onnx_operator *const lk_onnx_array_tables[];

/* Marks nodes that no output depends on as done, and counts readers of each value. */
LK_MUST_CHECK enum lk_status lk_onnx_find_needed(struct lk_onnx_draft *draft);

/* Converts all nodes that are not done, in the file's order. */
LK_MUST_CHECK enum lk_status lk_onnx_convert_all(struct lk_onnx_draft *draft);

/* The node at work by the operators for batches; *done: there was one. */
LK_MUST_CHECK enum lk_status lk_onnx_convert_batch(struct lk_onnx_draft *draft, bool *done);

#endif
