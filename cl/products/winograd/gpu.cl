/* The transforms of Winograd convolution for the GPU class, 3x3 taps on every pixel. Between
 * them are products of matrices, one for each position p of POSITIONS: gpu/gather.cl and
 * gpu/weights.cl do them as convolutions of single taps.
 *
 *   inputs     v[p][c][q] = (B' x B)[p] of Winograd tiles [first, first + count) of the batch
 *   gradients  z[p][k][q] = (A dz A')[p] of the same tiles, for the weight gradient
 *   taps       u[p][n][k] = (G w G')[p], rows `pitch` long, 0 past the last output channel
 *   outputs    y = A' m A + bias of m[p][k][room], then relu and a 2x2 max-pool, as
 *              direct/gather.cl has it
 *   finish     dw[c, r, s, k] = G' m G of m[p][shard][c][k], added to what is there unless
 *              `is_first`; shards of dw are dw_stride apart
 *
 * v and z: rows of `room` tiles, LANES each. w: as pack.cl has it.
 *
 * Group ids: inputs, gradients, outputs: 0: Winograd tile, 1: channel; work-items: lanes. taps:
 * 0: n; finish: 0: c, 1: shard; work-items: k.
 * -D: TILE; SOURCE: of x and of dz, as inputs.cl has it, with y or `at` of the
 *     forward pass as `gate` and `won`; POOL; GATED: of outputs, y is 0 where
 *     `gate`, of its layout, is not above 0
 */
#include "lib/hints.cl"
#include "lib/real.cl"
#include "products/kernel/args.h"
#include "products/winograd/args.h"
#include "lib/put.cl"
#include "lib/greatest.cl"
#include "lib/winograd.cl"
#include "products/winograd/inputs.cl"
#include "lib/finish.cl"
#include "products/winograd/outputs.cl"

/* Batch tile and place of a Winograd tile of the batch. */
INLINE int tile_of(int q, int height, int width, int *y0, int *x0)
{
    const int across = (width + TILE - 1) / TILE;
    const int squares = (height + TILE - 1) / TILE * across;
    *y0 = q % squares / across * TILE;
    *x0 = q % squares % across * TILE;
    return q / squares;
}

KERNEL void conv2d_winograd_inputs(__global const S *restrict x, int x_first,
                                   __global const S *restrict gate,
                                   __global const B *restrict won, __global V *restrict v,
                                   int v_first, int first, int room, struct lk_geometry of)
{
    const int c = get_group_id(1), channels = get_num_groups(1);
    int y0, x0;
    const int t = tile_of(first + get_group_id(0), of.out_h, of.out_w, &y0, &x0);
    const struct winograd_window all = {x + x_first, gate, won, of.in_h, of.in_w, 0, 0};
    const struct winograd_window from = winograd_window_at(
        all, ((size_t)t * channels + c) * winograd_plane(&all, SOURCE) + PART, y0 - of.pad_y,
        x0 - of.pad_x, SOURCE);
    winograd_inputs(&from, v + v_first + ((size_t)c * room + get_group_id(0)) * PARTS + PART,
                    (size_t)channels * room * PARTS, SOURCE);
}

KERNEL void conv2d_winograd_gradients(__global const S *restrict dz, int dz_first,
                                      __global const S *restrict gate,
                                      __global const B *restrict won, __global V *restrict z,
                                      int z_first, int first, int room, struct lk_geometry of)
{
    const int k = get_group_id(1), filters = get_num_groups(1);
    int y0, x0;
    const int t = tile_of(first + get_group_id(0), of.out_h, of.out_w, &y0, &x0);
    const struct winograd_window all = {dz + dz_first, gate, won, of.out_h, of.out_w, 0, 0};
    const struct winograd_window from = winograd_window_at(
        all, ((size_t)t * filters + k) * winograd_plane(&all, SOURCE) + PART, y0, x0, SOURCE);
    winograd_gradients(&from, z + z_first + ((size_t)k * room + get_group_id(0)) * PARTS + PART,
                       (size_t)filters * room * PARTS, SOURCE);
}

KERNEL void conv2d_winograd_taps(__global const real *restrict w, int w_first,
                                 __global real *restrict u, int u_first, int pitch,
                                 struct lk_winograd_from of)
{
    const int n = get_group_id(0);
    w += w_first + n * of.in_stride;
    u += u_first + (size_t)n * pitch;
    for (int k = PART; k < pitch; k += PARTS) {
        V t[SIDE][3];
        UNROLL for (int s = 0; s < 3; s++) {
            V column[SIDE];
#define W(r)                                                                                   \
    (k < of.outs ? w[k * of.out_stride + (r) * of.row_stride + s * of.column_stride] : (real)0)
            WINOGRAD_G(column, W);
#undef W
            UNROLL for (int i = 0; i < SIDE; i++)
                t[i][s] = column[i];
        }
        UNROLL for (int i = 0; i < SIDE; i++) {
            V row[SIDE];
#define W(s) t[i][s]
            WINOGRAD_G(row, W);
#undef W
            UNROLL for (int j = 0; j < SIDE; j++)
                u[(size_t)(i * SIDE + j) * of.ins * pitch + k] = row[j];
        }
    }
}

KERNEL void conv2d_winograd_outputs(__global const V *restrict m, int m_first,
                                    __global const real *restrict bias, __global S *restrict y,
                                    __global B *restrict at, __global const S *restrict gate,
                                    int first, int room, int relu, struct lk_geometry of)
{
    const int k = get_group_id(1), outs = get_num_groups(1);
    int y0, x0;
    const int t = tile_of(first + get_group_id(0), of.out_h, of.out_w, &y0, &x0);
    const size_t plane =
        ((size_t)t * outs + k) * (of.out_h >> POOL) * (of.out_w >> POOL) * PARTS;
    const struct plane to = {y + plane + PART,
                             at ? at + plane + PART : 0,
                             GATED ? gate + plane + PART : 0,
                             of.out_h,
                             of.out_w,
                             bias ? bias[k] : (real)0,
                             relu ? (V)0 : (V)-INFINITY};
    store_tile(&to, m + m_first + ((size_t)k * room + get_group_id(0)) * PARTS + PART,
               (size_t)outs * room * PARTS, y0, x0);
}

KERNEL void conv2d_winograd_finish(__global const real *restrict m, int m_first,
                                   __global real *restrict dw, int dw_first, int dw_stride,
                                   int filters, int is_first)
{
    const int c = get_group_id(0), channels = get_num_groups(0);
    const int shard = get_group_id(1), shards = get_num_groups(1);
    m += m_first + ((size_t)shard * channels + c) * filters;
    dw += dw_first + (size_t)shard * dw_stride + (size_t)c * 9 * filters;
    for (int k = PART; k < filters; k += PARTS) {
        V taps[3][3];
        winograd_taps(taps, m + k, (size_t)shards * channels * filters);
        UNROLL for (int r = 0; r < 9; r++) {
            __global real *to = dw + r * filters + k;
            *to = is_first ? taps[r / 3][r % 3] : *to + taps[r / 3][r % 3];
        }
    }
}
