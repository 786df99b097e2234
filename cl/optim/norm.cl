/* The norm of a gradient, and the factor that makes it small enough; the penalties of weights
 * (src/optim/adjust.c).
 *
 *   norm_fold   y[y_first + b] = the sum of block b of x, 128 reals, or of their squares. Group
 *               g adds the blocks from g * GROUP on. The order is fixed: element e goes to
 *               column e % 32, columns add their four rows in turn, then halves of the columns
 *               are added, whatever VECTOR is.
 *   norm_decide one work-item: norm[0] = min(1, most / (sqrt(sum) * scale + 1e-6))
 *   penalty_fold  y[b] = the sum of l1 |x| + l2 x^2 over block b, whose l1 and l2 stand in
 *               factors, as lib/update.cl has them; groups and order as in norm_fold
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
                                __global const real *factors, int blocks, __global real *y,
                                __local V *scratch)
{
    __global const real *l1 = factors + FACTOR_L1 * blocks, *l2 = factors + FACTOR_L2 * blocks;
    const int begin = (int)get_group_id(0) * GROUP, end = min(begin + GROUP, blocks);
    for (int b = begin; b < end; b++) {
        real sum = 0;
        if (l1[b] != 0 || l2[b] != 0)
            sum = penalty_of_block(x, b * ROWS * WIDTH * ITEMS, vectors, l1[b], l2[b], scratch);
        if (get_local_id(0) == 0)
            y[b] = sum;
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
