/* How the warps of a GPU's work-group divide the sums of a block of units. A step waits for the
 * one before, so what counts is how long one takes: few numbers for each work-item, and loads
 * that are on their way together. Needs ops/recurrent/state.cl, SPLIT. COLUMNS is 1. */

typedef PASTE(REAL, 4) Q;

/* Sums that a warp hands over; AT_ONCE: its most rows. */
#define EXCHANGE (SPLIT * AT_ONCE * PARTS)

/* `rows` neighbours of A; where these are fours, so is where they begin. */
INLINE void load_rows(__global const real *packed, const int rows, real values[AT_ONCE])
{
    if (rows % 4 == 0) {
        UNROLL for (int i = 0; i < rows; i += 4)
        {
            const Q four = *(__global const Q *)(packed + i);
            values[i] = four.x, values[i + 1] = four.y;
            values[i + 2] = four.z, values[i + 3] = four.w;
        }
    } else {
        UNROLL for (int i = 0; i < rows; i++) values[i] = packed[i];
    }
}

/* multiply(), with the loads of so many values of h on their way at once: compilers would put
 * each load just before what it is for, so a fence holds what comes behind back. */
INLINE void multiply_ahead(__global const real *packed, const int apart, __global const V *h,
                           int n, const int rows, V s[][COLUMNS])
{
    enum { AHEAD = AT_ONCE > 4 ? 8 : 16 };
    int k = 0;
    for (; k + AHEAD <= n; k += AHEAD) {
        V column[AHEAD];
        real values[AHEAD][AT_ONCE];
        UNROLL for (int a = 0; a < AHEAD; a++) column[a] = h[(k + a) * PARTS];
        UNROLL for (int a = 0; a < AHEAD; a++)
            load_rows(packed + (k + a) * apart, rows, values[a]);
        mem_fence(CLK_LOCAL_MEM_FENCE);
        UNROLL for (int a = 0; a < AHEAD; a++) UNROLL for (int i = 0; i < rows; i++) s[i][0] =
            FMA(values[a][i], column[a], s[i][0]);
    }
    multiply(packed + k * apart, apart, h + k * PARTS, PARTS, PARTS, n - k, rows, s);
}

/* s += A h, of which each warp sums a part of h's values; the parts are added in ascending
 * order, by the warp that owns the row's unit. exchange: EXCHANGE values. */
INLINE void multiply_split(__global const real *packed, const int apart, __global const V *h,
                           int n, const int rows, V s[][COLUMNS], __local V *exchange)
{
    const int from = n * WARP / SPLIT, end = n * (WARP + 1) / SPLIT;
    V own[AT_ONCE][COLUMNS];
    UNROLL for (int i = 0; i < rows; i++) own[i][0] = (V)0;
    multiply_ahead(packed + from * apart, apart, h + from * PARTS, end - from, rows, own);
    UNROLL for (int i = 0; i < rows; i++) exchange[(WARP * rows + i) * PARTS + PART] =
        own[i][0];
    barrier(CLK_LOCAL_MEM_FENCE);
    UNROLL for (int i = 0; i < rows; i++) if (OWNS(i % UNITS))
        UNROLL for (int w = 0; w < SPLIT; w++) s[i][0] +=
        exchange[(w * rows + i) * PARTS + PART];
    barrier(CLK_LOCAL_MEM_FENCE); /* before the next block writes there */
}
