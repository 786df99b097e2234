/* Products of matrices that are both computed, many of each sample.
 *
 *   matmul   y[m][i][j] = sum over k of a[m][i][k] b[m][k][j]
 *
 * a has strides a_row and a_column within a matrix of a_each elements, and b likewise, so that
 * each may be read with its axes changed over: gradients are such products. Tensors: stored
 * [tiles][matrices][elements][LANES]. Group ids: 0: a row of y of all matrices, 1: tile.
 */
#include "lib/real.cl"

#define BLOCK 4

KERNEL void matmul(__global const S *restrict a, __global const S *restrict b,
                   __global S *restrict y, int rows, int inner, int columns, int a_row,
                   int a_column, int b_row, int b_column)
{
    const int row = get_group_id(0), m = row / rows, i = row % rows;
    const size_t tile = get_group_id(1), matrices = get_num_groups(0) / rows;
    const size_t matrix = tile * matrices + m;
    a += (matrix * rows * inner + (size_t)i * a_row) * PARTS + PART;
    b += matrix * inner * columns * PARTS + PART;
    y += (matrix * rows + i) * columns * PARTS + PART;
    for (int j = 0; j < columns; j += BLOCK) {
        V sum[BLOCK];
        int at[BLOCK];
        UNROLL for (int n = 0; n < BLOCK; n++)
        {
            sum[n] = (V)(0);
            at[n] = min(j + n, columns - 1) * b_column;
        }
        for (int k = 0; k < inner; k++) {
            const V left = LOAD(a + (size_t)k * a_column * PARTS);
            UNROLL for (int n = 0; n < BLOCK; n++) sum[n] +=
                left * LOAD(b + ((size_t)k * b_row + at[n]) * PARTS);
        }
        UNROLL for (int n = 0; n < BLOCK; n++) if (j + n < columns)
            STORE(y + (size_t)(j + n) * PARTS, sum[n]);
    }
}
