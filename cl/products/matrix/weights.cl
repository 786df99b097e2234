/* Gradients of dense layers on batch tiles; the time steps of a sequence count as tiles.
 *
 *   dense_gradient  z = dy, 0 where RELU and not y > 0; to the workspace: where RELU z as it
 *                   lies (for dense_product), then where `columns` z turned: [panel][n][WIDTH]
 *   dense_weight    dw[s,c,k] = sum_n x[c,n] z[k,n], one chain, ascending n in shard s
 *   dense_bias      db[s,k] = sum_n z[k,n], the same
 *
 * n counts the lanes of all tiles, a panel is WIDTH neighbouring units k; the workspace begins
 * with `kept` times 16 reals that are the caller's.
 * -D: ROWS x COLUMNS: values V a work-item sums at once; RELU (0, 1). No sum's order depends on
 * them.
 * Group ids: dense_gradient: 0: panel, 1: tile; dense_weight: 0: `panels`, 1: `chunk` channels,
 * 2: shard; dense_bias: 0: panel, 1: shard.
 */
#include "lib/real.cl"
#if VECTOR > 1
#include "lib/transpose.cl"
#else
#define transpose(n)
#endif
#include "products/matrix/place.cl"

#define WIDTH (COLUMNS * LANES)

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

/* Tiles that are summed before other sums have their turn: those of which z, and x of a few
 * channels, stay in a CPU's first-level cache. */
#define SLICE_REALS (16384 / REAL_BYTES)
#define SLICE (SLICE_REALS > LANES * WIDTH ? SLICE_REALS / (LANES * WIDTH) : 1)

/* The sums of a work-item: ROWS channels, the last of them number `last` and not more, and the
 * `left` units of a panel from its own first one on, over `tiles` tiles. */
struct sums {
    __global const stored *x;
    __global const real *z;
    __global real *dw;
    int channels, units, last, left, tiles;
};

/* go_on: from what dw holds; else from 0. */
INLINE void sum_tiles(const struct sums s, int go_on)
{
    V acc[ROWS][COLUMNS];
    size_t x_row[ROWS], row[ROWS];
    place(x_row, ROWS, s.last, LANES);
    place(row, ROWS, s.last, s.units);
    UNROLL for (int i = 0; i < ROWS; i++) UNROLL for (int j = 0; j < COLUMNS; j++) acc[i][j] =
        0;
    if (go_on)
        UNROLL for (int i = 0; i < ROWS; i++) UNROLL for (int j = 0; j < COLUMNS; j++)
            acc[i][j] = ((__global const struct loose *)(s.dw + row[i] + j * LANES))->v;
    for (int t = 0; t < s.tiles; t++) {
        __global const stored *xs = s.x + (size_t)t * s.channels * LANES;
        __global const V *zs = (__global const V *)(s.z + (size_t)t * LANES * WIDTH) + PART;
        ROLLED for (int l = 0; l < LANES; l++, zs += COLUMNS * PARTS)
        {
            V column[COLUMNS];
            UNROLL for (int j = 0; j < COLUMNS; j++) column[j] = zs[j * PARTS];
            UNROLL for (int i = 0; i < ROWS; i++)
            {
                const V value = (V)(LOAD_LANE(xs + x_row[i] + l));
                UNROLL for (int j = 0; j < COLUMNS; j++) acc[i][j] =
                    FMA(value, column[j], acc[i][j]);
            }
        }
    }
    store_rows(acc, s.dw, row, ROWS, s.left);
}

/* All channels from `first` to `end` of one panel. */
INLINE void sum_channels(struct sums s, int first, int end, int go_on)
{
    __global const stored *x = s.x;
    __global real *dw = s.dw;
    for (int c = first; c < end; c += ROWS) {
        s.x = x + (size_t)c * LANES;
        s.dw = dw + (size_t)c * s.units;
        s.last = s.channels - 1 - c;
        sum_tiles(s, go_on);
    }
}

struct weights {
    int channels, units, tiles, shard_tiles, stride, chunk, panels, kept;
    int group[3]; /* ids */
};

/* The slice of x is read again for each panel, from the second-level cache. The last panel may
 * have units left over, whose sums do not go on: all its tiles are one slice. */
BODY void sum_weights(__global const stored *restrict x,
                      __global const real *restrict workspace, __global real *restrict dw,
                      struct weights w)
{
    const int first = w.group[1] * w.chunk, end = min(first + w.chunk, w.channels);
    const int p0 = w.group[0] * w.panels, shard = w.group[2];
    const int t0 = shard * w.shard_tiles;
    const int p_end = min(p0 + w.panels, (w.units + WIDTH - 1) / WIDTH);
    for (int t = 0; t < w.shard_tiles; t += SLICE)
        for (int p = p0; p < p_end; p++) {
            const int k = p * WIDTH + PART * VECTOR, is_full = (p + 1) * WIDTH <= w.units;
            const size_t tile = (size_t)p * w.tiles + t0 + t;
            struct sums s = {x + (size_t)(t0 + t) * w.channels * LANES,
                             workspace + turned(w.tiles, w.units, w.kept) +
                                 tile * LANES * WIDTH,
                             dw + (size_t)shard * w.stride + k,
                             w.channels,
                             w.units,
                             0,
                             w.units - k,
                             is_full ? min(SLICE, w.shard_tiles - t) : w.shard_tiles};
            if (t == 0 || is_full)
                sum_channels(s, first, end, t > 0);
        }
}

KERNEL void dense_weight(__global const stored *restrict x,
                         __global const real *restrict workspace, __global real *restrict dw,
                         int channels, int units, int tiles, int shard_tiles, int stride,
                         int chunk, int panels, int kept)
{
    const struct weights w = {
        channels,    units,  tiles,
        shard_tiles, stride, chunk,
        panels,      kept,   {get_group_id(0), get_group_id(1), get_group_id(2)}};
    sum_weights(x, workspace, dw, w);
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
