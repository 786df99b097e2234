/* One number of many, along an axis.
 *
 *   reduce_forward   y[o][i] = R over k of x[o][k][i]
 *   reduce_backward  dx[o][k][i] = dy[o][i] dR/dx[k]
 *
 * -D FUNCTION: 0 sum, 1 mean, 2 larger, 3 smaller, 4 product, 5 log of the sum of e^x, 6 and 7
 * the place of the largest and of the smallest, the first (LAST 1: the last) of equal ones.
 * Gradients of 2 and 3 are shared by equal ones. x: stored [tiles][rows / inner][length][inner]
 * [LANES]; y: [tiles][rows][LANES]. Group ids: 0: `each` rows of y, 1: tile.
 */
#include "lib/real.cl"

/* By the preprocessor: Intel's compiler warns of constants beside ||. */
#if FUNCTION == 2 || FUNCTION == 5
#define FINDS_LARGEST 1
#else
#define FINDS_LARGEST 0
#endif
#if FUNCTION == 2 || FUNCTION == 3
#define SHARES_TIES 1
#else
#define SHARES_TIES 0
#endif

#define AT(k) (x + (begin + (size_t)(k)*inner) * PARTS + PART)

/* The first element of what makes a row of y. */
INLINE size_t begin_of(size_t tile, int rows, int row, int length, int inner)
{
    return (tile * (rows / inner) + row / inner) * length * inner + row % inner;
}

INLINE V reduce_row(__global const S *x, size_t begin, int length, int inner)
{
    V y = FUNCTION == 4 ? (V)(1) : FUNCTION < 2 ? (V)(0) : LOAD(AT(0)), place = (V)(0);
    for (int k = 0; k < length; k++) {
        const V v = LOAD(AT(k));
        if (FUNCTION < 2)
            y += v;
        else if (FINDS_LARGEST)
            y = y > v || y != y ? y : v;
        else if (FUNCTION == 3)
            y = y < v || y != y ? y : v;
        else if (FUNCTION == 4)
            y *= v;
        else {
            const I better = FUNCTION == 6 ? (LAST ? v >= y : v > y) : (LAST ? v <= y : v < y);
            place = better ? (V)((real)k) : place;
            y = better ? v : y;
        }
    }
    if (FUNCTION == 1)
        y /= (V)((real)length);
    if (FUNCTION == 5) {
        V sum = (V)(0);
        const V most = fabs(y) == (V)(INFINITY) ? (V)(0) : y;
        for (int k = 0; k < length; k++)
            sum += exp(LOAD(AT(k)) - most);
        y = most + log(sum);
    }
    return FUNCTION > 5 ? place : y;
}

KERNEL void reduce_forward(__global const S *restrict x, __global S *restrict y, int rows,
                           int length, int inner, int each)
{
    const int first = get_group_id(0) * each, last = min(rows, first + each);
    const size_t tile = get_group_id(1);
    for (int row = first; row < last; row++) {
        const size_t begin = begin_of(tile, rows, row, length, inner);
        STORE(y + (tile * rows + row) * PARTS + PART, reduce_row(x, begin, length, inner));
    }
}

/* The derivative by x[k]. */
INLINE V slope_of(__global const S *x, size_t begin, int length, int inner, int k, V y, V ties)
{
    const V v = LOAD(AT(k));
    V others = (V)(1);
    switch (FUNCTION) {
    case 0:
        return (V)(1);
    case 1:
        return (V)(1 / (real)length);
    case 2:
    case 3:
        return v == y ? (V)(1) / ties : (V)(0);
    case 4:
        for (int j = 0; j < length; j++)
            others *= j == k ? (V)(1) : LOAD(AT(j));
        return others;
    case 5:
        return exp(v - y);
    }
    return (V)(0);
}

KERNEL void reduce_backward(__global const S *restrict x, __global const S *restrict y,
                            __global const S *restrict dy, __global S *restrict dx, int rows,
                            int length, int inner, int each)
{
    const int first = get_group_id(0) * each, last = min(rows, first + each);
    const size_t tile = get_group_id(1);
    for (int row = first; row < last; row++) {
        const size_t begin = begin_of(tile, rows, row, length, inner);
        const V found = LOAD(y + (tile * rows + row) * PARTS + PART);
        const V slope = LOAD(dy + (tile * rows + row) * PARTS + PART);
        V ties = (V)(0);
        if (SHARES_TIES)
            for (int k = 0; k < length; k++)
                ties += LOAD(AT(k)) == found ? (V)(1) : (V)(0);
        for (int k = 0; k < length; k++) {
            const V of_k = slope_of(x, begin, length, inner, k, found, ties);
            STORE(dx + (begin + (size_t)k * inner) * PARTS + PART,
                  slope == (V)(0) ? (V)(0) : slope * of_k);
        }
    }
}
