/* Weight gradient of a convolution:
 *
 *   out[part][c, r, s, k] = sum over the part's tiles, i, j, lanes of
 *       dz[k, i, j] * x[c, i*STRIDE_Y + r*GAP_Y - PAD_Y, j*STRIDE_X + s*GAP_X - PAD_X]
 *
 * A part is part_tiles tiles of a shard's run (lib/parts.cl). Each lane's sum runs over (tile,
 * strip of STRIP columns, row, column), then the lanes are added as a tree; no blocking changes
 * this order.
 *
 *   x: [tiles][GROUPS][channels][IN_H][IN_W]; out: [parts] out_stride apart, k innermost
 *   dz: GRADIENT 0: dy itself, [tiles][GROUPS][filters][OUT_H][OUT_W]; 1: dy where y > 0;
 *       2: dy of a 2x2 max-pool, expanded by the numbers `at` (4: none)
 *
 * A register block is ROWS channels, COLUMNS filters and one row of taps. Where STAGED a group
 * copies dz of COLUMNS filters, ROWS_EACH rows and a strip (or TILES_EACH whole tiles) to local
 * memory, filters interleaved, and goes over all its channels with it. The sums of all its
 * blocks rest in local memory meanwhile. What comes next is fetched ahead, a little with every
 * block: a burst of it would keep the products waiting.
 *
 * Group ids: 0: group, run of group_filters filters; 1: run of group_channels channels;
 * 2: part.
 * -D: TAPS_Y TAPS_X STRIDE_Y STRIDE_X GAP_Y GAP_X PAD_Y PAD_X IN_H IN_W OUT_H OUT_W GROUPS
 *     GRADIENT ROWS COLUMNS STRIP ROWS_EACH TILES_EACH, LEFT RIGHT: columns that see an edge,
 *     CHECK: all may, STAGED: through local memory, for CPUs; without, sums stay in registers
 */
#include "lib/hints.cl"
#include "lib/real.cl"

#include "lib/parts.cl"
#include "lib/sum.cl"
#include "products/direct/taps.cl"

#define IN_PLANE (IN_H * IN_W)
#define OUT_PLANE (OUT_H * OUT_W)
#define SUMS (ROWS * COLUMNS * TAPS_X) /* sums of a register block */
#if GRADIENT == 2
#define DY_PLANE ((OUT_H / 2) * (OUT_W / 2))
#else
#define DY_PLANE OUT_PLANE
#endif
#define WHOLE (STRIP >= OUT_W)

#include "products/direct/block.cl"

#if STAGED
#define STAGE (ROWS_EACH * STRIP * COLUMNS) /* values of a tile */

/* Copies dz of an area to local memory, filters interleaved; 0 for filters past the last. */
#if GRADIENT == 2
/* Areas of pooled outputs begin and end between pools. */
INLINE void stage(__local V *to, const struct block *b, struct area area)
{
    UNROLL for (int m = 0; m < COLUMNS; m++, to++)
        for (int i = 0; i < area.i1 - area.i0; i += 2)
            for (int j = 0; j < area.j1 - area.j0; j += 2) {
                const int from =
                    m * DY_PLANE + (area.i0 + i) / 2 * (OUT_W / 2) + (area.j0 + j) / 2;
                const I which = m < b->filters ? TO_I(b->at[from]) : (I)4;
                const V d = m < b->filters ? LOAD(b->dy + from) : (V)0;
                __local V *pixel = to + (i * STRIP + j) * COLUMNS;
                pixel[0] = which == (I)0 ? d : (V)0;
                pixel[COLUMNS] = which == (I)1 ? d : (V)0;
                pixel[STRIP * COLUMNS] = which == (I)2 ? d : (V)0;
                pixel[(STRIP + 1) * COLUMNS] = which == (I)3 ? d : (V)0;
            }
}
#else
INLINE void stage(__local V *to, const struct block *b, struct area area)
{
    UNROLL for (int m = 0; m < COLUMNS; m++)
        for (int i = area.i0; i < area.i1; i++)
            for (int j = area.j0; j < area.j1; j++)
                to[((i - area.i0) * STRIP + j - area.j0) * COLUMNS + m] =
                    m < b->filters ? gradient(b->dy + m * DY_PLANE, b->y + m * DY_PLANE,
                                              b->at + m * DY_PLANE, i, j)
                                   : (V)0;
}
#endif

/* The same operands q tiles on. */
INLINE struct block tiles_on(struct block b, int q, int2 size)
{
    const size_t to = (size_t)q * GROUPS * size.y * DY_PLANE;
    UNROLL for (int c = 0; c < ROWS; c++)
        b.x[c] += (size_t)q * GROUPS * size.x * IN_PLANE;
    b.dy += to;
    b.y = GRADIENT == 1 ? b.y + to : 0;
    b.at = GRADIENT == 2 ? b.at + to : 0;
    b.dz += q * STAGE;
    return b;
}

#define AREAS_Y ((OUT_H + ROWS_EACH - 1) / ROWS_EACH)
#define AREAS ((OUT_W + STRIP - 1) / STRIP * AREAS_Y) /* of a tile */

INLINE struct area area_at(int n)
{
    const int i = n % AREAS_Y * ROWS_EACH, j = n / AREAS_Y * STRIP;
    const struct area area = {i, min(i + ROWS_EACH, OUT_H), j, min(j + STRIP, OUT_W)};
    return area;
}

/* Fetches share `part` of `parts` of the gradients that are copied next. */
INLINE void fetch_gradients(const struct block *b, struct area area, int part, int parts)
{
    const int pool = GRADIENT == 2 ? 2 : 1, height = (area.i1 - area.i0) / pool;
    const int filters = min(COLUMNS, b->filters), rows = height * filters;
    const int each = (rows + parts - 1) / parts;
    for (int n = part * each; n < min((part + 1) * each, rows); n++) {
        const int row =
            n % filters * DY_PLANE + (area.i0 / pool + n / filters) * (OUT_W / pool);
        for (int j = row + area.j0 / pool; j < row + area.j1 / pool; j++) {
            PREFETCH(b->dy + j);
#if GRADIENT == 1
            PREFETCH(b->y + j);
#elif GRADIENT == 2
            PREFETCH(b->at + j);
#endif
        }
    }
}

#define ROWS_READ ((ROWS_EACH - 1) * STRIDE_Y + (TAPS_Y - 1) * GAP_Y + 1)

/* Fetches input rows [n0, n1) of an area, ROWS_READ of each channel. x: of the first one. */
INLINE void fetch_inputs(__global const S *x, struct area area, int n0, int n1)
{
    const int j0 = max(area.j0 * STRIDE_X - PAD_X, 0);
    const int j1 = min((area.j1 - 1) * STRIDE_X + (TAPS_X - 1) * GAP_X - PAD_X, IN_W - 1);
    for (int n = n0; n < n1; n++) {
        const int i = area.i0 * STRIDE_Y - PAD_Y + n % ROWS_READ;
        if (i >= 0 && i < IN_H)
            for (int j = j0; j <= j1; j++)
                PREFETCH(x + (size_t)(n / ROWS_READ) * IN_PLANE + i * IN_W + j);
    }
}

/* An area of some tiles, and the one that follows, to be fetched meanwhile. */
struct turn {
    struct block tile, next;
    struct area area, next_area;
    int tiles;
    bool first;
};

/* The products of a turn with channels range.xy and filters range.zw of the group, which has
 * size.x and size.y of them. */
INLINE void add_group(__local V *sums, __local V *staged, const struct turn *now, int4 range,
                      int2 size)
{
    const int c0 = range.x, c1 = range.y, k0 = range.z, k1 = range.w;
    const struct block tile = now->tile, next = now->next;
    const struct area area = now->area, next_area = now->next_area;
    const int tiles = now->tiles, rows = (c1 - c0) * ROWS_READ,
              runs = (c1 - c0 + ROWS - 1) / ROWS;
    const int share = (rows - 1) / ((k1 - k0 + COLUMNS - 1) / COLUMNS * runs) + 1;
    int row = 0;
    for (int k = k0; k < k1; k += COLUMNS) {
        const bool last = k + COLUMNS >= k1;
        struct block b = block_at(tile, c0, k, size.x, size.y);
        b.dz = staged;
        for (int q = 0; q < tiles; q++) {
            const struct block from = tiles_on(b, q, size);
            stage(staged + q * STAGE, &from, area);
        }
        const struct block then =
            block_at(last ? next : tile, c0, last ? k0 : k + COLUMNS, size.x, size.y);
        for (int c = c0; c < c1; c += ROWS, row += share) {
            b = block_at(tile, c, k, size.x, size.y);
            b.dz = staged;
            fetch_gradients(&then, last ? next_area : area, (c - c0) / ROWS, runs);
            fetch_inputs(next.x[0] + (size_t)c0 * IN_PLANE, next_area, row,
                         min(row + share, rows));
            for (int r = 0; r < TAPS_Y; r++, sums += SUMS) {
                V a[ROWS][COLUMNS][TAPS_X];
                UNROLL for (int m = 0; m < SUMS; m++)
                    ((V *)a)[m] = now->first ? (V)0 : sums[m];
                for (int q = 0; q < tiles; q++) {
                    const struct block from = tiles_on(b, q, size);
                    add_area(a, &from, area, r);
                }
                UNROLL for (int m = 0; m < SUMS; m++)
                    sums[m] = ((V *)a)[m];
            }
        }
    }
}
#endif

BODY void weigh_group(__global const S *restrict x, __global const S *restrict dy, int dy_first,
                      __global const S *restrict y, __global const B *restrict at,
                      __global real *restrict out, int out_first, int out_stride, int channels,
                      int filters, int group_channels, int group_filters, int shard_tiles,
                      int run_tiles, int part_tiles, __local V *sums, __local V *staged,
                      int group_0, int group_1, int group_2)
{
    const int runs = (filters + group_filters - 1) / group_filters;
    const int g = group_0 / runs, k0 = group_0 % runs * group_filters;
    const int k1 = min(k0 + group_filters, filters), c0 = group_1 * group_channels;
    const int c1 = min(c0 + group_channels, channels), part = group_2;
    const int parts_of_run = (run_tiles + part_tiles - 1) / part_tiles;
    const int parts_of_shard = shard_tiles / run_tiles * parts_of_run;
    const int shard = part / parts_of_shard * shard_tiles;
    const long begin = part_begin(part % parts_of_shard, run_tiles, part_tiles);
    const int t0 = shard + (int)begin;
    const int t1 = shard + (int)part_end(begin, run_tiles, part_tiles, shard_tiles);
    dy += dy_first / VECTOR;
    out += out_first + (size_t)part * out_stride + g * filters;
#if STAGED
    for (int n = 0; n < (t1 - t0) * AREAS; n += TILES_EACH) {
        const int ahead = min(n + TILES_EACH, (t1 - t0) * AREAS - 1);
        const struct turn now = {.tile = TILE_AT(t0 + n / AREAS),
                                  .next = TILE_AT(t0 + ahead / AREAS),
                                  .area = area_at(n % AREAS),
                                  .next_area = area_at(ahead % AREAS),
                                  .tiles = AREAS == 1 ? min(TILES_EACH, t1 - t0 - n) : 1,
                                  .first = n == 0};
        add_group(sums, staged, &now, (int4)(c0, c1, k0, k1), (int2)(channels, filters));
    }
    __local V *at_sum = sums;
    for (int k = k0; k < k1; k += COLUMNS)
        for (int c = c0; c < c1; c += ROWS)
            for (int r = 0; r < TAPS_Y; r++, at_sum += SUMS) {
                V a[ROWS][COLUMNS][TAPS_X];
                UNROLL for (int m = 0; m < SUMS; m++)
                    ((V *)a)[m] = at_sum[m];
                store(a, out, c, k, r, c1, k1, GROUPS * filters, sums);
            }
#else
    for (int k = k0; k < k1; k += COLUMNS)
        for (int c = c0; c < c1; c += ROWS)
            for (int r = 0; r < TAPS_Y; r++) {
                V a[ROWS][COLUMNS][TAPS_X];
                UNROLL for (int m = 0; m < SUMS; m++)
                    ((V *)a)[m] = (V)0;
                for (int t = t0; t < t1; t++)
                    for (int j = 0; j < OUT_W; j += STRIP) {
                        const struct area area = {0, OUT_H, j, min(j + STRIP, OUT_W)};
                        const struct block b = block_at(
                            TILE_AT(t), c, k,
                            channels, filters);
                        add_area(a, &b, area, r);
                    }
                store(a, out, c, k, r, c1, k1, GROUPS * filters, sums);
            }
#endif
}

KERNEL void conv2d_weights(__global const S *restrict x, __global const S *restrict dy,
                           int dy_first, __global const S *restrict y,
                           __global const B *restrict at, __global real *restrict out,
                           int out_first, int out_stride, int channels, int filters,
                           int group_channels, int group_filters, int shard_tiles,
                           int run_tiles, int part_tiles, __local V *sums, __local V *staged)
{
    weigh_group(x, dy, dy_first, y, at, out, out_first, out_stride, channels, filters,
                group_channels, group_filters, shard_tiles, run_tiles, part_tiles, sums, staged,
                get_group_id(0), get_group_id(1), get_group_id(2));
}
