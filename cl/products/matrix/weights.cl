/* Gradients of dense layers on batch tiles; the time steps of a sequence count as tiles.
 *
 *   dense_gradient  z = dy, 0 where RELU and not y > 0; to the workspace: where RELU z as it
 *                   lies, then where `columns` z turned: [panel][n][WIDTH]
 *   dense_weight    dw[s,c,k] = sum_n x[c,n] z[k,n], one chain, ascending n in shard s
 *   dense_bias      db[s,k] = sum_n z[k,n], the same
 *
 * n counts the lanes of all tiles, a panel is WIDTH neighbouring units k; the workspace begins
 * with `kept` times 16 reals that are the caller's. On CPUs dense_weight takes z as it lies,
 * turns a slice of it at a time in local memory, and makes db too, if there is one; it leaves
 * out dead tiles (alive_tiles.cl).
 * -D: ROWS x COLUMNS: values V a work-item sums at once; RELU (0, 1). No sum's order depends on
 * them.
 * Group ids: dense_gradient: 0: panel, 1: tile; dense_weight: 0: `panels`, 1: `chunk` channels,
 * 2: shard; dense_bias: 0: panel, 1: shard.
 */
#include "lib/real.cl"
#if VECTOR > 1
#include "lib/transpose.cl"
#endif
#include "products/matrix/place.cl"

#define WIDTH (COLUMNS * LANES)
#include "products/matrix/fetch.cl"
#include "products/matrix/rows.cl"
#include "products/matrix/alive_tiles.cl"

/* Where the turned gradients begin in the workspace. */
INLINE size_t turned(int tiles, int units, int kept)
{
    return (size_t)kept * 16 + (RELU ? (size_t)tiles * units * LANES : 0);
}

INLINE size_t unit_at(int k, int units, int tile)
{
    return ((size_t)tile * units + min(k, units - 1)) * PARTS + PART;
}

KERNEL void dense_gradient(__global const S *restrict dy, __global const S *restrict y,
                           __global real *restrict workspace, int units, int tiles, int columns,
                           int kept)
{
    const int panel = get_group_id(0), tile = get_group_id(1);
    __global V *to = (__global V *)(workspace + turned(tiles, units, kept) +
                                    ((size_t)panel * tiles + tile) * LANES * WIDTH) +
                     PART * WIDTH;
    for (int k = panel * WIDTH; k < (panel + 1) * WIDTH; k++, to++) {
        const size_t at = unit_at(k, units, tile);
        V z = k < units ? LOAD(dy + at) : (V)(0);
        if (RELU && k < units) {
            z = LOAD(y + at) > (V)(0) ? z : (V)(0);
            STORE((__global S *)workspace + at, z);
        }
        if (VECTOR == 1 && columns)
            *to = z;
    }
}

/* Tiles that are summed before other sums have their turn: those of which z, and x of a few
 * channels, stay in a CPU's first-level cache. */
#define SLICE_REALS (16384 / REAL_BYTES)
#define SLICE (SLICE_REALS > LANES * WIDTH ? SLICE_REALS / (LANES * WIDTH) : 1)

#if VECTOR > 1
#define Z_SPACE __local
#else
#define Z_SPACE __global
#endif

/* The sums of a work-item: ROWS channels, the last of them number `last` and not more, and the
 * `left` units of a panel from its own first one on, over `tiles` tiles. */
struct sums {
    __global const stored *x;
    Z_SPACE const real *z;
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
        move_rows(acc, s.dw, row, ROWS, s.left, 0);
    for (int t = 0; t < s.tiles; t++) {
        __global const stored *xs = s.x + (size_t)t * s.channels * LANES;
        Z_SPACE const V *zs = (Z_SPACE const V *)(s.z + (size_t)t * LANES * WIDTH) + PART;
        fetch_channels(xs + 2 * (size_t)s.channels * LANES);
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
    move_rows(acc, s.dw, row, ROWS, s.left, 1);
}

/* All channels from `first` to `end` of one panel; `next`: what is turned then. */
INLINE void sum_channels(struct sums s, int first, int end, int go_on, __global const S *next)
{
    __global const stored *x = s.x;
    __global real *dw = s.dw;
    const int blocks = (end - first + ROWS - 1) / ROWS;
    for (int block = 0, c = first; c < end; block++, c += ROWS) {
        fetch_panel(next, s.units, s.tiles, block, blocks);
        s.x = x + (size_t)c * LANES;
        s.dw = dw + (size_t)c * s.units;
        s.last = s.channels - 1 - c;
        sum_tiles(s, go_on);
    }
}

/* The sums of z alone, of n lanes of one panel. */
INLINE void sum_bias(Z_SPACE const real *turned, __global real *db, size_t n, int left,
                     int go_on)
{
    Z_SPACE const V *z = (Z_SPACE const V *)turned + PART;
    size_t at[1]; /* not an array of constants: Clover's compiler dies of that */
    at[0] = 0;
    V acc[1][COLUMNS];
    UNROLL for (int j = 0; j < COLUMNS; j++) acc[0][j] = 0;
    if (go_on)
        move_rows(acc, db, at, 1, left, 0);
    for (; n > 0; n--, z += COLUMNS * PARTS)
        UNROLL for (int j = 0; j < COLUMNS; j++) acc[0][j] += z[j * PARTS];
    move_rows(acc, db, at, 1, left, 1);
}

struct weights {
    int channels, units, tiles, shard_tiles, stride, chunk, panels, kept;
    int steps;    /* of lengths */
    int group[3]; /* ids */
};

#if VECTOR > 1
/* Of `tiles` tiles, from one of them on, and the units of a panel from k on. */
INLINE void turn_slice(__global const S *z, __local real *to, int k, int units, int tile,
                       int tiles)
{
    ROLLED for (int t = tile; t < tile + tiles; t++, to += LANES * WIDTH)
        ROLLED for (int j = 0; j < COLUMNS; j++)
    {
        V square[VECTOR];
        UNROLL for (int v = 0; v < VECTOR; v++)
        {
            const int of = k + j * VECTOR + v;
            square[v] = of < units ? LOAD(z + unit_at(of, units, t)) : (V)(0);
        }
        transpose(square);
        UNROLL for (int v = 0; v < VECTOR; v++) ((__local V *)to)[v * COLUMNS + j] = square[v];
    }
}

/* The slice of x is read again for each panel, from the second-level cache. Where all tiles of
 * a shard are dead, a slice of no tiles makes zeros. */
BODY void sum_weights(__global const stored *restrict x, __global const S *restrict z,
                      __global real *restrict dw, __global real *restrict db,
                      __global const int *restrict lengths, struct weights w,
                      __local real *slice)
{
    const int first = w.group[1] * w.chunk, end = min(first + w.chunk, w.channels);
    const int p0 = w.group[0] * w.panels, shard = w.group[2];
    const int p_end = min(p0 + w.panels, (w.units + WIDTH - 1) / WIDTH);
    const int t_end = (shard + 1) * w.shard_tiles;
    int t = shard * w.shard_tiles, go_on = 0;
    do {
        int tiles = 0;
        while (t < t_end && !is_alive(lengths, w.steps, t))
            t++;
        while (tiles < SLICE && t + tiles < t_end && is_alive(lengths, w.steps, t + tiles))
            tiles++;
        for (int p = p0; p < p_end && (tiles > 0 || !go_on); p++) {
            const int k = p * WIDTH;
            const struct sums s = {x + (size_t)t * w.channels * LANES,
                                   slice,
                                   dw + (size_t)shard * w.stride + k,
                                   w.channels,
                                   w.units,
                                   0,
                                   w.units - k,
                                   tiles};
            turn_slice(z, slice, k, w.units, t, tiles);
            sum_channels(s, first, end, go_on,
                         p + 1 < p_end ? z + unit_at(k + WIDTH, w.units, t) : 0);
            if (db && first == 0)
                sum_bias(slice, db + (size_t)shard * w.stride + k, tiles * LANES, w.units - k,
                         go_on);
        }
        t += tiles;
        go_on = 1;
    } while (t < t_end);
}

/* slice: SLICE * LANES * WIDTH reals */
KERNEL void dense_weight(__global const stored *restrict x, __global const S *restrict z,
                         __global real *restrict dw, __global real *restrict db,
                         __global const int *restrict lengths, int steps, int channels,
                         int units, int shard_tiles, int stride, int chunk, int panels,
                         __local real *slice)
{
    const struct weights w = {
        channels, units,  0, shard_tiles, stride,
        chunk,    panels, 0, steps,
        {get_group_id(0), get_group_id(1), get_group_id(2)}};
    sum_weights(x, z, dw, db, lengths, w, slice);
}
#else
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
                sum_channels(s, first, end, t > 0, 0);
        }
}

KERNEL void dense_weight(__global const stored *restrict x,
                         __global const real *restrict workspace, __global real *restrict dw,
                         int channels, int units, int tiles, int shard_tiles, int stride,
                         int chunk, int panels, int kept)
{
    const struct weights w = {
        channels, units,  tiles, shard_tiles, stride,
        chunk,    panels, kept,  0,
        {get_group_id(0), get_group_id(1), get_group_id(2)}};
    sum_weights(x, workspace, dw, w);
}

KERNEL void dense_bias(__global const real *restrict workspace, __global real *restrict db,
                       int units, int tiles, int shard_tiles, int stride, int kept)
{
    const int panel = get_group_id(0), shard = get_group_id(1);
    const int k = panel * WIDTH + PART * VECTOR;
    const size_t tile = (size_t)panel * tiles + (size_t)shard * shard_tiles;
    sum_bias(workspace + turned(tiles, units, kept) + tile * LANES * WIDTH,
             db + (size_t)shard * stride + k, (size_t)shard_tiles * LANES, units - k, 0);
}
#endif
