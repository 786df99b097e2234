/* Rows of sums in memory. Needs lib/real.cl; ROWS, COLUMNS. */

/* A value at any real's address. vstoren() of PoCL 3.1 stores two numbers at a time. */
struct loose {
    V v;
} __attribute__((packed));

/* Takes rows of sums from memory, or stores them there; the first of them is `left` before the
 * last unit. Where some are past that a short loop leaves them out. */
INLINE void move_rows(V sums[][COLUMNS], __global real *memory, const size_t at[], int rows,
                      int left, int stores)
{
    if (left >= (COLUMNS - 1) * LANES + VECTOR) {
        UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < COLUMNS; j++)
        {
            __global struct loose *here = (__global struct loose *)(memory + at[i] + j * LANES);
            if (stores)
                here->v = sums[i][j];
            else
                sums[i][j] = here->v;
        }
        return;
    }
#if VECTOR > 1
    V rest[ROWS][COLUMNS];
    size_t begin[ROWS];
    UNROLL for (int i = 0; i < rows; i++)
    {
        begin[i] = at[i];
        UNROLL for (int j = 0; j < COLUMNS; j++) rest[i][j] = sums[i][j];
    }
    ROLLED for (int i = 0; i < rows; i++) ROLLED for (int j = 0; j < COLUMNS; j++)
    {
        __global real *out = memory + begin[i] + j * LANES;
        real *own = (real *)&rest[i][j];
        const int count = min(left - j * LANES, VECTOR);
        ROLLED for (int v = 0; v < count; v++) if (stores) out[v] = own[v];
        else own[v] = out[v];
    }
    if (!stores)
        UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < COLUMNS; j++)
            sums[i][j] = rest[i][j];
#endif
}
