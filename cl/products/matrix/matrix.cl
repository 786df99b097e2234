/* Dense layers on batch tiles; the time steps of a sequence count as tiles of their own.
 *
 *   dense_product   y[t,m,l] = max(b[m] + sum_d A[m,d] x[t,d,l], least), one chain of FMAs,
 *                   ascending d; FORWARD 1: A[m,d] = w[d,m]; 0: A[m,d] = w[m,d] (data gradient)
 *   dense_gradient  z = dy, 0 where RELU and not y > 0; to the workspace: where RELU z as it
 *                   lies (for dense_product), then where `columns` z turned: [panel][n][WIDTH]
 *   dense_weight    dw[s,c,k] = sum_n x[c,n] z[k,n], one chain, ascending n in shard s
 *   dense_bias      db[s,k] = sum_n z[k,n], the same
 *
 * n counts the lanes of all tiles, a panel is WIDTH neighbouring units k; the workspace begins
 * with `kept` times 16 reals that are the caller's.
 * -D: ROWS x COLUMNS: values V a work-item sums at once; RELU (0, 1); for dense_product (which
 * is then the only kernel) instead BIAS, FORWARD (0, 1), PIECES of ROWS that a group does,
 * DEPTH it goes at a time (all, where halves are stored), PACK (0, 1): w through local memory.
 * No sum's order depends on any of them.
 * Group ids: dense_product: 0: PIECES * ROWS units, 1: `chunk` tiles; dense_gradient: 0:
 * panel, 1: tile; dense_weight: 0: panel, 1: `chunk` channels, 2: shard; dense_bias: 0: panel,
 * 1: shard.
 */
#include "lib/real.cl"

#define WIDTH (COLUMNS * LANES)
/* For loops that gain nothing from unrolling, which then takes long to compile. */
#define ROLLED _Pragma("unroll 1")

/* at[i] = stride * i for i up to `last`, and the last place again for those past it: the same
 * number is then stored several times, which is cheaper to run and to compile than leaving it
 * out. */
INLINE void place(size_t at[], int count, int last, int stride)
{
    at[0] = 0;
    UNROLL for (int i = 1; i < count; i++) at[i] = at[i - 1] + (i <= last ? stride : 0);
}

#ifdef FORWARD
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

BODY void sum_blocks(__global const real *restrict w, __global const real *restrict bias,
                     __global const S *restrict x, __global S *restrict y, real least, int rows,
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
        for (p.t = first; p.t < last; p.t += COLUMNS)
            for (p.m = m0; p.m < m_end; p.m += ROWS)
#if PACK
                sum_block(&p, packed + (p.m - m0) * DEPTH, n);
#else
                sum_block(&p, w, n);
#endif
    }
}

/* packed: BLOCK * DEPTH reals where PACK */
KERNEL void dense_product(__global const real *restrict w, __global const real *restrict bias,
                          __global const S *restrict x, __global S *restrict y, real least,
                          int rows, int depth, int tiles, int chunk, __local real *packed)
{
    sum_blocks(w, bias, x, y, least, rows, depth, tiles, chunk, packed, get_group_id(0),
               get_group_id(1));
}

#else

/* A value at any real's address. vstoren() of PoCL 3.1 stores two numbers at a time. */
struct loose {
    V v;
} __attribute__((packed));

/* Stores rows of sums, the first of them `left` before the last unit. Where some are past that
 * a short loop leaves them out. */
INLINE void store_rows(const V sums[][COLUMNS], __global real *to, const size_t at[], int rows,
                       int left)
{
    if (left >= (COLUMNS - 1) * LANES + VECTOR) {
        UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < COLUMNS; j++)(
            (__global struct loose *)(to + at[i] + j * LANES))
            ->v = sums[i][j];
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
        __global real *out = to + begin[i] + j * LANES;
        const real *from = (const real *)&rest[i][j];
        const int count = min(left - j * LANES, VECTOR);
        ROLLED for (int v = 0; v < count; v++) out[v] = from[v];
    }
#endif
}

/* Where the turned gradients begin in the workspace. */
INLINE size_t turned(int tiles, int units, int kept)
{
    return (size_t)kept * 16 + (RELU ? (size_t)tiles * units * LANES : 0);
}

#if VECTOR > 1
/* Turns a square of numbers: n[v][r] becomes n[r][v]. A row of the address (row, place) is
 * rotated by one bit each time that two halves are interleaved. */
INLINE void transpose(V n[VECTOR])
{
    UNROLL for (int done = 1; done < VECTOR; done *= 2)
    {
        V next[VECTOR];
        UNROLL for (int i = 0; i < VECTOR / 2; i++)
        {
            next[2 * i].even = n[i].lo;
            next[2 * i].odd = n[i + VECTOR / 2].lo;
            next[2 * i + 1].even = n[i].hi;
            next[2 * i + 1].odd = n[i + VECTOR / 2].hi;
        }
        UNROLL for (int i = 0; i < VECTOR; i++) n[i] = next[i];
    }
}
#else
#define transpose(n)
#endif

/* VECTOR neighbouring units of one tile, from `k` on, which `to` takes turned. */
INLINE void gradient_square(__global const S *dy, __global const S *y, __global S *masked,
                            __global real *to, int k, int units, int tile)
{
    V z[VECTOR];
    UNROLL for (int r = 0; r < VECTOR; r++)
    {
        const size_t at = ((size_t)tile * units + min(k + r, units - 1)) * PARTS + PART;
        z[r] = k + r < units ? LOAD(dy + at) : (V)(0);
        if (RELU && k + r < units) {
            z[r] = LOAD(y + at) > (V)(0) ? z[r] : (V)(0);
            STORE(masked + at, z[r]);
        }
    }
    if (!to)
        return;
    transpose(z);
    UNROLL for (int v = 0; v < VECTOR; v++) * (__global V *)(to + v * WIDTH) = z[v];
}

KERNEL void dense_gradient(__global const S *restrict dy, __global const S *restrict y,
                           __global real *restrict workspace, int units, int tiles, int columns,
                           int kept)
{
    const int panel = get_group_id(0), tile = get_group_id(1);
    __global real *to = workspace + turned(tiles, units, kept) +
                        (((size_t)panel * tiles + tile) * LANES + PART * VECTOR) * WIDTH;
    ROLLED for (int r = 0; r < WIDTH; r += VECTOR) gradient_square(
        dy, y, (__global S *)workspace, columns ? to + r : 0, panel * WIDTH + r, units, tile);
}

BODY void sum_weights(__global const stored *restrict x,
                      __global const real *restrict workspace, __global real *restrict dw,
                      int channels, int units, int tiles, int shard_tiles, int stride,
                      int chunk, int kept, int panel, int group, int shard)
{
    const int c_end = min((group + 1) * chunk, channels);
    const int k = panel * WIDTH + PART * VECTOR;
    const size_t t0 = (size_t)shard * shard_tiles;
    __global const real *z =
        workspace + turned(tiles, units, kept) + ((size_t)panel * tiles + t0) * LANES * WIDTH;
    for (int c = group * chunk; c < c_end; c += ROWS) {
        V acc[ROWS][COLUMNS];
        size_t at[ROWS];
        place(at, ROWS, channels - 1 - c, LANES);
        UNROLL for (int i = 0; i < ROWS; i++) UNROLL for (int j = 0; j < COLUMNS; j++)
            acc[i][j] = 0;
        for (int t = 0; t < shard_tiles; t++) {
            __global const stored *xs = x + ((t0 + t) * channels + c) * LANES;
            __global const V *zs = (__global const V *)(z + (size_t)t * LANES * WIDTH) + PART;
            ROLLED for (int l = 0; l < LANES; l++, zs += COLUMNS * PARTS)
            {
                V row[COLUMNS];
                UNROLL for (int j = 0; j < COLUMNS; j++) row[j] = zs[j * PARTS];
                UNROLL for (int i = 0; i < ROWS; i++)
                {
                    const V value = (V)(LOAD_LANE(xs + at[i] + l));
                    UNROLL for (int j = 0; j < COLUMNS; j++) acc[i][j] =
                        FMA(value, row[j], acc[i][j]);
                }
            }
        }
        place(at, ROWS, channels - 1 - c, units);
        store_rows(acc, dw + (size_t)shard * stride + (size_t)c * units + k, at, ROWS,
                   units - k);
    }
}

KERNEL void dense_weight(__global const stored *restrict x,
                         __global const real *restrict workspace, __global real *restrict dw,
                         int channels, int units, int tiles, int shard_tiles, int stride,
                         int chunk, int kept)
{
    sum_weights(x, workspace, dw, channels, units, tiles, shard_tiles, stride, chunk, kept,
                get_group_id(0), get_group_id(1), get_group_id(2));
}

KERNEL void dense_bias(__global const real *restrict workspace, __global real *restrict db,
                       int units, int tiles, int shard_tiles, int stride, int kept)
{
    const int panel = get_group_id(0), shard = get_group_id(1);
    const int k = panel * WIDTH + PART * VECTOR;
    __global const V *z =
        (__global const V *)(workspace + turned(tiles, units, kept)) +
        ((size_t)panel * tiles + (size_t)shard * shard_tiles) * LANES * COLUMNS * PARTS + PART;
    size_t at[1]; /* not an array of constants: Clover's compiler dies of that */
    at[0] = 0;
    V acc[1][COLUMNS];
    UNROLL for (int j = 0; j < COLUMNS; j++) acc[0][j] = 0;
    for (size_t n = 0; n < (size_t)shard_tiles * LANES; n++)
        UNROLL for (int j = 0; j < COLUMNS; j++) acc[0][j] += z[(n * COLUMNS + j) * PARTS];
    store_rows(acc, db + (size_t)shard * stride + k, at, 1, units - k);
}
#endif
