/* Weights in the order in which conv2d_gather reads them:
 *
 *   to[g][b][n][r][s][i] = w[row_first + g*group_step + (b*block + i)*out_step + n*in_step
 *                            + r*row_step + s*column_step], or 0 where b*block + i >= outs
 *
 * Forward: n is a channel of the group, b*block + i a filter. Data gradient: the other way
 * round, taps in descending order.
 *
 * Group ids: 0: b, 1: g. Work-items: n.
 */
#include "lib/real.cl"

/* Whole blocks of a usual size take no test for every element. */
INLINE void copy_block(__global real *to, __global const real *from, int block, int left,
                       int step)
{
    if (left == 8 && step == 1)
        UNROLL for (int i = 0; i < 8; i++)
            to[i] = from[i];
    else if (left == 8)
        UNROLL for (int i = 0; i < 8; i++)
            to[i] = from[i * step];
    else
        for (int i = 0; i < block; i++)
            to[i] = i < left ? from[i * step] : (real)0;
}

BODY void pack_group(__global const real *restrict w, __global real *restrict to, int to_first,
                     int block, int outs, int ins, int rows, int columns, int group_step,
                     int out_step, int in_step, int row_first, int row_step, int column_step,
                     int group_0, int group_1, int blocks)
{
    const int b = group_0, g = group_1, unit = rows * columns * block;
    const int left = min(block, outs - b * block);
    w += g * group_step + b * block * out_step + row_first;
    to += to_first + ((size_t)g * blocks + b) * ins * unit;
    for (int n = PART; n < ins; n += PARTS)
        for (int r = 0; r < rows; r++)
            for (int s = 0; s < columns; s++) {
                __global const real *from = w + n * in_step + r * row_step + s * column_step;
                __global real *out = to + (size_t)n * unit + (r * columns + s) * block;
                copy_block(out, from, block, left, out_step);
            }
}

KERNEL void conv2d_pack(__global const real *restrict w, __global real *restrict to,
                        int to_first, int block, int outs, int ins, int rows, int columns,
                        int group_step, int out_step, int in_step, int row_first, int row_step,
                        int column_step)
{
    pack_group(w, to, to_first, block, outs, ins, rows, columns, group_step, out_step, in_step,
               row_first, row_step, column_step, get_group_id(0), get_group_id(1),
               get_num_groups(0));
}
