/* The norm of a gradient, and the factor that makes it small enough (src/optim/adjust.c).
 *
 *   norm_fold   y[y_first + b] = the sum of block b of x, 128 reals, or of their squares. Group
 *               g adds the blocks from g * GROUP on. The order is fixed: element e goes to
 *               column e % 32, columns add their four rows in turn, then halves of the columns
 *               are added, whatever VECTOR is.
 *   norm_decide one work-item: norm[0] = min(1, most / (sqrt(sum) * scale + 1e-6))
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
    for (int apart = WIDTH / 2; apart > 0; apart /= 2)
        for (int i = 0; i < apart; i++)
            columns[i] += columns[i + apart];
#if ITEMS > 1
    for (int apart = ITEMS / 2; apart > 0; apart /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        scratch[item] = columns[0];
        barrier(CLK_LOCAL_MEM_FENCE);
        columns[0] += scratch[(item + apart) % ITEMS];
    }
#endif
    return sum_vector(columns[0]);
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

SINGLE_KERNEL void norm_decide(__global const real *sums, int at, __global real *norm,
                               real scale, __global const real *scaling, real most)
{
    const real found = sqrt(sums[at]) * UNSCALED(scale, scaling);
    const real factor = most / (found + NUMBER(1e-6));
    norm[0] = factor < 1 ? factor : found == found ? (real)1 : found;
}
