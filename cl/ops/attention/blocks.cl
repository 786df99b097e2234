/* Blocks of the matrix [queries, keys] that a warp computes in registers. The -D names are
 * those of group.cl. Needs ops/attention/weigh.cl, ops/attention/warps.cl.
 *
 * A row is one head's numbers of a time step, and rows are a constant apart, so that compilers
 * make one address of several. So a block of rows that would end behind the last one begins
 * earlier, at a row that another block has as well. */

INLINE __global const S *row_of(__global const S *x, size_t tile, int steps, int step,
                                const int numbers, int at)
{
    return x + ((tile * steps + step) * numbers + at) * PARTS + PART;
}

/* s[i][b] = row i of x . row b of z, of n numbers; how far apart their rows are. Some numbers
 * of every row are read at once: the longer the wait for memory, the more has to be on its way.
 */
#define COLUMNS 4
INLINE void multiply(V s[TALL][COLUMNS], __global const S *x, const int x_apart,
                     __global const S *z, const int z_apart, const int n)
{
    UNROLL for (int i = 0; i < TALL; i++)
    {
        UNROLL for (int b = 0; b < COLUMNS; b++) s[i][b] = (V)(0);
    }
    LOOP(4)
    for (int d = 0; d < n; d++) {
        V left[TALL], right[COLUMNS];
        UNROLL for (int b = 0; b < COLUMNS; b++) right[b] = LOAD(z + b * z_apart + d * PARTS);
        UNROLL for (int i = 0; i < TALL; i++) left[i] = LOAD(x + i * x_apart + d * PARTS);
        UNROLL for (int i = 0; i < TALL; i++)
        {
            UNROLL for (int b = 0; b < COLUMNS; b++) s[i][b] = FMA(left[i], right[b], s[i][b]);
        }
    }
}

/* The greatest length of the tile's samples. */
INLINE int most_of(__global const int *lengths, int tile, int steps)
{
    int most = LENGTHS ? 0 : steps;
    for (int lane = 0; LENGTHS && lane < LANES; lane++)
        most = max(most, valid_steps(lengths, tile, lane, steps));
    return most;
}
