/* Dense layers on batch tiles; the time steps of a sequence count as tiles of their own.
 *
 *   dense_product   y[t,m,l] = max(b[m] + sum_d A[m,d] x[t,d,l], least), one chain of FMAs,
 *                   ascending d; FORWARD 1: A[m,d] = w[d,m]; 0: A[m,d] = w[m,d] (data gradient)
 *
 * -D: ROWS x COLUMNS: values V a work-item sums at once; BIAS, FORWARD (0, 1); PIECES of ROWS
 * that a group does, DEPTH it goes at a time (all, where halves are stored), PACK (0, 1): w
 * through local memory. No sum's order depends on any of them.
 * Of dead tiles (alive_tiles.cl) x is not read; a data gradient is 0 there, other y are left
 * as they are.
 * Group ids: 0: PIECES * ROWS units, 1: `chunk` tiles.
 */
#include "lib/real.cl"
#include "products/matrix/place.cl"
#include "products/matrix/alive_tiles.cl"

#define BLOCK (PIECES * ROWS)

#if PACK
#define A_SPACE __local

/* packed[piece][d][ROWS] = w[d][m]; rows past the last repeat it. */
INLINE void pack(__global const real *w, __local real *packed, int m0, int rows, int n)
{
    for (int d = 0; d < n; d++) {
        __global const real *from = w + (size_t)d * rows;
        for (int p = 0; p < PIECES; p++) {
            __local real *to = packed + (p * DEPTH + d) * ROWS;
            const int m = m0 + p * ROWS;
            if (m + ROWS <= rows)
                UNROLL for (int i = 0; i < ROWS; i++) to[i] = from[m + i];
            else
                ROLLED for (int i = 0; i < ROWS; i++) to[i] = from[min(m + i, rows - 1)];
        }
    }
}
#else
#define A_SPACE __global
#endif

/* acc += A x over n values of d; a[i] moves on by `next`. */
INLINE void multiply(A_SPACE const real *const a[ROWS], int next,
                     __global const S *const x[COLUMNS], int n, V acc[ROWS][COLUMNS])
{
    int at = 0;
    for (int d = 0; d < n; d++, at += next) {
        V column[COLUMNS];
        UNROLL for (int j = 0; j < COLUMNS; j++) column[j] = LOAD(x[j] + d * PARTS);
        UNROLL for (int i = 0; i < ROWS; i++)
        {
            const V value = (V)(a[i][at]);
            UNROLL for (int j = 0; j < COLUMNS; j++) acc[i][j] =
                FMA(value, column[j], acc[i][j]);
        }
    }
}

/* A product and where it has got to: units from m, tiles from t (ends at `last`), depth from d.
 */
struct product {
    __global const real *w, *bias;
    __global const S *x;
    __global S *y;
    real least;
    int rows, depth, last;
    int m, t, d;
};

/* Where in w the rows of A begin at depth d: w is packed, or [depth][rows], or [rows][depth].
 */
#define A_ROW (PACK || FORWARD ? 1 : p->depth)
#define A_FIRST                                                                                \
    (PACK ? 0 : FORWARD ? (size_t)p->d * p->rows + p->m : (size_t)p->m * p->depth + p->d)
#define A_NEXT (PACK ? ROWS : FORWARD ? p->rows : 1)

/* The sums begin with zero, the bias, or what the depth before left in y. */
INLINE void start(const struct product *p, __global S *const y[COLUMNS], const size_t row[ROWS],
                  V acc[ROWS][COLUMNS])
{
    if (p->d > 0) {
        UNROLL for (int i = 0; i < ROWS; i++) UNROLL for (int j = 0; j < COLUMNS; j++)
            acc[i][j] = LOAD(y[j] + row[i] * PARTS);
        return;
    }
    UNROLL for (int i = 0; i < ROWS; i++)
    {
        const V value = BIAS ? (V)(p->bias[p->m + row[i]]) : (V)(0);
        UNROLL for (int j = 0; j < COLUMNS; j++) acc[i][j] = value;
    }
}

INLINE void sum_block(const struct product *p, A_SPACE const real *w, int n)
{
    const V least = p->d + n == p->depth ? (V)(p->least) : (V)(-INFINITY);
    A_SPACE const real *a[ROWS];
    __global const S *x[COLUMNS];
    __global S *y[COLUMNS];
    size_t row[ROWS], a_row[ROWS], tile[COLUMNS];
    V acc[ROWS][COLUMNS];
    place(row, ROWS, p->rows - 1 - p->m, 1);
    place(a_row, ROWS, PACK ? ROWS : p->rows - 1 - p->m, A_ROW);
    place(tile, COLUMNS, p->last - 1 - p->t, 1);
    UNROLL for (int i = 0; i < ROWS; i++) a[i] = w + A_FIRST + a_row[i];
    UNROLL for (int j = 0; j < COLUMNS; j++)
    {
        x[j] = p->x + ((p->t + tile[j]) * p->depth + p->d) * PARTS + PART;
        y[j] = p->y + ((p->t + tile[j]) * p->rows + p->m) * PARTS + PART;
    }
    start(p, y, row, acc);
    multiply(a, A_NEXT, x, n, acc);
    UNROLL for (int i = 0; i < ROWS; i++) UNROLL for (int j = 0; j < COLUMNS; j++)
        STORE(y[j] + row[i] * PARTS, acc[i][j] < least ? least : acc[i][j]);
}

/* y of a dead tile: units m to m_end - 1. */
INLINE void clear(const struct product *p, int tile, int m, int m_end)
{
    for (; m < m_end; m++)
        STORE(p->y + ((size_t)tile * p->rows + m) * PARTS + PART, (V)0);
}

BODY void sum_blocks(__global const real *restrict w, __global const real *restrict bias,
                     __global const S *restrict x, __global S *restrict y,
                     __global const int *restrict lengths, int steps, real least, int rows,
                     int depth, int tiles, int chunk, __local real *packed, int group, int part)
{
    const int m0 = group * BLOCK, m_end = min(m0 + BLOCK, rows);
    const int first = part * chunk, last = min(first + chunk, tiles);
    struct product p = {w, bias, x, y, least, rows, depth, last, 0, 0, 0};
    for (; p.d < depth; p.d += DEPTH) {
        const int n = min(DEPTH, depth - p.d);
#if PACK
        pack(w + (size_t)p.d * rows, packed, m0, rows, n);
#endif
        for (int t = first; t < last;) {
            for (p.last = t; p.last < last && is_alive(lengths, steps, p.last);)
                p.last++;
            for (p.t = t; p.t < p.last; p.t += COLUMNS)
                for (p.m = m0; p.m < m_end; p.m += ROWS)
#if PACK
                    sum_block(&p, packed + (p.m - m0) * DEPTH, n);
#else
                    sum_block(&p, w, n);
#endif
            for (t = p.last; t < last && !is_alive(lengths, steps, t); t++)
                if (!FORWARD && p.d == 0)
                    clear(&p, t, m0, m_end);
        }
    }
}

/* packed: BLOCK * DEPTH reals where PACK */
KERNEL void dense_product(__global const real *restrict w, __global const real *restrict bias,
                          __global const S *restrict x, __global S *restrict y,
                          __global const int *restrict lengths, int steps, real least, int rows,
                          int depth, int tiles, int chunk, __local real *packed GROUP_ARGS)
{
    sum_blocks(w, bias, x, y, lengths, steps, least, rows, depth, tiles, chunk, packed,
               GROUP_ID(0), GROUP_ID(1));
}
