/* Numbers of few bits: y = (x - zero point) scale, and back. They are computed as floats, which
 * have every whole number that comes up. */
#include "model/onnx_arrays/whole.h"

#include "base/fail.h"
#include "model/onnx_arrays/tables.h"

/* What belongs to x along an axis: one number, or a vector. */
static enum lk_status place(draft *d, const value *x, int axis, value *numbers)
{
    int64_t dim[LK_ONNX_AXES];
    const int64_t count = lk_whole_count(numbers->rank, numbers->dim);
    if (count == 1)
        return lk_whole_reshape(d, numbers, 0, NULL);
    if (numbers->rank != 1 || axis < 0 || axis >= x->rank || count != x->dim[axis])
        return lk_onnx_fail(d, "one scale, or one for each number of an axis, is expected");
    for (int i = 0; i < x->rank; i++)
        dim[i] = i == axis ? count : 1;
    return lk_whole_reshape(d, numbers, x->rank, dim);
}

static enum lk_status input_along(draft *d, int index, const value *x, int axis, value *made)
{
    LK_TRY(lk_whole_input(d, index, made));
    return place(d, x, axis, made);
}

/* The axis of scales; blocks of numbers with a scale each are not known. */
static enum lk_status read_axis(draft *d, const value *x, int *axis)
{
    int64_t said, block;
    LK_TRY(lk_onnx_say_integer(d, "axis", 1, &said));
    LK_TRY(lk_onnx_say_integer(d, "block_size", 0, &block));
    if (block)
        return lk_onnx_fail(d, "blocks of %lld are not supported", (long long)block);
    *axis = (int)(said < 0 ? said + x->rank : said);
    return LK_OK;
}

/* Input `index` without its zero point, input `zero`. */
static enum lk_status centre(draft *d, int index, int zero, int axis, value *x)
{
    value point;
    LK_TRY(lk_whole_input(d, index, x));
    if (lk_whole_has(d, zero)) {
        LK_TRY(input_along(d, zero, x, axis < 0 ? axis + x->rank : axis, &point));
        LK_TRY(lk_whole_two(d, "difference", x, &point, x));
    }
    x->type = LK_ONNX_FLOAT;
    return LK_OK;
}

static enum lk_status dequantize(draft *d)
{
    value x, scale;
    int axis = 0;
    LK_TRY(lk_whole_input(d, 0, &x));
    LK_TRY(read_axis(d, &x, &axis));
    LK_TRY(input_along(d, 1, &x, axis, &scale));
    const enum lk_onnx_type type = scale.type;
    LK_TRY(centre(d, 0, 2, axis, &x));
    LK_TRY(lk_whole_two(d, "product", &x, &scale, &x));
    x.type = type;
    return lk_onnx_give(d, 0, &x);
}

/* Rounded, shifted by the zero point, and cut to what the type has. */
static enum lk_status narrow(draft *d, const value *x, const value *point,
                             enum lk_onnx_type type, value *made)
{
    static const struct {
        enum lk_onnx_type type;
        double low, high;
    } ranges[] = {{LK_ONNX_UINT8, 0, 255},
                  {LK_ONNX_INT8, -128, 127},
                  {LK_ONNX_UINT16, 0, 65535},
                  {LK_ONNX_INT16, -32768, 32767}};
    int r = 0;
    while (r < LK_COUNT(ranges) && ranges[r].type != type)
        r++;
    if (r == LK_COUNT(ranges))
        return lk_onnx_fail(d, "values become %s, which is not supported",
                            lk_onnx_type_name(type));
    LK_TRY(lk_whole_math(d, "round", 1, x, made));
    if (point)
        LK_TRY(lk_whole_two(d, "sum", made, point, made));
    LK_TRY(lk_whole_math_of(d, "clip", ranges[r].low, ranges[r].high, made, made));
    made->type = type;
    return LK_OK;
}

static enum lk_status quantize(draft *d)
{
    value x, scale, point;
    int axis = 0;
    int64_t type;
    LK_TRY(lk_whole_input(d, 0, &x));
    LK_TRY(read_axis(d, &x, &axis));
    LK_TRY(input_along(d, 1, &x, axis, &scale));
    LK_TRY(lk_onnx_say_integer(d, "output_dtype", LK_ONNX_UINT8, &type));
    const bool has_point = lk_whole_has(d, 2);
    if (has_point) {
        LK_TRY(input_along(d, 2, &x, axis, &point));
        type = point.type;
    }
    LK_TRY(lk_whole_two(d, "quotient", &x, &scale, &x));
    LK_TRY(narrow(d, &x, has_point ? &point : NULL, (enum lk_onnx_type)type, &x));
    return lk_onnx_give(d, 0, &x);
}

/* Scale and zero point of 8 bits, so that 0 and all numbers of x lie between. */
static enum lk_status quantize_as_found(draft *d)
{
    value x, low, high, scale, point;
    LK_TRY(lk_whole_input(d, 0, &x));
    const unsigned axes = (1u << x.rank) - 1;
    LK_TRY(lk_whole_reduce(d, "smallest", &x, axes, &low));
    LK_TRY(lk_whole_reduce(d, "largest", &x, axes, &high));
    lk_whole_drop_axes(&low, axes);
    lk_whole_drop_axes(&high, axes);
    LK_TRY(lk_whole_with(d, "smaller", &low, 0, &low));
    LK_TRY(lk_whole_with(d, "larger", &high, 0, &high));
    LK_TRY(lk_whole_two(d, "difference", &high, &low, &scale));
    LK_TRY(lk_whole_with(d, "quotient", &scale, 255, &scale));
    LK_TRY(lk_whole_two(d, "quotient", &low, &scale, &point));
    LK_TRY(lk_whole_with(d, "product", &point, -1, &point));
    LK_TRY(narrow(d, &point, NULL, LK_ONNX_UINT8, &point));
    LK_TRY(lk_whole_two(d, "quotient", &x, &scale, &x));
    LK_TRY(narrow(d, &x, &point, LK_ONNX_UINT8, &x));
    scale.type = LK_ONNX_FLOAT;
    LK_TRY(lk_onnx_give(d, 0, &x));
    LK_TRY(lk_onnx_give(d, 1, &scale));
    return lk_onnx_give(d, 2, &point);
}

/* Zero points of the first matrix are of rows, those of the second of columns. */
static enum lk_status multiply_whole(draft *d)
{
    value a, b;
    LK_TRY(centre(d, 0, 2, -2, &a));
    LK_TRY(centre(d, 1, 3, -1, &b));
    LK_TRY(lk_whole_matmul(d, &a, &b, &a));
    a.type = LK_ONNX_INT32;
    return lk_onnx_give(d, 0, &a);
}

static enum lk_status multiply_scaled(draft *d)
{
    value x[2], scale, point;
    for (int i = 0; i < 2; i++) {
        LK_TRY(centre(d, 3 * i, 3 * i + 2, i - 2, &x[i]));
        LK_TRY(input_along(d, 3 * i + 1, &x[i], x[i].rank + i - 2, &scale));
        LK_TRY(lk_whole_two(d, "product", &x[i], &scale, &x[i]));
    }
    LK_TRY(lk_whole_matmul(d, &x[0], &x[1], x));
    LK_TRY(input_along(d, 6, x, x->rank - 2, &scale));
    LK_TRY(input_along(d, 7, x, x->rank - 2, &point));
    LK_TRY(lk_whole_two(d, "quotient", x, &scale, x));
    LK_TRY(narrow(d, x, &point, point.type, x));
    return lk_onnx_give(d, 0, x);
}

const struct lk_onnx_operator lk_array_quantized[] = {
    {"DequantizeLinear", dequantize, LK_ONNX_KNOWS("axis", "block_size")},
    {"QuantizeLinear", quantize,
     LK_ONNX_KNOWS("axis", "block_size", "saturate", "output_dtype")},
    {"DynamicQuantizeLinear", quantize_as_found, LK_ONNX_KNOWS(NULL)},
    {"MatMulInteger", multiply_whole, LK_ONNX_KNOWS(NULL)},
    {"QLinearMatMul", multiply_scaled, LK_ONNX_KNOWS(NULL)},
    {0},
};
