/* All tables of operators for whole arrays. */
#include "model/onnx/convert.h"
#include "model/onnx_arrays/tables.h"

#include <stddef.h>

const struct lk_onnx_operator *const lk_onnx_array_tables[] = {lk_array_functions,
                                                               lk_array_moves,
                                                               lk_array_gathers,
                                                               lk_array_norms,
                                                               lk_array_products,
                                                               lk_array_windows,
                                                               lk_array_sizes,
                                                               lk_array_losses,
                                                               lk_array_recurrent,
                                                               lk_array_attention,
                                                               lk_array_ordered,
                                                               lk_array_quantized,
                                                               NULL};
