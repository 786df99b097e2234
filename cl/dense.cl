/* Dense layers on batch tiles; the steps of a sequence count as tiles of their own.
 *
 *   dense_product   y[t,m,l] = act(b[m] + sum_d A[m,d] x[t,d,l]), one chain of FMAs, ascending
 * d FORWARD 1: A[m,d] = w[d,m]; 0: A[m,d] = w[m,d], no bias (data gradient) dense_gradient  z =
 * dy, 0 where RELU and not y > 0; to the workspace: where RELU z as it lies (for
 * dense_product), then where `columns` z turned: [panel][n][WIDTH] dense_weight    dw[s,c,k] =
 * sum_n x[c,n] z[k,n], one chain, ascending n in shard s dense_bias      db[s,k] = sum_n
 * z[k,n], the same
 *
 * n counts the lanes of all tiles, a panel is WIDTH neighbouring units k.
 * -D: RELU, BIAS (0, 1); ROWS x COLS: values V a work-item sums at once; for dense_product
 * (which is then the only kernel) FORWARD (0, 1), PIECES of ROWS that a group does, DEPTH it
 * goes at a time, PACK (0, 1): w through local memory. No sum's order depends on any of them.
 * Group ids: dense_product: 0: PIECES * ROWS units, 1: `step` tiles; dense_gradient: 0: panel,
 * 1: tile; dense_weight: 0: panel, 1: `step` channels, 2: shard; dense_bias: 0: panel, 1:
 * shard.
 */
#include "lib/real.cl"

#define WIDTH (COLS * LANES)

#if VECTOR == 1
#define LOAD(p) (*(p))
#define STORE(v, p) (*(p) = (v))
#else
#define LOAD(p) PASTE(vload, VECTOR)(0, p)
#define STORE(v, p) PASTE(vstore, VECTOR)(v, 0, p)
#endif

#ifdef FORWARD
#define BLOCK (PIECES * ROWS)

#if PACK
#define A_SPACE __local

/* packed[piece][d][ROWS] = w[d][m]; rows past the last repeat it and are never stored. */
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
                for (int i = 0; i < ROWS; i++)
                    to[i] = from[min(m + i, rows - 1)];
        }
    }
}
#else
#define A_SPACE __global
#endif

/* acc += A x over n steps of d; a[i] steps by `next`. */
INLINE void multiply(A_SPACE const real *const a[ROWS], int next,
                     __global const V *const x[COLS], int n, V acc[ROWS][COLS])
{
    int at = 0;
    for (int d = 0; d < n; d++, at += next) {
        V column[COLS];
        UNROLL for (int j = 0; j < COLS; j++) column[j] = x[j][d * PARTS];
        UNROLL for (int i = 0; i < ROWS; i++)
        {
            const V value = (V)(a[i][at]);
            UNROLL for (int j = 0; j < COLS; j++) acc[i][j] = FMA(value, column[j], acc[i][j]);
        }
    }
}

/* A product and where it has got to: units from m, tiles from t (ends at `last`), depth from d.
 */
struct product {
    __global const real *w, *bias;
    __global const V *x;
    __global V *y;
    int rows, depth, last;
    int m, t, d;
};

/* Where row m + i of A begins, at depth d; the last row repeats past its end. */
INLINE A_SPACE const real *row_of(const struct product *p, A_SPACE const real *packed, int i)
{
#if PACK
    return packed + i;
#elif FORWARD
    return packed + (size_t)p->d * p->rows + min(p->m + i, p->rows - 1);
#else
    return packed + (size_t)min(p->m + i, p->rows - 1) * p->depth + p->d;
#endif
}

/* The sums begin with zero, the bias, or what the depth before left in y. */
INLINE void start(const struct product *p, V acc[ROWS][COLS])
{
    UNROLL for (int i = 0; i < ROWS; i++) UNROLL for (int j = 0; j < COLS; j++)
    {
        const int m = min(p->m + i, p->rows - 1), t = min(p->t + j, p->last - 1);
        acc[i][j] = p->d > 0          ? p->y[((size_t)t * p->rows + m) * PARTS + PART]
                    : FORWARD && BIAS ? (V)(p->bias[m])
                                      : (V)(0);
    }
}

INLINE void finish(const struct product *p, bool is_last, V acc[ROWS][COLS])
{
    UNROLL for (int j = 0; j < COLS; j++) UNROLL for (int i = 0; i < ROWS; i++)
    {
        V v = acc[i][j];
        if (RELU && is_last)
            v = v < (V)(0) ? (V)(0) : v;
        if (p->t + j < p->last && p->m + i < p->rows)
            p->y[((size_t)(p->t + j) * p->rows + p->m + i) * PARTS + PART] = v;
    }
}

INLINE void sum_block(const struct product *p, A_SPACE const real *packed, int n)
{
    A_SPACE const real *a[ROWS];
    __global const V *x[COLS];
    V acc[ROWS][COLS];
    UNROLL for (int i = 0; i < ROWS; i++) a[i] = row_of(p, packed, i);
    UNROLL for (int j = 0; j < COLS; j++) x[j] =
        p->x + ((size_t)min(p->t + j, p->last - 1) * p->depth + p->d) * PARTS + PART;
    start(p, acc);
    multiply(a, PACK ? ROWS : FORWARD ? p->rows : 1, x, n, acc);
    finish(p, p->d + n == p->depth, acc);
}

KERNEL void dense_product(__global const real *restrict w, __global const real *restrict bias,
                          __global const V *restrict x, __global V *restrict y, int rows,
                          int depth, int tiles, int step)
{
    const int m0 = get_group_id(0) * BLOCK, m_end = min(m0 + BLOCK, rows);
    const int first = get_group_id(1) * step, last = min(first + step, tiles);
    struct product p = {w, bias, x, y, rows, depth, last, 0, 0, 0};
#if PACK
    __local real packed[BLOCK * DEPTH];
#endif
    for (; p.d < depth; p.d += DEPTH) {
        const int n = min(DEPTH, depth - p.d);
#if PACK
        pack(w + (size_t)p.d * rows, packed, m0, rows, n);
#endif
        for (p.t = first; p.t < last; p.t += COLS)
            for (p.m = m0; p.m < m_end; p.m += ROWS)
#if PACK
                sum_block(&p, packed + (p.m - m0) * DEPTH, n);
#else
                sum_block(&p, w, n);
#endif
    }
}

#else

/* Stores the first `count` values of v. */
INLINE void store_some(V v, __global real *to, int count)
{
    if (count >= VECTOR) {
        STORE(v, to);
        return;
    }
    real values[VECTOR];
    STORE(v, values);
    for (int i = 0; i < count; i++)
        to[i] = values[i];
}

/* Where the turned gradients begin in the workspace. */
INLINE size_t turned(int tiles, int units)
{
    return RELU ? (size_t)tiles * units * LANES : 0;
}

KERNEL void dense_gradient(__global const V *restrict dy, __global const V *restrict y,
                           __global real *restrict workspace, int units, int tiles, int columns)
{
    const int panel = get_group_id(0), tile = get_group_id(1);
    __global real *to = workspace + turned(tiles, units) +
                        (((size_t)panel * tiles + tile) * LANES + PART * VECTOR) * WIDTH;
    for (int r = 0; r < WIDTH; r++) {
        const int k = panel * WIDTH + r;
        V z = (V)(0);
        if (k < units) {
            const size_t at = ((size_t)tile * units + k) * PARTS + PART;
            z = dy[at];
            if (RELU) {
                z = y[at] > (V)(0) ? z : (V)(0);
                ((__global V *)workspace)[at] = z;
            }
        }
        real values[VECTOR];
        STORE(z, values);
        for (int v = 0; columns && v < VECTOR; v++)
            to[v * WIDTH + r] = values[v];
    }
}

KERNEL void dense_weight(__global const real *restrict x,
                         __global const real *restrict workspace, __global real *restrict dw,
                         int channels, int units, int tiles, int shard_tiles, int stride,
                         int step)
{
    const int panel = get_group_id(0), shard = get_group_id(2);
    const int c_end = min(((int)get_group_id(1) + 1) * step, channels);
    const size_t t0 = (size_t)shard * shard_tiles;
    __global const real *z =
        workspace + turned(tiles, units) + ((size_t)panel * tiles + t0) * LANES * WIDTH;
    for (int c = get_group_id(1) * step; c < c_end; c += ROWS) {
        V acc[ROWS][COLS];
        UNROLL for (int i = 0; i < ROWS; i++) UNROLL for (int j = 0; j < COLS; j++) acc[i][j] =
            0;
        for (int t = 0; t < shard_tiles; t++) {
            __global const real *xs[ROWS];
            __global const V *zs = (__global const V *)(z + (size_t)t * LANES * WIDTH) + PART;
            UNROLL for (int i = 0; i < ROWS; i++) xs[i] =
                x + ((t0 + t) * channels + min(c + i, channels - 1)) * LANES;
            for (int l = 0; l < LANES; l++, zs += COLS * PARTS) {
                V row[COLS];
                UNROLL for (int j = 0; j < COLS; j++) row[j] = zs[j * PARTS];
                UNROLL for (int i = 0; i < ROWS; i++)
                {
                    const V value = (V)(xs[i][l]);
                    UNROLL for (int j = 0; j < COLS; j++) acc[i][j] =
                        FMA(value, row[j], acc[i][j]);
                }
            }
        }
        UNROLL for (int i = 0; i < ROWS; i++) UNROLL for (int j = 0; j < COLS; j++)
        {
            const int k = panel * WIDTH + j * LANES + PART * VECTOR;
            if (c + i < channels && k < units)
                store_some(acc[i][j], dw + (size_t)shard * stride + (size_t)(c + i) * units + k,
                           units - k);
        }
    }
}

KERNEL void dense_bias(__global const real *restrict workspace, __global real *restrict db,
                       int units, int tiles, int shard_tiles, int stride)
{
    const int panel = get_group_id(0), shard = get_group_id(1);
    __global const V *z =
        (__global const V *)(workspace + turned(tiles, units)) +
        ((size_t)panel * tiles + (size_t)shard * shard_tiles) * LANES * COLS * PARTS + PART;
    V acc[COLS];
    UNROLL for (int j = 0; j < COLS; j++) acc[j] = 0;
    for (size_t n = 0; n < (size_t)shard_tiles * LANES; n++)
        UNROLL for (int j = 0; j < COLS; j++) acc[j] += z[(n * COLS + j) * PARTS];
    UNROLL for (int j = 0; j < COLS; j++)
    {
        const int k = panel * WIDTH + j * LANES + PART * VECTOR;
        if (k < units)
            store_some(acc[j], db + (size_t)shard * stride + k, units - k);
    }
}
#endif
