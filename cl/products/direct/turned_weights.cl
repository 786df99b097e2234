/* Weight gradient of a convolution as a product of matrices: channels x (pixels, lanes) times
 * (pixels, lanes) x filters. CPU class only.
 *
 *   out[part][c, r, s, k] = sum over the part's tiles, i, j, lanes of
 *       dz[k, i, j] * x[c, i*stride.y + r*gap.y - pad.y, j*stride.x + s*gap.x - pad.x]
 *
 * The outputs of a tile are cut into areas of rows_each x strip, which follow each other down a
 * strip; a part is areas_each of them. Each sum is one chain over the pixels and lanes of an
 * area, and these are added in order: no blocking changes it.
 *
 *   x: [tiles][groups][channels][in.y][in.x]; out: [parts] out_stride apart, k innermost
 *   dz: GRADIENT 0: dy itself, [tiles][groups][filters][dz.y][dz.x]; 1: dy where y > 0;
 *       2: dy of a 2x2 max-pool, expanded by the numbers `at` (4: none)
 *
 * A group transposes dz of an area and of its filters, VECTOR by VECTOR, to local memory,
 * [blocks][pixels][lanes][filters], a block being COLUMNS vectors of filters or, behind `wide`
 * of them, 2. A register block is ROWS channels and such a block: inputs are read in place,
 * lane by lane. The sums of the group rest in local memory. What comes next is fetched ahead, a
 * little with every block.
 *
 * Group ids: 0: group, run of blocks_each blocks of filters; 1: run of group_channels channels;
 * 2: part.
 * -D: ROWS COLUMNS GRADIENT
 */
#include "lib/hints.cl"
#include "lib/real.cl"
#include "products/direct/args.h"
#include "products/kernel/args.h"

#include "products/direct/filter_blocks.cl"
#include "lib/transpose.cl"
#include "products/direct/area.cl"

/* Outputs first to end whose inputs `tap` are inside, of those from `from` to `to`. */
INLINE int2 inside(int from, int to, int tap, int stride, int gap, int pad, int in)
{
    const int low = pad - tap * gap, high = in - 1 + low;
    return (int2)(max(from, low > 0 ? (low + stride - 1) / stride : 0),
                  min(to, high < 0 ? 0 : high / stride + 1));
}

/* Rows between the first and the last that the taps of so many outputs read. */
INLINE int extent(int outputs, int taps, int stride, int gap)
{
    return (outputs - 1) * stride + (taps - 1) * gap + 1;
}

/* What a tap reads of an area: `rows` rows, strides apart, of `columns` pixels, the first of
 * which are `x` of a channel and `dz` of a block. */
struct reads {
    int x, dz, x_stride, dz_stride, rows, columns;
};

INLINE struct reads reads_of(const struct area *area, int2 tap, const struct sizes *s)
{
    const int2 rows =
        inside(area->i0, area->i1, tap.y, s->stride.y, s->gap.y, s->pad.y, s->in.y);
    const int2 columns =
        inside(area->j0, area->j1, tap.x, s->stride.x, s->gap.x, s->pad.x, s->in.x);
    const int width = max(columns.y - columns.x, 0), strip = area->j1 - area->j0;
    const int2 first = (int2)(columns.x, rows.x) * s->stride + tap * s->gap - s->pad;
    const struct reads reads = {first.y * s->in.x + first.x,
                                (rows.x - area->i0) * strip + columns.x - area->j0,
                                s->stride.y * s->in.x,
                                strip,
                                width > 0 ? rows.y - rows.x : 0,
                                width};
    return reads;
}

/* Adds the products of ROWS channels, of which x is the first and `left` are there, and n
 * vectors of filters with an area. */
INLINE void add_products(__local V *sums, __local const V *dz, __global const V *x, int left,
                         const struct reads *reads, const struct sizes *s, int n)
{
    __global const V *xs[ROWS];
    V a[ROWS][COLUMNS];
    UNROLL for (int m = 0; m < ROWS; m++) {
        xs[m] = x + (size_t)min(m, left - 1) * (s->in.x * s->in.y) + reads->x;
        UNROLL for (int v = 0; v < COLUMNS; v++)
            a[m][v] = (V)0;
    }
    dz += reads->dz * (VECTOR * n);
    for (int i = 0; i < reads->rows; i++) {
        __local const V *d = dz + i * reads->dz_stride * (VECTOR * n);
        int from = i * reads->x_stride;
        for (int j = 0; j < reads->columns; j++, from += s->stride.x, d += VECTOR * n)
            UNROLL for (int l = 0; l < VECTOR; l++)
                UNROLL for (int m = 0; m < ROWS; m++) {
                    const V e = ((__global const real *)(xs[m] + from))[l];
                    UNROLL for (int v = 0; v < COLUMNS; v++)
                        if (v < n)
                            a[m][v] = FMA(e, d[l * n + v], a[m][v]);
                }
    }
    UNROLL for (int m = 0; m < ROWS; m++)
        UNROLL for (int v = 0; v < COLUMNS; v++)
            if (v < n)
                sums[m * n + v] += a[m][v];
}

/* Fetches share `part` of `parts` of dz of a block. */
INLINE void fetch_gradients(const struct area *area, struct block block, int part, int parts,
                            const struct sizes *s)
{
#if GRADIENT != 2
    const int k0 = block.v * VECTOR, k1 = min(k0 + block.n * VECTOR, s->filters);
    const int each = (k1 - k0 + parts - 1) / parts, end = min(k0 + (part + 1) * each, k1);
    for (int k = k0 + part * each; k < end; k++)
        for (int i = area->i0; i < area->i1; i++)
            for (int j = area->j0; j < area->j1; j++) {
                PREFETCH(area->dy + (k * s->dz.y + i) * s->dz.x + j);
#if GRADIENT == 1
                PREFETCH(area->y + (k * s->dz.y + i) * s->dz.x + j);
#endif
            }
#endif
}

/* Likewise of the last `rows` rows that the taps of an area read, of channels c0 to c1. */
INLINE void fetch_inputs(const struct area *area, int rows, int c0, int c1, int part, int parts,
                         const struct sizes *s)
{
    const int last = (area->i1 - 1) * s->stride.y + (s->taps.y - 1) * s->gap.y - s->pad.y;
    const int j0 = max(area->j0 * s->stride.x - s->pad.x, 0);
    const int j1 = min((area->j1 - 1) * s->stride.x + (s->taps.x - 1) * s->gap.x - s->pad.x,
                       s->in.x - 1);
    const int every = s->taps.x == 1 ? s->stride.x : 1;
    const int each = (c1 - c0 + parts - 1) / parts, end = min(c0 + (part + 1) * each, c1);
    for (int c = c0 + part * each; c < end; c++)
        for (int row = max(last - rows + 1, 0); row <= min(last, s->in.y - 1); row++)
            for (int j = j0; j <= j1; j += every)
                PREFETCH(area->x + ((size_t)c * s->in.y + row) * s->in.x + j);
}

/* How outputs are cut into areas. */
struct cut {
    int strip, rows_each, down, count; /* areas of a strip, of an image */
};

INLINE struct area area_at(__global const V *x, __global const V *dy, __global const V *y,
                           __global const B *at, int u, int g, const struct cut *cut,
                           const struct sizes *s)
{
    const size_t image = (size_t)(u / cut->count) * s->groups + g;
    const size_t plane = GRADIENT == 2 ? (size_t)(s->dz.y / 2) * (s->dz.x / 2)
                                       : (size_t)s->dz.y * s->dz.x;
    const size_t to = image * s->filters * plane;
    const int n = u % cut->count, i = n % cut->down * cut->rows_each;
    const int j = n / cut->down * cut->strip;
    const struct area area = {x + image * s->channels * s->in.y * s->in.x,
                              dy + to,
                              GRADIENT == 1 ? y + to : 0,
                              GRADIENT == 2 ? at + to : 0,
                              i,
                              min(i + cut->rows_each, s->dz.y),
                              j,
                              min(j + cut->strip, s->dz.x)};
    return area;
}

/* The sums of a register block. */
INLINE void store(__global real *out, __local const V *sums, int c, int c1, int tap, int k,
                  int n, const struct sizes *s)
{
    const int taps = s->taps.x * s->taps.y;
    for (int m = 0; m < min(ROWS, c1 - c); m++)
        for (int v = 0; v < n; v++) {
            const int k0 = k + v * VECTOR;
            store_filters(out + ((size_t)(c + m) * taps + tap) * s->all_filters + k0,
                          sums + m * n + v, s->filters - k0);
        }
}

BODY void weigh_group(__global const V *restrict x, __global const V *restrict dy, int dy_first,
                      __global const V *restrict y, __global const B *restrict at,
                      __global real *restrict out, int out_first, int out_stride,
                      struct sizes s, struct cut cut, struct lk_filter_cut blocks,
                      int shard_tiles, int areas_each, __local V *sums, __local V *turned,
                      int group_0, int group_1, int group_2)
{
    const int wide = blocks.wide, blocks_each = blocks.blocks_each;
    const int runs = (blocks.blocks + blocks_each - 1) / blocks_each;
    const int g = group_0 / runs, b0 = group_0 % runs * blocks_each;
    const int b1 = min(b0 + blocks_each, blocks.blocks);
    const int c0 = group_1 * blocks.group_channels;
    const int c1 = min(c0 + blocks.group_channels, s.channels);
    const int all = shard_tiles * cut.count, parts = (all + areas_each - 1) / areas_each;
    const int u0 = group_2 / parts * all + group_2 % parts * areas_each;
    const int u1 = min(u0 + areas_each, (group_2 / parts + 1) * all);
    const int c_blocks = (c1 - c0 + ROWS - 1) / ROWS, taps = s.taps.x * s.taps.y;
    const int shares = taps * c_blocks;
    const int all_sums = taps * c_blocks * ROWS * (block_at(b1, wide).v - block_at(b0, wide).v);
    dy += dy_first / VECTOR;
    out += out_first + (size_t)group_2 * out_stride + g * s.filters;
    for (int i = 0; i < all_sums; i++)
        sums[i] = (V)0;
    for (int u = u0; u < u1; u++) {
        const struct area area = area_at(x, dy, y, at, u, g, &cut, &s);
        const struct area next = area_at(x, dy, y, at, min(u + 1, u1 - 1), g, &cut, &s);
        const bool is_below = next.j0 == area.j0 && next.i0 == area.i1;
        const int rows = s.taps.y == 1 || !is_below
                             ? extent(next.i1 - next.i0, s.taps.y, s.stride.y, s.gap.y)
                             : (next.i1 - area.i1) * s.stride.y;
        __local V *to = sums;
        for (int b = b0; b < b1; b++) {
            const bool is_last = b == b1 - 1;
            const struct block block = block_at(b, wide);
            const struct block then = block_at(is_last ? b0 : b + 1, wide);
            int share = 0;
            transpose_block(turned, &area, block, &s);
            for (int tap = 0; tap < taps; tap++) {
                const int2 place = (int2)(tap % s.taps.x, tap / s.taps.x);
                const struct reads reads = reads_of(&area, place, &s);
                for (int c = c0; c < c1; c += ROWS, to += ROWS * block.n) {
                    __global const V *from = area.x + (size_t)c * (s.in.x * s.in.y);
                    fetch_gradients(is_last ? &next : &area, then, share, shares, &s);
                    if (is_last)
                        fetch_inputs(&next, rows, c0, c1, share, shares, &s);
                    share++;
                    if (block.n == COLUMNS)
                        add_products(to, turned, from, s.channels - c, &reads, &s, COLUMNS);
                    else
                        add_products(to, turned, from, s.channels - c, &reads, &s, 2);
                }
            }
        }
    }
    for (int b = b0; b < b1; b++)
        for (int tap = 0; tap < taps; tap++)
            for (int c = c0; c < c1; c += ROWS) {
                const struct block block = block_at(b, wide);
                store(out, sums, c, c1, tap, block.v * VECTOR, block.n, &s);
                sums += ROWS * block.n;
            }
}

KERNEL void conv2d_products(__global const V *restrict x, __global const V *restrict dy,
                            int dy_first, __global const V *restrict y,
                            __global const B *restrict at, __global real *restrict out,
                            int out_first, int out_stride, struct lk_turned a,
                            struct lk_geometry of, struct lk_filter_cut blocks,
                            __local V *sums, __local V *turned)
{
    const struct sizes s = {a.channels,
                            a.filters,
                            a.groups * a.filters,
                            a.groups,
                            (int2)(of.taps_x, of.taps_y),
                            (int2)(of.stride_x, of.stride_y),
                            (int2)(of.gap_x, of.gap_y),
                            (int2)(of.pad_x, of.pad_y),
                            (int2)(of.in_w, of.in_h),
                            (int2)(of.out_w, of.out_h)};
    const int down = (of.out_h + a.rows_each - 1) / a.rows_each;
    const struct cut cut = {a.strip, a.rows_each, down,
                            (of.out_w + a.strip - 1) / a.strip * down};
    weigh_group(x, dy, dy_first, y, at, out, out_first, out_stride, s, cut, blocks,
                a.shard_tiles, a.areas_each, sums, turned, get_group_id(0), get_group_id(1),
                get_group_id(2));
}
