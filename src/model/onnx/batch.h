/* The length n of an open batch among the numbers that an import folds. Floor 6. Shapes are
 * computed by nodes, and n stands among them as a number that no length can be; n k, such as
 * the samples times the heads of an attention, as another one. Private to the rooms of ONNX. */
#ifndef LK_MODEL_ONNX_BATCH_H
#define LK_MODEL_ONNX_BATCH_H

#include <stdint.h>

/* n; n k is LK_ONNX_OPEN + k - 1, which float64 has exactly. */
#define LK_ONNX_OPEN (-(INT64_C(1) << 51))

/* k of a number that stands for n k; 0: it is a number as any other. */
static inline int64_t lk_onnx_share_of(int64_t number)
{
    const int64_t share =
        number < LK_ONNX_OPEN || number > LK_ONNX_OPEN / 2 ? 0 : number - LK_ONNX_OPEN + 1;
    return share <= 1 << 28 ? share : 0;
}

/* The same number where the batch has one sample. */
static inline int64_t lk_onnx_number_of_one(int64_t number)
{
    const int64_t share = lk_onnx_share_of(number);
    return share ? share : number;
}

#endif
