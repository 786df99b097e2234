/* Values of whole arrays: what converters of ONNX's operators are made of. Floor 6. A value's
 * node has all elements of an array in ONNX's order, and the value notes rank and lengths.
 * Everything that only moves elements is one table of places (`pick`). Results may be written
 * where inputs were read from. All fail with LK_E_MODEL, naming the node, where lengths do not
 * go together or grow absurd. Private to src/model/onnx_arrays and onnx_layers. */
#ifndef LK_MODEL_ONNX_ARRAYS_WHOLE_H
#define LK_MODEL_ONNX_ARRAYS_WHOLE_H

#include "model/onnx/draft.h"

typedef struct lk_onnx_value value;
typedef struct lk_onnx_draft draft;

/* --- values.c ---------------------------------------------------------------------------- */

int64_t lk_whole_count(int rank, const int64_t *dim); /* -1: more than a graph can have */

/* Steps between neighbours along each axis. */
void lk_whole_strides(int rank, const int64_t *dim, int64_t *stride);

/* Input `index` of the node at work as a value of the graph, which constants become. */
LK_MUST_CHECK enum lk_status lk_whole_input(draft *d, int index, value *x);

/* The same of an input that is a layer's parameter: a constant is trained. */
LK_MUST_CHECK enum lk_status lk_whole_weight(draft *d, int index, value *x);
bool lk_whole_has(const draft *d, int index); /* whether it is there */
LK_MUST_CHECK enum lk_status lk_whole_constant(draft *d, const struct lk_onnx_tensor *tensor,
                                               value *made);
LK_MUST_CHECK enum lk_status lk_whole_number(draft *d, double number, value *made);

/* `numbers` becomes a value of that shape; it is read at once. */
LK_MUST_CHECK enum lk_status lk_whole_numbers(draft *d, const float *numbers, int rank,
                                              const int64_t *dim, value *made);

/* x in another shape of as many elements. */
LK_MUST_CHECK enum lk_status lk_whole_reshape(const draft *d, value *x, int rank,
                                              const int64_t *dim);

/* A real number that the node says, of any size; `standard` where it is absent. */
double lk_whole_say(const draft *d, const char *name, double standard);

/* The element of x that is at a place of the result; below 0: none, `fill` stands there. */
typedef int64_t lk_whole_place(const void *how, const int64_t *at);

LK_MUST_CHECK enum lk_status lk_whole_move(draft *d, const value *x, int rank,
                                           const int64_t *dim, lk_whole_place *place,
                                           const void *how, double fill, value *made);

/* Elements of x that are a stride apart for each axis of the result. */
LK_MUST_CHECK enum lk_status lk_whole_stride(draft *d, const value *x, int rank,
                                             const int64_t *dim, const int64_t *stride,
                                             value *made);

LK_MUST_CHECK enum lk_status lk_whole_order(draft *d, const value *x, const int *order,
                                            value *made);

/* Rows [r, n] of the n elements along an axis of x, which changes places with the last one: by
 * `order`, which puts it back. */
LK_MUST_CHECK enum lk_status lk_whole_rows(draft *d, value *x, int axis,
                                           int order[LK_ONNX_AXES], value *rows);

LK_MUST_CHECK enum lk_status lk_whole_expand(draft *d, const value *x, int rank,
                                             const int64_t *dim, value *made);

/* All elements of a, then all of b ..., in a row. */
LK_MUST_CHECK enum lk_status lk_whole_join(draft *d, const value *x, int count, value *made);

/* --- compute.c --------------------------------------------------------------------------- */

/* The operation `math` of `count` values, repeated to one shape. */
LK_MUST_CHECK enum lk_status lk_whole_math(draft *d, const char *function, int count,
                                           const value *x, value *made);
LK_MUST_CHECK enum lk_status lk_whole_math_of(draft *d, const char *function, double alpha,
                                              double beta, const value *x, value *made);
LK_MUST_CHECK enum lk_status lk_whole_two(draft *d, const char *function, const value *a,
                                          const value *b, value *made);
LK_MUST_CHECK enum lk_status lk_whole_with(draft *d, const char *function, const value *a,
                                           double b, value *made);

/* An operation of one element that has a name of its own, such as tanh. */
LK_MUST_CHECK enum lk_status lk_whole_apply(draft *d, const char *op, const char *options,
                                            const value *x, value *made);

/* The operation `reduce` over the axes of a mask, which then have length 1. */
LK_MUST_CHECK enum lk_status lk_whole_reduce(draft *d, const char *function, const value *x,
                                             unsigned axes, value *made);
void lk_whole_drop_axes(value *x, unsigned axes); /* those of length 1 */

/* Products of matrices with axes before them that are repeated; ranks of at least 2. */
LK_MUST_CHECK enum lk_status lk_whole_matmul(draft *d, const value *a, const value *b,
                                             value *made);

/* (x - mean) / sqrt(variance + epsilon) over the axes of a mask. */
LK_MUST_CHECK enum lk_status lk_whole_normalize(draft *d, const value *x, unsigned axes,
                                                double epsilon, value *made);
LK_MUST_CHECK enum lk_status lk_whole_softmax(draft *d, const value *x, unsigned axes,
                                              bool is_log, value *made);

/* x multiplied with scale and shifted, vectors along an axis; NULL: not. */
LK_MUST_CHECK enum lk_status lk_whole_scale(draft *d, const value *x, int axis,
                                            const value *scale, const value *shift,
                                            value *made);

/* Axes as the node has them, an attribute or input `index`. *found: they are said. */
LK_MUST_CHECK enum lk_status lk_whole_axes(draft *d, const char *name, int index, int rank,
                                           unsigned *axes, bool *found);

#endif
