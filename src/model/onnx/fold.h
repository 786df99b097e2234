/* Constants whose elements are moved. Floor 6. Private to src/model/onnx. */
#ifndef LK_MODEL_ONNX_FOLD_H
#define LK_MODEL_ONNX_FOLD_H

#include "model/onnx/draft.h"

void lk_onnx_copy_element(struct lk_onnx_tensor *to, int64_t index,
                          const struct lk_onnx_tensor *from, int64_t at);

/* The node at work of constants, the first of which is x: as lk_onnx_fold(). */
LK_MUST_CHECK enum lk_status lk_onnx_fold_slice(struct lk_onnx_draft *draft,
                                                const struct lk_onnx_tensor *x);
LK_MUST_CHECK enum lk_status lk_onnx_fold_expand(struct lk_onnx_draft *draft,
                                                 const struct lk_onnx_tensor *x);
LK_MUST_CHECK enum lk_status lk_onnx_fold_elements(struct lk_onnx_draft *draft,
                                                   const struct lk_onnx_tensor *x);

/* ReduceProd of a list of lengths, one of which may be the batch. */
LK_MUST_CHECK enum lk_status lk_onnx_fold_product(struct lk_onnx_draft *draft,
                                                  const struct lk_onnx_tensor *x);

/* The same for Split, whose outputs are all given. */
LK_MUST_CHECK enum lk_status lk_onnx_fold_split(struct lk_onnx_draft *draft,
                                                const struct lk_onnx_tensor *x);

/* x has no element; *done: it was computed. */
LK_MUST_CHECK enum lk_status lk_onnx_fold_empty(struct lk_onnx_draft *draft,
                                                const struct lk_onnx_tensor *x, bool *done);

#endif
