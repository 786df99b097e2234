/* What converters of whole arrays compute with: functions with broadcasting, sums along axes,
 * products of matrices, norms. */
#include "model/onnx_arrays/whole.h"

#include "base/fail.h"
#include "base/number.h"
#include <string.h>

/* --- functions --------------------------------------------------------------------------- */

/* The shape that all values are repeated to. */
static enum lk_status common_shape(const draft *d, int count, const value *x, int *rank,
                                   int64_t *dim)
{
    *rank = 0;
    for (int o = 0; o < count; o++)
        *rank = x[o].rank > *rank ? x[o].rank : *rank;
    for (int i = 0; i < *rank; i++) {
        dim[i] = 1;
        for (int o = 0; o < count; o++) {
            const int own = i - (*rank - x[o].rank);
            const int64_t length = own < 0 ? 1 : x[o].dim[own];
            if (length != 1 && dim[i] != 1 && length != dim[i])
                return lk_onnx_fail(d, "arrays of shapes that do not go together");
            dim[i] = length == 1 ? dim[i] : length;
        }
    }
    return LK_OK;
}

static enum lk_status add_math(draft *d, const char *options, int count, const value *x,
                               value *made)
{
    value same[3];
    int64_t dim[LK_ONNX_AXES];
    int rank;
    const enum lk_onnx_type type = x[count - 1].type;
    LK_TRY(common_shape(d, count, x, &rank, dim));
    for (int i = 0; i < count; i++)
        LK_TRY(lk_whole_expand(d, &x[i], rank, dim, &same[i]));
    LK_TRY(lk_onnx_add(d, "math", options, count, same, made));
    made->type = type;
    return lk_whole_reshape(d, made, rank, dim);
}

enum lk_status lk_whole_math(draft *d, const char *function, int count, const value *x,
                             value *made)
{
    const char *options;
    LK_TRY(lk_onnx_text(d, &options, "function=%s", function));
    return add_math(d, options, count, x, made);
}

enum lk_status lk_whole_math_of(draft *d, const char *function, double alpha, double beta,
                                const value *x, value *made)
{
    char text[2][40];
    const char *options;
    const double numbers[] = {alpha, beta};
    const value from = *x;
    for (int i = 0; i < 2; i++) {
        const double n = numbers[i];
        lk_number_print(n > 3.4e38    ? 3.5e38
                        : n < -3.4e38 ? -3.5e38
                                      : n,
                        text[i], sizeof text[i]);
    }
    LK_TRY(
        lk_onnx_text(d, &options, "function=%s alpha=%s beta=%s", function, text[0], text[1]));
    return add_math(d, options, 1, &from, made);
}

enum lk_status lk_whole_two(draft *d, const char *function, const value *a, const value *b,
                            value *made)
{
    const value x[2] = {*a, *b};
    return lk_whole_math(d, function, 2, x, made);
}

enum lk_status lk_whole_with(draft *d, const char *function, const value *a, double b,
                             value *made)
{
    value number;
    LK_TRY(lk_whole_number(d, b, &number));
    return lk_whole_two(d, function, a, &number, made);
}

enum lk_status lk_whole_apply(draft *d, const char *op, const char *options, const value *x,
                              value *made)
{
    const value from = *x;
    LK_TRY(lk_onnx_add(d, op, options, 1, &from, made));
    made->type = from.type;
    return lk_whole_reshape(d, made, from.rank, from.dim);
}

/* --- along axes -------------------------------------------------------------------------- */

/* The axes of a mask last, in their order. */
static enum lk_status put_last(draft *d, const value *x, unsigned axes, value *made,
                               int64_t *length)
{
    int order[LK_ONNX_AXES], found = 0;
    *length = 1;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < x->rank; i++)
            if ((axes >> i & 1) == (unsigned)pass) {
                order[found++] = i;
                *length *= pass ? x->dim[i] : 1;
            }
    return lk_whole_order(d, x, order, made);
}

enum lk_status lk_whole_reduce(draft *d, const char *function, const value *x, unsigned axes,
                               value *made)
{
    const value from = *x;
    value turned;
    int64_t length, dim[LK_ONNX_AXES] = {0};
    const char *options;
    LK_TRY(put_last(d, &from, axes, &turned, &length));
    LK_TRY(lk_onnx_text(d, &options, "function=%s length=%lld", function, (long long)length));
    LK_TRY(lk_onnx_add(d, "reduce", options, 1, &turned, made));
    for (int i = 0; i < from.rank; i++)
        dim[i] = axes >> i & 1 ? 1 : from.dim[i];
    made->type = from.type;
    return lk_whole_reshape(d, made, from.rank, dim);
}

void lk_whole_drop_axes(value *x, unsigned axes)
{
    int kept = 0;
    for (int i = 0; i < x->rank; i++)
        if (!(axes >> i & 1))
            x->dim[kept++] = x->dim[i];
    x->rank = kept;
}

enum lk_status lk_whole_axes(draft *d, const char *name, int index, int rank, unsigned *axes,
                             bool *found)
{
    int64_t said[LK_ONNX_AXES];
    int count, axis;
    const struct lk_onnx_attribute *single = lk_onnx_find_attribute(d->node, name);
    *axes = 0;
    if (single && single->kind == LK_ONNX_INTEGER) {
        said[0] = single->integer;
        count = 1;
    } else {
        LK_TRY(lk_onnx_numbers(d, name, index, LK_ONNX_AXES, said, &count));
    }
    for (int i = 0; i < count; i++) {
        LK_TRY(lk_onnx_axis(d, said[i], rank, &axis));
        *axes |= 1u << axis;
    }
    *found = count > 0;
    return LK_OK;
}

/* --- products ---------------------------------------------------------------------------- */

/* One matrix for all rows of a: they are the rows of a single product. */
static enum lk_status multiply_rows(draft *d, const value *a, const value *b, value *made)
{
    value x = *a, matrix = *b;
    int64_t dim[LK_ONNX_AXES], rows = 1;
    const int rank = a->rank; /* a may be what is made */
    memcpy(dim, a->dim, sizeof dim);
    dim[a->rank - 1] = b->dim[b->rank - 1];
    for (int i = 0; i < a->rank - 1; i++)
        rows *= a->dim[i];
    LK_TRY(lk_whole_reshape(d, &x, 2, (const int64_t[]){rows, a->dim[a->rank - 1]}));
    LK_TRY(lk_whole_reshape(d, &matrix, 2, b->dim + b->rank - 2));
    LK_TRY(lk_whole_matmul(d, &x, &matrix, made));
    return lk_whole_reshape(d, made, rank, dim);
}

enum lk_status lk_whole_matmul(draft *d, const value *a, const value *b, value *made)
{
    value x[2] = {*a, *b}, heads[2] = {*a, *b};
    int64_t dim[LK_ONNX_AXES];
    int rank;
    const char *options;
    if (a->rank < 2 || b->rank < 2 || a->dim[a->rank - 1] != b->dim[b->rank - 2])
        return lk_onnx_fail(d, "matrices that do not go together");
    const int64_t rows = a->dim[a->rank - 2], inner = a->dim[a->rank - 1];
    const int64_t columns = b->dim[b->rank - 1];
    bool is_one = a->rank > 2 && b->rank <= a->rank;
    for (int i = 0; i < b->rank - 2; i++)
        is_one &= b->dim[i] == 1;
    if (is_one)
        return multiply_rows(d, a, b, made);
    for (int i = 0; i < 2; i++)
        heads[i].rank -= 2;
    LK_TRY(common_shape(d, 2, heads, &rank, dim));
    if (rank + 2 > LK_ONNX_AXES)
        return lk_onnx_fail(d, "more than %d axes", LK_ONNX_AXES);
    dim[rank] = rows;
    dim[rank + 1] = inner;
    LK_TRY(lk_whole_expand(d, &x[0], rank + 2, dim, &x[0]));
    dim[rank] = inner;
    dim[rank + 1] = columns;
    LK_TRY(lk_whole_expand(d, &x[1], rank + 2, dim, &x[1]));
    LK_TRY(lk_onnx_text(d, &options, "rows=%lld inner=%lld columns=%lld", (long long)rows,
                        (long long)inner, (long long)columns));
    dim[rank] = rows;
    const enum lk_onnx_type type = a->type;
    LK_TRY(lk_onnx_add(d, "matmul", options, 2, x, made));
    made->type = type;
    return lk_whole_reshape(d, made, rank + 2, dim);
}

/* --- norms ------------------------------------------------------------------------------- */

enum lk_status lk_whole_normalize(draft *d, const value *x, unsigned axes, double epsilon,
                                  value *made)
{
    value mean, apart, square;
    LK_TRY(lk_whole_reduce(d, "mean", x, axes, &mean));
    LK_TRY(lk_whole_two(d, "difference", x, &mean, &apart));
    LK_TRY(lk_whole_two(d, "product", &apart, &apart, &square));
    LK_TRY(lk_whole_reduce(d, "mean", &square, axes, &square));
    LK_TRY(lk_whole_with(d, "sum", &square, epsilon, &square));
    LK_TRY(lk_whole_math(d, "sqrt", 1, &square, &square));
    return lk_whole_two(d, "quotient", &apart, &square, made);
}

enum lk_status lk_whole_softmax(draft *d, const value *x, unsigned axes, bool is_log,
                                value *made)
{
    value most, apart, powers, sum; /* by what is largest first: it may be far from 0 */
    LK_TRY(lk_whole_reduce(d, "largest", x, axes, &most));
    LK_TRY(lk_whole_two(d, "difference", x, &most, &apart));
    LK_TRY(lk_whole_apply(d, "exp", "", &apart, &powers));
    LK_TRY(lk_whole_reduce(d, "sum", &powers, axes, &sum));
    if (!is_log)
        return lk_whole_two(d, "quotient", &powers, &sum, made);
    LK_TRY(lk_whole_math(d, "log", 1, &sum, &sum));
    return lk_whole_two(d, "difference", &apart, &sum, made);
}

/* A vector as an array that is repeated along all other axes. */
static enum lk_status along(draft *d, const value *x, int axis, const value *vector,
                            value *made)
{
    int64_t dim[LK_ONNX_AXES];
    for (int i = 0; i < x->rank; i++)
        dim[i] = i == axis ? x->dim[i] : 1;
    *made = *vector;
    return lk_whole_reshape(d, made, x->rank, dim);
}

enum lk_status lk_whole_scale(draft *d, const value *x, int axis, const value *scale,
                              const value *shift, value *made)
{
    value vector;
    *made = *x;
    if (scale) {
        LK_TRY(along(d, x, axis, scale, &vector));
        LK_TRY(lk_whole_two(d, "product", made, &vector, made));
    }
    if (shift) {
        LK_TRY(along(d, made, axis, shift, &vector));
        LK_TRY(lk_whole_two(d, "sum", made, &vector, made));
    }
    return LK_OK;
}
