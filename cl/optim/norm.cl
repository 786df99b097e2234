/* The norm of a gradient, and the factor that makes it small enough; the penalties of weights
 * (src/optim/adjust.c).
 *
 *   norm_fold   y[y_first + b] = the sum of block b of x, 128 reals, or of their squares. Group
 *               g adds the blocks from g * GROUP on. The order is fixed: element e goes to
 *               column e % 32, columns add their four rows in turn, then halves of the columns
 *               are added, whatever VECTOR is.
 *   norm_fold_rows  the same of a table whose gradient is a list (row_list.cl): for each of its
 *               sums x [all][row_vectors], the blocks of y that the row is in; rows without a
 *               sum count as 0. `clears`: 0 there instead. Of the sums from g * GROUP on.
 *   norm_decide one work-item: norm[0] = min(1, most / (sqrt(sum) * scale + 1e-6))
 *   penalty_fold  y[shift + b] = the sum of l1 |x| + l2 x^2 over block b, begin <= b < end,
 *               whose l1 and l2 stand in factors, of `blocks` blocks, as lib/update.cl has
 *               them; groups and order as in norm_fold
 *   penalty_put one work-item: y[at] = sums[from], or 0 where it does not count
 *
 * x: real [vectors * VECTOR], from vector x_first on; later reals of the last block count as 0.
 * scaling: as lib/update.cl has it. -D: ITEMS: a power of two, at most 32 / VECTOR;
 * GROUP: blocks; scratch: ITEMS values V. */
#include "lib/real.cl"
#include "lib/sum.cl"
#include "lib/update.cl"

#define COLUMNS 32
#define ROWS 4
#define WIDTH (COLUMNS / VECTOR / ITEMS) /* vectors of a row that a work-item adds */
#define BLOCK_VECTORS (COLUMNS * ROWS / VECTOR)

INLINE V load(__global const V *x, int i, int vectors, int squared)
{
    const V v = i < vectors ? x[i] : (V)0;
    return squared ? v * v : v;
}

/* Halves of the columns, until one is left. */
INLINE real sum_columns(V *columns, __local V *scratch)
{
    for (int apart = WIDTH / 2; apart > 0; apart /= 2)
        for (int i = 0; i < apart; i++)
            columns[i] += columns[i + apart];
#if ITEMS > 1
    const int item = (int)get_local_id(0);
    for (int apart = ITEMS / 2; apart > 0; apart /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        scratch[item] = columns[0];
        barrier(CLK_LOCAL_MEM_FENCE);
        columns[0] += scratch[(item + apart) % ITEMS];
    }
#endif
    return sum_vector(columns[0]);
}

/* Vector i of a row is work-item i % ITEMS's. */
INLINE real sum_block(__global const V *x, int first, int vectors, int squared,
                      __local V *scratch)
{
    const int item = (int)get_local_id(0);
    V columns[WIDTH];
    for (int i = 0; i < WIDTH; i++)
        columns[i] = (V)0;
    for (int i = 0; i < ROWS * WIDTH; i++)
        columns[i % WIDTH] += load(x, first + i * ITEMS + item, vectors, squared);
    return sum_columns(columns, scratch);
}

UPDATE_KERNEL void norm_fold(__global const V *x, int x_first, int vectors, int squared,
                             __global real *y, int y_first, int blocks, __local V *scratch)
{
    const int begin = (int)get_group_id(0) * GROUP, end = min(begin + GROUP, blocks);
    for (int b = begin; b < end; b++) {
        const real sum =
            sum_block(x + x_first, b * ROWS * WIDTH * ITEMS, vectors, squared, scratch);
        if (get_local_id(0) == 0)
            y[y_first + b] = sum;
    }
}

/* The same of a block of a table, whose `rows` have sums where slots says so. */
INLINE real sum_block_of_rows(__global const V *x, __global const int *slots, int rows,
                              int row_vectors, long block, __local V *scratch)
{
    const int item = (int)get_local_id(0);
    V columns[WIDTH];
    for (int i = 0; i < WIDTH; i++)
        columns[i] = (V)0;
    for (int i = 0; i < ROWS * WIDTH; i++) {
        const long at = block * BLOCK_VECTORS + i * ITEMS + item;
        const long row = at / row_vectors;
        const int slot = row < rows ? slots[row] : -1;
        const V v = slot < 0 ? (V)0 : x[(long)slot * row_vectors + at % row_vectors];
        columns[i % WIDTH] += v * v;
    }
    return sum_columns(columns, scratch);
}

/* Whether no row before this one has a sum in the block. */
INLINE bool is_first_in_block(__global const int *slots, int row, int row_vectors, long block)
{
    for (long r = block * BLOCK_VECTORS / row_vectors; r < row; r++)
        if (slots[r] >= 0)
            return false;
    return true;
}

UPDATE_KERNEL void norm_fold_rows(__global const V *x, __global const int *numbers,
                                  __global const int *slots, int rows, int row_vectors, int all,
                                  int clears, __global real *y, int y_first, __local V *scratch)
{
    const int begin = (int)get_group_id(0) * GROUP, end = min(begin + GROUP, all);
    for (int n = begin; n < end; n++) {
        const int row = numbers[n];
        if (row < 0)
            continue;
        const long from = (long)row * row_vectors / BLOCK_VECTORS;
        const long to = ((long)(row + 1) * row_vectors - 1) / BLOCK_VECTORS;
        for (long b = from; b <= to; b++) {
            if (!is_first_in_block(slots, row, row_vectors, b))
                continue;
            const real sum =
                clears ? (real)0
                       : sum_block_of_rows(x, slots, rows, row_vectors, b, scratch);
            if (get_local_id(0) == 0)
                y[y_first + b] = sum;
        }
    }
}

INLINE real penalty_of_block(__global const V *x, int first, int vectors, real l1, real l2,
                             __local V *scratch)
{
    const int item = (int)get_local_id(0);
    V columns[WIDTH];
    for (int i = 0; i < WIDTH; i++)
        columns[i] = (V)0;
    for (int i = 0; i < ROWS * WIDTH; i++) {
        const V v = load(x, first + i * ITEMS + item, vectors, 0);
        columns[i % WIDTH] += l1 * fabs(v) + l2 * (v * v);
    }
    return sum_columns(columns, scratch);
}

UPDATE_KERNEL void penalty_fold(__global const V *x, int vectors,
                                __global const real *factors, int blocks, int begin, int end,
                                int shift, __global real *y, __local V *scratch)
{
    __global const real *l1 = factors + FACTOR_L1 * blocks, *l2 = factors + FACTOR_L2 * blocks;
    const int first = begin + (int)get_group_id(0) * GROUP, last = min(first + GROUP, end);
    for (int b = first; b < last; b++) {
        real sum = 0;
        if (l1[b] != 0 || l2[b] != 0)
            sum = penalty_of_block(x, b * ROWS * WIDTH * ITEMS, vectors, l1[b], l2[b], scratch);
        if (get_local_id(0) == 0)
            y[shift + b] = sum;
    }
}

SINGLE_KERNEL void penalty_put(__global const real *sums, int from, int counts,
                               __global real *y, int at)
{
    y[at] = counts ? sums[from] : (real)0;
}

SINGLE_KERNEL void norm_decide(__global const real *sums, int at, __global real *norm,
                               real scale, __global const real *scaling, real most)
{
    const real found = sqrt(sums[at]) * UNSCALED(scale, scaling);
    const real factor = most / (found + NUMBER(1e-6));
    norm[0] = factor < 1 ? factor : found == found ? (real)1 : found;
}
