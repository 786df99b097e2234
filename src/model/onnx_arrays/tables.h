/* The tables of operators for whole arrays, which end with {0}. Floor 6. Private to
 * src/model/onnx_arrays and src/model/onnx_layers. */
#ifndef LK_MODEL_ONNX_ARRAYS_TABLES_H
#define LK_MODEL_ONNX_ARRAYS_TABLES_H

#include "model/onnx/draft.h"

extern const struct lk_onnx_operator lk_array_functions[], lk_array_moves[], lk_array_gathers[],
    lk_array_norms[], lk_array_products[], lk_array_windows[], lk_array_sizes[],
    lk_array_losses[], lk_array_recurrent[], lk_array_attention[], lk_array_ordered[],
    lk_array_quantized[];

#endif
