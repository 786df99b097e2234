/* Depthwise convolution: every channel has a filter of its own. Memory sets the pace, so every
 * input is read once.
 *
 *   conv2d_depthwise   DATA 0: y[c, i, j] = bias[c] + sum over r, s of w[r, s, c] *
 *                          x[c, i*STRIDE_Y + r*GAP_Y - PAD_Y, j*STRIDE_X + s*GAP_X - PAD_X],
 *                          then what finish.cl says; taps outside the image are left out
 *                      DATA 1: y = dx and x = dz of that: dx[c, i, j] = sum over the r, s for
 *                          which (i + PAD_Y - r*GAP_Y) / STRIDE_Y and its like are whole
 *                      one chain of products in ascending order of r and s
 *   conv2d_depthwise_weights   out[part][r, s, c] = sum over the part's tiles, i, j and lanes
 *                      of dz[c, i, j] * x[c, i*STRIDE_Y + ...]: a lane's sum in this order,
 *                      then the lanes as a tree
 *
 *   x: [tiles][channels][IN_H][IN_W]; y: [tiles][channels][OUT_H][OUT_W] (weights: dz)
 *
 * A block is COLUMNS pixels, a multiple of STRIDE_X. The compiler leaves out the taps outside
 * of the first and the last block. STREAM: outputs are written past the caches. GATED: they
 * are 0 where `gate`, of y's layout, is not above 0; ADDS: `gate` is what is added.
 *
 * Group ids: 0: run of rows_each rows, 1: channel, 2: tile; weights: 0: run of channels_each
 * channels, 1: part.
 * -D: TAPS_Y TAPS_X STRIDE_Y STRIDE_X GAP_Y GAP_X PAD_Y PAD_X IN_H IN_W OUT_H OUT_W DATA
 *     COLUMNS STREAM GATED, those of finish.cl
 */
#include "lib/hints.cl"
#include "lib/real.cl"
#include "lib/put.cl"
#include "lib/sum.cl"
#include "lib/finish.cl"

#define BLOCKS ((OUT_W + COLUMNS - 1) / COLUMNS)

#if DATA
/* Rounded down, for numbers that are not below -1024 strides. */
#define FLOOR(t) (((t) + 1024 * STRIDE_X) / STRIDE_X - 1024)
#define REACH(j, s) ((j) + PAD_X - (s) * GAP_X)
#define IS_WHOLE(j, s) ((REACH(j, s) + 1024 * STRIDE_X) % STRIDE_X == 0)
#define COLUMN(b, j, s) ((b) * (COLUMNS / STRIDE_X) + FLOOR(REACH(j, s)))
#else
#define IS_WHOLE(j, s) true
#define COLUMN(b, j, s) (((b) * COLUMNS + (j)) * STRIDE_X + (s) * GAP_X - PAD_X)
#endif

/* The row of x that tap r of output row i reads, or -1. */
INLINE int row_of(int i, int r)
{
#if DATA
    const int t = i + PAD_Y - r * GAP_Y;
    return t >= 0 && t % STRIDE_Y == 0 && t / STRIDE_Y < IN_H ? t / STRIDE_Y : -1;
#else
    const int row = i * STRIDE_Y + r * GAP_Y - PAD_Y;
    return row >= 0 && row < IN_H ? row : -1;
#endif
}

/* Whether a column of a block, all taps of which are to be in the image, may not be. */
INLINE bool is_edge(int b)
{
    return COLUMN(b, 0, DATA ? TAPS_X - 1 : 0) < 0 ||
           COLUMN(b, COLUMNS - 1, DATA ? 0 : TAPS_X - 1) >= IN_W;
}

/* Where a pass reads a pixel for each output, those of a later block come with this one; planes
 * follow each other, so they may be the next one's. PIXELS: that a line of a cache holds;
 * LEAD: of x, how far the last row of taps is ahead of the output. */
#define FETCHES (STRIDE_Y * STRIDE_X == 1)
#define PIXELS ((int)sizeof(S) * PARTS < 64 ? 64 / ((int)sizeof(S) * PARTS) : 1)
#define LEAD ((DATA ? PAD_Y : (TAPS_Y - 1) * GAP_Y - PAD_Y) * IN_W)

INLINE void fetch_block(__global const S *from)
{
    UNROLL for (int j = 0; j < COLUMNS; j += PIXELS)
        PREFETCH(from + j * PARTS);
}

INLINE void add_row(V a[COLUMNS], __global const S *x, __global const real *w, int channels,
                    int b, bool edge)
{
    UNROLL for (int s = 0; s < TAPS_X; s++) {
        const V f = w[s * channels];
        UNROLL for (int j = 0; j < COLUMNS; j++) {
            const int column = COLUMN(b, j, s);
            if (IS_WHOLE(j, s) && (!edge || (column >= 0 && column < IN_W)))
                a[j] = FMA(f, LOAD(x + column * PARTS), a[j]);
        }
    }
}

/* w, norm: of the channel; x, y, gate: its planes. */
INLINE void block(__global const S *x, __global const real *w, V bias, __global S *y,
                  __global const S *gate, __global const real *norm, int channels, int i,
                  int b, bool edge)
{
    V a[COLUMNS];
    const int to = (i * OUT_W + b * COLUMNS) * PARTS;
    if (FETCHES)
        fetch_block(x + (i * IN_W + b * COLUMNS + LEAD + 64) * PARTS);
    if (READS_GATE)
        fetch_block(gate + to + 64 * PARTS);
    UNROLL for (int j = 0; j < COLUMNS; j++)
        a[j] = bias;
    UNROLL for (int r = 0; r < TAPS_Y; r++) {
        const int row = row_of(i, r);
        if (row >= 0)
            add_row(a, x + row * (IN_W * PARTS), w + r * TAPS_X * channels, channels, b, edge);
    }
    UNROLL for (int j = 0; j < COLUMNS; j++)
        if (!edge || b * COLUMNS + j < OUT_W)
            PUT(y + to + j * PARTS,
                GATE(gate + to + j * PARTS, finish_norm(a[j], norm, gate + to + j * PARTS)));
}

BODY void convolve_group(__global const S *restrict x, int x_first,
                         __global const real *restrict w, __global const real *restrict bias,
                         __global S *restrict y, __global const S *restrict gate,
                         __global const real *restrict norms, int rows_each,
                         int group_0, int c, int channels, int tile)
{
    const size_t image = (size_t)tile * channels + c;
    const int i1 = min((group_0 + 1) * rows_each, OUT_H);
    const V first = bias ? bias[c] : (real)0;
    x += x_first / VECTOR + image * (IN_H * IN_W * PARTS) + PART;
    y += image * (OUT_H * OUT_W * PARTS) + PART;
    gate = READS_GATE ? gate + image * (OUT_H * OUT_W * PARTS) + PART : 0;
    norms = NORMS ? norms + 3 * c : 0;
    w += c;
    for (int i = group_0 * rows_each; i < i1; i++) {
        block(x, w, first, y, gate, norms, channels, i, 0, true);
        for (int b = 1; b < BLOCKS - 1; b++) {
            if (is_edge(b))
                block(x, w, first, y, gate, norms, channels, i, b, true);
            else
                block(x, w, first, y, gate, norms, channels, i, b, false);
        }
        if (BLOCKS > 1)
            block(x, w, first, y, gate, norms, channels, i, BLOCKS - 1, true);
    }
}

KERNEL void conv2d_depthwise(__global const S *restrict x, int x_first,
                             __global const real *restrict w,
                             __global const real *restrict bias, __global S *restrict y,
                             __global const S *restrict gate,
                             __global const real *restrict norms, int rows_each GROUP_ARGS)
{
    convolve_group(x, x_first, w, bias, y, gate, norms, rows_each, GROUP_ID(0), GROUP_ID(1),
                   GROUP_COUNT(1), GROUP_ID(2));
}

#if !DATA
/* On a CPU the sums of few taps are all in registers: those of a row inside the image are made
 * at once, as each waits for its last product. */
#define AT_ONCE (VECTOR > 1 && TAPS_Y * TAPS_X <= 12)

/* Taps r0 to r1 - 1 of block b of output row i. x, dz: the channel's planes. */
INLINE void weigh_block(V a[TAPS_Y][TAPS_X], __global const S *x, __global const S *dz, int i,
                        int r0, int r1, int b, bool edge)
{
    dz += (i * OUT_W + b * COLUMNS) * PARTS;
    if (FETCHES && r0 <= TAPS_Y / 2 && TAPS_Y / 2 < r1) {
        fetch_block(x + (i * IN_W + b * COLUMNS + LEAD + 48) * PARTS);
        fetch_block(dz + 48 * PARTS);
    }
    x += (i * STRIDE_Y - PAD_Y) * (IN_W * PARTS);
    UNROLL for (int j = 0; j < COLUMNS; j++)
        if (!edge || b * COLUMNS + j < OUT_W) {
            const V d = LOAD(dz + j * PARTS);
            UNROLL for (int r = r0; r < r1; r++)
                UNROLL for (int s = 0; s < TAPS_X; s++) {
                    const int column = COLUMN(b, j, s), at = r * GAP_Y * IN_W + column;
                    if (!edge || (column >= 0 && column < IN_W))
                        a[r][s] = FMA(d, LOAD(x + at * PARTS), a[r][s]);
                }
        }
}

INLINE void weigh_row(V a[TAPS_Y][TAPS_X], __global const S *x, __global const S *dz, int i,
                      int r0, int r1)
{
    weigh_block(a, x, dz, i, r0, r1, 0, true);
    for (int b = 1; b < BLOCKS - 1; b++) {
        if (is_edge(b))
            weigh_block(a, x, dz, i, r0, r1, b, true);
        else
            weigh_block(a, x, dz, i, r0, r1, b, false);
    }
    if (BLOCKS > 1)
        weigh_block(a, x, dz, i, r0, r1, BLOCKS - 1, true);
}

BODY void weigh_group(__global const S *restrict x, __global const S *restrict dz, int dz_first,
                      __global real *restrict out, int out_first, int out_stride,
                      int shard_tiles, int part_tiles, __local V *scratch, int c, int channels,
                      int part)
{
    const int parts = (shard_tiles + part_tiles - 1) / part_tiles, shard = part / parts;
    const int t0 = shard * shard_tiles + part % parts * part_tiles;
    const int t1 = min(t0 + part_tiles, (shard + 1) * shard_tiles);
    V a[TAPS_Y][TAPS_X];
    UNROLL for (int n = 0; n < TAPS_Y * TAPS_X; n++)
        a[n / TAPS_X][n % TAPS_X] = (V)0;
    for (int t = t0; t < t1; t++) {
        const size_t image = (size_t)t * channels + c;
        __global const S *from = x + image * (IN_H * IN_W * PARTS) + PART;
        __global const S *d = dz + dz_first / VECTOR + image * (OUT_H * OUT_W * PARTS) + PART;
        for (int i = 0; i < OUT_H; i++) {
            if (AT_ONCE && row_of(i, 0) >= 0 && row_of(i, TAPS_Y - 1) >= 0) {
                weigh_row(a, from, d, i, 0, TAPS_Y);
                continue;
            }
            UNROLL for (int r = 0; r < TAPS_Y; r++)
                if (row_of(i, r) >= 0)
                    weigh_row(a, from, d, i, r, r + 1);
        }
    }
    out += out_first + (size_t)part * out_stride + c;
    UNROLL for (int n = 0; n < TAPS_Y * TAPS_X; n++) {
        const real sum = sum_lanes(a[n / TAPS_X][n % TAPS_X], scratch);
        if (PART == 0)
            out[n * channels] = sum;
    }
}

KERNEL void conv2d_depthwise_weights(__global const S *restrict x,
                                     __global const S *restrict dz, int dz_first,
                                     __global real *restrict out, int out_first, int out_stride,
                                     int shard_tiles, int part_tiles, int channels,
                                     int channels_each, __local V *scratch)
{
    const int c0 = get_group_id(0) * channels_each, part = get_group_id(1);
    for (int c = c0; c < min(c0 + channels_each, channels); c++)
        weigh_group(x, dz, dz_first, out, out_first, out_stride, shard_tiles, part_tiles,
                    scratch, c, channels, part);
}
#endif
