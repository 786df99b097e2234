/* Weight gradient of a convolution as a product of matrices, for the GPU class: rows (c, r, s)
 * of x, read in place at their pixels, times filters of dz, summed over pixels and lanes.
 *
 *   out[part][c, r, s, k] = sum over the part's tiles, i, j, lanes of
 *       dz[k, i, j] * x[c, i*stride_y + r*gap_y - pad_y, j*stride_x + s*gap_x - pad_x]
 *
 * One chain of products a result, in ascending order of tile, i, j, lane; outside the image x
 * is 0. A part is part_pixels pixels of a shard's run (lib/parts.cl), or what is left of it.
 *
 *   x: [tiles][groups][channels][in_h][in_w] from x_first on
 *   dz: [tiles][groups][filters][out_h][out_w] from dz_first on
 *   out: [parts] out_stride apart, k innermost
 *
 * A tile of x or dz is smaller than 2^31 bytes.
 * Group ids: 0: group of channels, block of BN filters in it, 1: block of BM rows, 2: part.
 * -D: TAPS_Y TAPS_X; gemm.cl, where a slice is BK lanes of a pixel (LANES % BK is 0)
 */
#include "lib/real.cl"

#include "lib/parts.cl"
#include "products/gpu/args.h"
#include "products/kernel/args.h"
/* Slices are turned on their way into local memory: no two on the same bank. */
#define PAD 1
#include "products/gpu/gemm.cl"

#define TAPS (TAPS_Y * TAPS_X)
#define ROW (LANES * (int)sizeof(S)) /* bytes of a pixel */
#define K_QUADS (BK / 4)                /* Qs of a row in a slice */
#define K_ROWS (GROUP / K_QUADS)        /* rows that the group brings at a time */
#define M_TURNS (BM / K_ROWS)
#define N_TURNS (BN / K_ROWS)

#if GROUP % K_QUADS || BM % K_ROWS || BN % K_ROWS || LANES % BK
#error "block sizes do not fit the weight gradient"
#endif

INLINE void put(__local real *to, int pitch, Q v)
{
    to[0] = v.x;
    to[4 * pitch] = v.y;
    to[8 * pitch] = v.z;
    to[12 * pitch] = v.w;
}

GROUP_KERNEL void conv2d_gpu_weights(__global const S *OPERAND x, int x_first,
                                     __global const S *OPERAND dz, int dz_first,
                                     __global real *restrict out, int out_first, int out_stride,
                                     struct lk_gpu_sums a, struct lk_geometry of)
{
    __local Q slices[2 * SLICE + EXCHANGE];
    const int id = get_local_id(0), quad = id % K_QUADS, row = id / K_QUADS;
    const int blocks = (a.filters + BN - 1) / BN, g = get_group_id(0) / blocks;
    const int m0 = get_group_id(1) * BM, n0 = get_group_id(0) % blocks * BN;
    const int pixels = of.out_h * of.out_w, rows = a.channels * TAPS;

    /* The part's first pixel and how many it has. */
    const int all = a.shard_tiles * pixels; /* of a shard */
    const int part = get_group_id(2) % a.parts;
    const int begin = (int)part_begin(part, a.run_pixels, a.part_pixels);
    const int count = (int)part_end(begin, a.run_pixels, a.part_pixels, all) - begin;
    const size_t tile = get_group_id(2) / a.parts * a.shard_tiles + begin / pixels;
    const size_t x_tile = (size_t)a.groups * a.channels * of.in_h * of.in_w * LANES;
    const size_t dz_tile = (size_t)a.groups * a.filters * pixels * LANES;
    x += x_first + tile * x_tile + (size_t)g * a.channels * of.in_h * of.in_w * LANES;
    dz += dz_first + tile * dz_tile + (size_t)g * a.filters * pixels * LANES;
    int i = begin % pixels / of.out_w, j = begin % of.out_w;

    /* The rows that the work-item brings; past the end the last one, which is not stored. */
    int tap_y[M_TURNS], tap_x[M_TURNS], from_x[M_TURNS], from_dz[N_TURNS];
    UNROLL for (int f = 0; f < M_TURNS; f++) {
        const uint e = min(m0 + row + f * K_ROWS, rows - 1);
        tap_y[f] = e % TAPS / TAPS_X * of.gap_y - of.pad_y;
        tap_x[f] = e % TAPS_X * of.gap_x - of.pad_x;
        from_x[f] = (e / TAPS * of.in_h + tap_y[f]) * of.in_w * ROW + tap_x[f] * ROW +
                    quad * 4 * (int)sizeof(S);
    }
    UNROLL for (int f = 0; f < N_TURNS; f++)
        from_dz[f] = min(n0 + row + f * K_ROWS, a.filters - 1) * pixels * ROW +
                     quad * 4 * (int)sizeof(S);

    __local const Q *my_a = slices + my_left(), *my_b = slices + BK * A_PITCH + my_right();
    __local real *to_a = (__local real *)(slices + quad * 4 * A_PITCH) + row;
    __local real *to_b = (__local real *)(slices + BK * A_PITCH + quad * 4 * B_PITCH) + row;
    Q acc[ROWS / 4][COLUMNS / 4][4], a_next[M_TURNS], b_next[N_TURNS];
    bool on[M_TURNS];
    int now = 0; /* half of local memory that is read */
    UNROLL for (int m = 0; m < ROWS; m++)
        UNROLL for (int n = 0; n < COLUMNS / 4; n++)
            acc[m / 4][n][m % 4] = 0;

#define FETCH()                                                                                \
    UNROLL for (int f = 0; f < M_TURNS; f++) {                                                 \
        a_next[f] = (Q)(0);                                                                    \
        if (on[f])                                                                             \
            a_next[f] = fetch_stored(x, from_x[f] + at_x);                                     \
    }                                                                                          \
    UNROLL for (int f = 0; f < N_TURNS; f++)                                                   \
        b_next[f] = fetch_stored(dz, from_dz[f] + at_dz);
#define STASH()                                                                                \
    UNROLL for (int f = 0; f < M_TURNS; f++)                                                   \
        put(to_a + 4 * now + f * K_ROWS, A_PITCH, factors(a_next[f]));                         \
    UNROLL for (int f = 0; f < N_TURNS; f++)                                                   \
        put(to_b + 4 * now + f * K_ROWS, B_PITCH, factors(b_next[f]));                         \
    barrier(CLK_LOCAL_MEM_FENCE);

    /* Each slice is brought while the one before is multiplied: the first time that is zeros,
     * and behind the last pixel one slice is brought for nothing. */
    for (int q = id; q < SLICE; q += GROUP)
        slices[q] = (Q)(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int n = 0; n <= count; n++) {
        const int there = n < count ? LANES / BK : 1;
        int at_x = (i * of.stride_y * of.in_w + j * of.stride_x) * ROW;
        int at_dz = (i * of.out_w + j) * ROW;
        UNROLL for (int f = 0; f < M_TURNS; f++)
            on[f] = (uint)(i * of.stride_y + tap_y[f]) < (uint)of.in_h &&
                    (uint)(j * of.stride_x + tap_x[f]) < (uint)of.in_w;
        _Pragma("unroll 1") for (int slice = 0; slice < there; slice++)
        {
            FETCH()
            STARTED;
            add_slice(my_a + now, my_b + now, acc, slices + 2 * SLICE);
            now = SLICE - now;
            STASH()
            at_x += BK * (int)sizeof(S);
            at_dz += BK * (int)sizeof(S);
        }
        if (n + 1 < count && ++j == of.out_w) {
            j = 0;
            if (++i == of.out_h) {
                i = 0;
                x += x_tile;
                dz += dz_tile;
            }
        }
    }

    out += out_first + (size_t)get_group_id(2) * out_stride + g * a.filters;
    UNROLL for (int m = 0; m < ROWS; m++)
        UNROLL for (int n = 0; n < COLUMNS; n++) {
            const int e = m0 + ROW_QUAD(my_row(), m / 4) * 4 + m % 4;
            const int k = n0 + COLUMN_QUAD(my_column(), n / 4) * 4 + n % 4;
            const Q four = acc[m / 4][n / 4][m % 4];
            if (e < rows && k < a.filters)
                out[(size_t)e * (a.groups * a.filters) + k] = ELEMENT(four, n % 4);
        }
}
