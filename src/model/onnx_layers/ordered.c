/* The largest or smallest elements of rows: each element's place is the number of those before
 * it, and a place picks the element that has it. */
#include "model/onnx_arrays/whole.h"

#include "base/fail.h"
#include "model/onnx_arrays/tables.h"

enum { MOST = 2048 };

/* A matrix [rows, columns] of truths: column < row; or of the numbers 0, 1 ... where columns is
 * 1. */
static enum lk_status add_matrix(draft *d, int64_t rows, int64_t columns, value *made)
{
    struct lk_onnx_tensor *matrix;
    LK_TRY(lk_onnx_new_tensor(d, LK_ONNX_FLOAT, 2, (const int64_t[]){rows, columns}, &matrix));
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            lk_onnx_put_real(matrix, r * columns + c, columns == 1 ? (double)r : c < r);
    return lk_whole_constant(d, matrix, made);
}

/* Places of the elements of rows [r, n], as [r, 1, n]; among equal ones the first is before. */
static enum lk_status find_places(draft *d, const value *rows, bool is_largest, value *place)
{
    const int64_t r = rows->dim[0], n = rows->dim[1];
    value own = *rows, other = *rows, ties, first;
    LK_TRY(lk_whole_reshape(d, &own, 3, (const int64_t[]){r, n, 1}));
    LK_TRY(lk_whole_reshape(d, &other, 3, (const int64_t[]){r, 1, n}));
    LK_TRY(
        lk_whole_two(d, "less", is_largest ? &own : &other, is_largest ? &other : &own, place));
    LK_TRY(lk_whole_two(d, "equal", &own, &other, &ties));
    LK_TRY(add_matrix(d, n, n, &first));
    LK_TRY(lk_whole_two(d, "and", &ties, &first, &ties));
    LK_TRY(lk_whole_two(d, "or", place, &ties, place));
    LK_TRY(lk_whole_reduce(d, "sum", place, 4, place));
    return lk_whole_reshape(d, place, 3, (const int64_t[]){r, 1, n});
}

/* Of numbers that go with rows of n elements each, those where `chosen` [r, k, n] is true. */
static enum lk_status give_chosen(draft *d, const value *chosen, const value *numbers,
                                  const value *x, const int *order, int output)
{
    value all[3] = {*chosen, *numbers}, made;
    int64_t dim[LK_ONNX_AXES];
    LK_TRY(lk_whole_number(d, 0, &all[2]));
    LK_TRY(lk_whole_math(d, "choice", 3, all, &made));
    LK_TRY(lk_whole_reduce(d, "sum", &made, 4, &made));
    for (int i = 0; i < x->rank; i++)
        dim[i] = i == x->rank - 1 ? chosen->dim[1] : x->dim[i];
    LK_TRY(lk_whole_reshape(d, &made, x->rank, dim));
    LK_TRY(lk_whole_order(d, &made, order, &made));
    made.type = output ? LK_ONNX_INT64 : x->type;
    return lk_onnx_give(d, output, &made);
}

static enum lk_status top_k(draft *d)
{
    value x, rows, place, numbers, chosen;
    int64_t said, largest, k[1];
    int axis, count, order[LK_ONNX_AXES];
    LK_TRY(lk_whole_input(d, 0, &x));
    LK_TRY(lk_onnx_numbers(d, "k", 1, 1, k, &count));
    LK_TRY(lk_onnx_say_integer(d, "axis", -1, &said));
    LK_TRY(lk_onnx_say_integer(d, "largest", 1, &largest));
    LK_TRY(lk_onnx_axis(d, said, x.rank, &axis));
    const int64_t n = x.dim[axis];
    if (count != 1 || k[0] < 1 || k[0] > n || n > MOST)
        return lk_onnx_fail(d, "the first %lld of %lld elements", count ? (long long)k[0] : 0,
                            (long long)n);
    LK_TRY(lk_whole_rows(d, &x, axis, order, &rows));
    const int64_t r = rows.dim[0];
    LK_TRY(find_places(d, &rows, largest != 0, &place));
    LK_TRY(add_matrix(d, k[0], 1, &numbers));
    LK_TRY(lk_whole_two(d, "equal", &place, &numbers, &chosen));
    LK_TRY(lk_whole_reshape(d, &rows, 3, (const int64_t[]){r, 1, n}));
    LK_TRY(give_chosen(d, &chosen, &rows, &x, order, 0));
    LK_TRY(add_matrix(d, n, 1, &numbers));
    LK_TRY(lk_whole_reshape(d, &numbers, 3, (const int64_t[]){1, 1, n}));
    return give_chosen(d, &chosen, &numbers, &x, order, 1);
}

const struct lk_onnx_operator lk_array_ordered[] = {
    {"TopK", top_k, LK_ONNX_KNOWS("axis", "k", "largest", "sorted")},
    {0},
};
