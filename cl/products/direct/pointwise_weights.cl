/* Weight gradient of a convolution of single taps inside the image, as a product of matrices.
 * CPU class only.
 *
 *   out[part][c, k] = sum over the part's tiles, pixels q, lanes of dz[k, q] * x[c, from(q)]
 *
 * The pixels of an image are cut into areas of at most AREA; a part is a run of them. Each sum
 * is one chain over the pixels and lanes of an area, and these are added in order: no blocking
 * changes it.
 *
 *   x: [tiles][groups][channels][in_plane]; pixel q is read at q / width * in_row +
 *      q % width * in_stride
 *   dz: [tiles][groups][filters][pixels], which is dy or, where GRADIENT is 1, dy where y > 0
 *   out: [parts] out_stride apart, k innermost
 *
 * A group has in local memory a block of dz transposed, [pixels][lanes][filters], which is
 * COLUMNS vectors of filters or, behind `wide` such blocks, 2, its sums and, where IN_PLACE is
 * 0, an area of x, [channels][AREA]; else areas lie side by side in x and are read there. While
 * the products with one block are summed, ROWS channels after each other, the next block is
 * transposed, the next area of x copied, and what follows them fetched, some of each with every
 * pixel: the multiplications hide it. It should be as much with each: processors drop what they
 * are asked to fetch while many lines are on their way. Where RUN is 4 (else 1) as many areas
 * are fetched together, row by row: lines of a page come sooner than lines of many pages. The
 * last ROWS channels may be some that the block before them has as well; that one stores these.
 *
 * Group ids: 0: group, run of blocks_each blocks of filters; 1: run of group_channels channels;
 * 2: part.
 * -D: ROWS COLUMNS AREA RUN IN_PLACE GRADIENT
 */
#include "lib/hints.cl"
#include "lib/real.cl"
#include "products/direct/args.h"
#include "products/direct/filter_blocks.cl"
#include "lib/transpose.cl"
#include "products/direct/pointwise_inputs.cl"

/* Adds the products of ROWS channels and n vectors of filters with an area, which may be the
 * first. */
INLINE void add_products(__local V *sums, X_SPACE const V *x, __local const V *dz, int count,
                         struct work *work, const struct lk_point_weights *s, bool first, int n)
{
    const size_t row = ROW(s) * VECTOR;
    X_SPACE const real *f = (X_SPACE const real *)x;
    V a[ROWS][COLUMNS];
    UNROLL for (int m = 0; m < ROWS; m++)
        UNROLL for (int v = 0; v < COLUMNS; v++)
            a[m][v] = (V)0;
    for (int j = 0; j < count; j++) {
        for (int i = 0; i < work->copies && work->channel < work->channels; i++)
            bring_channel(work, s);
        for (int i = 0; i < work->moves_each && work->moves > 0; i++)
            transpose_move(work, s);
        for (int l = 0; l < VECTOR; l++, f++, dz += n)
            UNROLL for (int m = 0; m < ROWS; m++) {
                const V e = f[m * row];
                UNROLL for (int v = 0; v < COLUMNS; v++)
                    if (v < n)
                        a[m][v] = FMA(e, dz[v], a[m][v]);
            }
    }
    UNROLL for (int m = 0; m < ROWS; m++)
        UNROLL for (int v = 0; v < COLUMNS; v++)
            if (v < n)
                sums[m * n + v] = first ? a[m][v] : sums[m * n + v] + a[m][v];
}

/* The sums of ROWS channels from c on, but for the first ones, and n vectors of filters from k
 * on. */
INLINE void store(__global real *out, __local const V *sums, int c, int skipped, int k, int n,
                  const struct lk_point_weights *s)
{
    for (int m = skipped; m < ROWS; m++)
        for (int v = 0; v < n; v++) {
            const int k0 = k + v * VECTOR;
            store_filters(out + (size_t)(c + m) * s->groups * s->filters + k0,
                          sums + m * n + v, s->filters - k0);
        }
}

/* What a group does: blocks b0 to b1 of filters, channels c0 to c1. */
struct share {
    int b0, b1, c0, c1, wide;
};

/* dz of the block `ahead` behind block b of the first of three areas. */
INLINE struct inputs dz_at(const struct share *share, int b, int ahead,
                           const struct area *areas, struct block *block,
                           const struct lk_point_weights *s)
{
    const int blocks = share->b1 - share->b0, n = b - share->b0 + ahead;
    const struct area *area = areas + (n < blocks ? 0 : n < 2 * blocks ? 1 : 2);
    *block = block_at(share->b0 + n % blocks, share->wide);
    const size_t to = (size_t)block->v * VECTOR * s->pixels;
    const struct inputs dz = {area->in.x, area->in.dy + to,
                              GRADIENT == 1 ? area->in.y + to : 0};
    return dz;
}

/* Takes up the block `ahead` behind block b, to transpose `count` pixels. */
INLINE void start_block(struct work *work, const struct share *share, int b, int ahead,
                        const struct area *areas, int count, const struct lk_point_weights *s)
{
    struct block block, after;
    work->dz = dz_at(share, b, ahead, areas, &block, s);
    work->after = dz_at(share, b, ahead + 1, areas, &after, s);
    work->k = block.v * VECTOR;
    work->n = block.n;
    work->j = work->v = work->stage = 0;
    work->moves = count * block.n * MOVES;
}

BODY void weigh_group(struct inputs in, __global real *restrict out, struct lk_point_weights s,
                      struct share share, int g, int u0, int u1, __local V *sums, __local V *x,
                      __local V *dz)
{
    const int channels = share.c1 - share.c0, c_blocks = (channels + ROWS - 1) / ROWS;
    const int blocks = share.b1 - share.b0;
    const int x_size = channels * AREA, dz_size = COLUMNS * VECTOR * AREA;
    struct area areas[3] = {area_at(&in, u0, g, &s), area_at(&in, min(u0 + 1, u1 - 1), g, &s)};
    struct work work = {.area = areas, .then = areas + 1, .x = x, .c0 = share.c0,
                        .channels = channels};
    int parity = 0;
    work.turned = dz;
    work.fours = dz + 2 * dz_size;
    start_block(&work, &share, share.b0, 0, areas, areas[0].count, &s);
    start_run(&work, &in, u0, g, &s);
    while (work.channel < channels)
        bring_channel(&work, &s);
    while (work.moves > 0)
        transpose_move(&work, &s);
    for (int u = u0; u < u1; u++) {
        const int gaps = c_blocks * areas[0].count, count = areas[0].count;
        X_SPACE const V *now = rows_at(areas, x + (u - u0) % 2 * x_size, share.c0, &s);
        __local V *to = sums;
        areas[2] = area_at(&in, min(u + 2, u1 - 1), g, &s);
        start_run(&work, &in, u + 1, g, &s);
        work.area = areas + 1;
        work.then = areas + 2;
        work.x = x + (u - u0 + 1) % 2 * x_size;
        work.channel = 0;
        work.channels = u + 1 < u1 ? channels : 0;
        work.copies = (channels - 1) / (gaps * blocks) + 1;
        for (int b = share.b0; b < share.b1; b++, parity ^= 1) {
            const int n = block_at(b, share.wide).n;
            const bool wraps = b + 1 == share.b1;
            __local const V *block = dz + parity * dz_size;
            start_block(&work, &share, b, 1, areas, areas[wraps].count, &s);
            work.turned = dz + (1 - parity) * dz_size;
            work.moves = wraps && u + 1 == u1 ? 0 : work.moves;
            work.moves_each = (work.moves - 1) / gaps + 1;
            for (int c = 0; c < c_blocks; c++, to += ROWS * n) {
                X_SPACE const V *from = now + min(c * ROWS, channels - ROWS) * ROW(&s);
                if (n == COLUMNS)
                    add_products(to, from, block, count, &work, &s, u == u0, COLUMNS);
                else
                    add_products(to, from, block, count, &work, &s, u == u0, 2);
            }
        }
        areas[0] = areas[1];
        areas[1] = areas[2];
    }
    for (int b = share.b0; b < share.b1; b++)
        for (int c = 0; c < c_blocks; c++) {
            const struct block block = block_at(b, share.wide);
            const int first = min(c * ROWS, channels - ROWS);
            store(out, sums, share.c0 + first, c * ROWS - first, block.v * VECTOR, block.n, &s);
            sums += ROWS * block.n;
        }
}

KERNEL void conv2d_pointwise_weights(__global const V *restrict x,
                                     __global const V *restrict dy, int dy_first,
                                     __global const V *restrict y, __global real *restrict out,
                                     int out_first, int out_stride,
                                     struct lk_point_weights s,
                                     struct lk_filter_cut of, __local V *sums,
                                     __local V *copied, __local V *regrouped)
{
    const struct inputs in = {x, dy + dy_first / VECTOR, y};
    const int runs = (of.blocks + of.blocks_each - 1) / of.blocks_each;
    const int group_0 = get_group_id(0), group_1 = get_group_id(1), group_2 = get_group_id(2);
    const int g = group_0 / runs, b0 = group_0 % runs * of.blocks_each;
    const int c0 = group_1 * of.group_channels;
    const struct share share = {b0, min(b0 + of.blocks_each, of.blocks), c0,
                                min(c0 + of.group_channels, s.channels), of.wide};
    const int all = s.shard_tiles * s.areas, first = group_2 / s.parts * all;
    const int part = group_2 % s.parts;
    weigh_group(in, out + out_first + (size_t)group_2 * out_stride + g * s.filters, s, share, g,
                first + (int)((long)all * part / s.parts),
                first + (int)((long)all * (part + 1) / s.parts), sums, copied, regrouped);
}
