/* The types of elements of ONNX's tensors, and their elements as numbers. */
#include "io/onnx/onnx.h"

#include "base/half.h"
#include <string.h>

static const struct {
    const char *name;
    size_t bytes;
    bool is_whole;
} types[] = {[LK_ONNX_FLOAT] = {"float32", 4, false},  [LK_ONNX_UINT8] = {"uint8", 1, true},
             [LK_ONNX_INT8] = {"int8", 1, true},       [LK_ONNX_UINT16] = {"uint16", 2, true},
             [LK_ONNX_INT16] = {"int16", 2, true},     [LK_ONNX_INT32] = {"int32", 4, true},
             [LK_ONNX_INT64] = {"int64", 8, true},     [LK_ONNX_BOOL] = {"bool", 1, true},
             [LK_ONNX_HALF] = {"float16", 2, false},   [LK_ONNX_DOUBLE] = {"float64", 8, false},
             [LK_ONNX_UINT32] = {"uint32", 4, true},   [LK_ONNX_UINT64] = {"uint64", 8, true},
             [LK_ONNX_BFLOAT] = {"bfloat16", 2, false}};

static bool is_known(enum lk_onnx_type type)
{
    return (int)type > 0 && (size_t)type < sizeof types / sizeof *types && types[type].bytes;
}

size_t lk_onnx_type_bytes(enum lk_onnx_type type)
{
    return is_known(type) ? types[type].bytes : 0;
}

const char *lk_onnx_type_name(enum lk_onnx_type type)
{
    return is_known(type) ? types[type].name : "a type that is not known here";
}

bool lk_onnx_is_whole(enum lk_onnx_type type)
{
    return is_known(type) && types[type].is_whole;
}

int64_t lk_onnx_integer(const struct lk_onnx_tensor *tensor, int64_t index)
{
    const void *data = tensor->data;
    double value;
    index = tensor->is_one ? 0 : index;
    switch (tensor->type) {
    case LK_ONNX_UINT8:
    case LK_ONNX_BOOL:
        return ((const uint8_t *)data)[index];
    case LK_ONNX_INT8:
        return ((const int8_t *)data)[index];
    case LK_ONNX_UINT16:
        return ((const uint16_t *)data)[index];
    case LK_ONNX_INT16:
        return ((const int16_t *)data)[index];
    case LK_ONNX_INT32:
        return ((const int32_t *)data)[index];
    case LK_ONNX_UINT32:
        return ((const uint32_t *)data)[index];
    case LK_ONNX_INT64:
    case LK_ONNX_UINT64:
        return ((const int64_t *)data)[index];
    default:
        value = lk_onnx_real(tensor, index);
        return value > -9e18 && value < 9e18 ? (int64_t)value : INT64_MIN;
    }
}

double lk_onnx_real(const struct lk_onnx_tensor *tensor, int64_t index)
{
    const void *data = tensor->data;
    index = tensor->is_one ? 0 : index;
    switch (tensor->type) {
    case LK_ONNX_FLOAT:
        return ((const float *)data)[index];
    case LK_ONNX_DOUBLE:
        return ((const double *)data)[index];
    case LK_ONNX_HALF:
        return lk_half_value(((const uint16_t *)data)[index]);
    case LK_ONNX_BFLOAT:
        return lk_float_of_bits((uint32_t)((const uint16_t *)data)[index] << 16);
    case LK_ONNX_UINT64:
        return (double)((const uint64_t *)data)[index];
    default:
        return is_known(tensor->type) ? (double)lk_onnx_integer(tensor, index) : 0;
    }
}
