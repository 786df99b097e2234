/* Weight gradient by Winograd's algorithm on CPUs, 3x3 taps on every pixel:
 *
 *   dw[c, k] = G' m[c, k] G, m[p][c, k] = sum over Winograd tiles q and lanes of
 *   v[p][c, q] * z[p][k, q], v = B' x B, z = A dz A'
 *
 * for each shard. The sum runs over q of the shard, lanes inside: BLOCK tiles make one chain,
 * and the blocks' sums are added in order, whatever else is blocked. A round does tiles [q0,
 * q1) of shards shard0, shard0 + 1, ..., at most `room` tiles of each:
 *
 *   conv2d_winograd_terms     v[shard][p][c][room] and, of vectors of filters,
 *                             z[shard][p][panel][room][lane][COLUMNS]: lanes and filters are
 *                             exchanged, so that a vector of filters meets single values of v
 *   conv2d_winograd_products  m[shard][p][c][panels * COLUMNS] of vectors of filters, added to
 *                             m where q0 > 0
 *   conv2d_winograd_finish    dw[shard][c, r, s, k], after the last round of the shards
 *
 *   x: [tiles][channels][in_h][in_w]; dz: [tiles][filters][out_h][out_w], or what SOURCE says
 *
 * Group ids: terms: 0: run of CHANNELS channels, or behind these a vector of filters; 1: BLOCK
 * tiles; 2: shard of the round. products: 0: panel; 1: p; 2: shard. finish: 0: c; 1: shard.
 * -D: TILE; SOURCE, as inputs.cl has it; ROWS, COLUMNS: register block
 */
#include "lib/hints.cl"
#include "lib/real.cl"
#include "products/kernel/args.h"
#include "products/winograd/args.h"
#include "lib/transpose.cl"
#include "lib/winograd.cl"
#include "products/winograd/inputs.cl"
#include "products/winograd/products.cl"

#define BLOCK 8    /* decides the order of sums */
#define CHANNELS 8 /* that a group transforms */
#define PAD 4      /* keeps positions from sharing sets of a cache */

/* --- terms ----------------------------------------------------------------------------- */

BODY void terms_group(struct winograd_window x, struct winograd_window dz, __global V *v,
                      __global V *z, struct slice r, int channels, int filters,
                      __local V *stage, int group_0, int group_1)
{
    const int runs = (channels + CHANNELS - 1) / CHANNELS, n = group_0 - runs;
    const int first = r.q0 + group_1 * BLOCK, last = min(first + BLOCK, r.q1);
    const int panels = (filters + COLUMNS * VECTOR - 1) / (COLUMNS * VECTOR);
    const size_t stride = (size_t)panels * r.room * VECTOR * COLUMNS + PAD;
    if (n < 0)
        make_v(&r, x, v + (size_t)group_0 * CHANNELS * r.room, (size_t)channels * r.room + PAD,
               channels, group_0 * CHANNELS, min((group_0 + 1) * CHANNELS, channels), first,
               last);
    else
        make_z(&r, dz, z + (size_t)(n / COLUMNS) * r.room * VECTOR * COLUMNS + n % COLUMNS,
               filters, n * VECTOR, first, last, stride, stage);
}

KERNEL void conv2d_winograd_terms(__global const S *restrict x, __global const S *restrict dz,
                                  int dz_first, __global const S *restrict gate,
                                  __global const B *restrict won, __global V *restrict work,
                                  int v_first, int v_stride, int z_first, int z_stride,
                                  struct lk_winograd_terms a, struct lk_geometry of,
                                  __local V *stage)
{
    const int shard = get_group_id(2);
    const struct winograd_window of_x = {.x = x, .height = of.in_h, .width = of.in_w};
    const struct winograd_window of_dz = {dz + dz_first / VECTOR, gate, won,
                                          .height = of.out_h, .width = of.out_w};
    const struct slice r = {a.q0,     a.q1,     a.room,   a.shard_tiles, a.shard0 + shard,
                            of.out_h, of.out_w, of.pad_y, of.pad_x};
    terms_group(of_x, of_dz, work + v_first / VECTOR + (size_t)shard * v_stride,
                work + z_first / VECTOR + (size_t)shard * z_stride, r, a.channels, a.filters,
                stage, get_group_id(0), get_group_id(1));
}

/* --- products -------------------------------------------------------------------------- */

BODY void products_group(__global const real *restrict v, __global const V *restrict z,
                         __global V *restrict m, int channels, int panels, int room, int count,
                         bool is_first, int panel)
{
    const size_t row = (size_t)room * VECTOR, m_row = (size_t)panels * COLUMNS;
    z += panel * row * COLUMNS;
    m += panel * COLUMNS;
    for (int q = 0; q < count; q += BLOCK) {
        const int depth = min(BLOCK, count - q) * VECTOR;
        for (int c = 0; c < channels; c += ROWS)
            multiply(v + c * row + (size_t)q * VECTOR, row, z + (size_t)q * VECTOR * COLUMNS,
                     m + c * m_row, m_row, channels - c, depth, is_first && q == 0);
    }
}

KERNEL void conv2d_winograd_products(__global const V *restrict from, int v_first, int v_stride,
                                     int z_first, int z_stride, __global V *restrict to,
                                     int m_first, int m_stride, int room, int count,
                                     int is_first, int channels)
{
    const int p = get_group_id(1), shard = get_group_id(2), panels = get_num_groups(0);
    const size_t v_step = (size_t)channels * room + PAD;
    const size_t z_step = (size_t)panels * room * VECTOR * COLUMNS + PAD;
    const size_t m_step = (size_t)channels * panels * COLUMNS;
    products_group(
        (__global const real *)(from + v_first / VECTOR + (size_t)shard * v_stride +
                                p * v_step),
        from + z_first / VECTOR + (size_t)shard * z_stride + p * z_step,
        to + m_first / VECTOR + (size_t)shard * m_stride + p * m_step, channels, panels, room,
        count, is_first, get_group_id(0));
}

/* --- result ---------------------------------------------------------------------------- */

BODY void finish_group(__global const V *restrict m, __global real *restrict dw, int channels,
                       int filters, int panels, int c)
{
    finish_channel(m + (size_t)c * panels * COLUMNS, (size_t)channels * panels * COLUMNS,
                   dw + (size_t)c * 9 * filters, filters, filters);
}

KERNEL void conv2d_winograd_finish(__global const V *restrict m, int m_first, int m_stride,
                                   __global real *restrict dw, int dw_stride, int shard0,
                                   int channels, int filters)
{
    const int shard = get_group_id(1);
    const int panels = (filters + COLUMNS * VECTOR - 1) / (COLUMNS * VECTOR);
    finish_group(m + m_first / VECTOR + (size_t)shard * m_stride,
                 dw + (size_t)(shard0 + shard) * dw_stride, channels, filters, panels,
                 get_group_id(0));
}
