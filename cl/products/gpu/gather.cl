/* Convolution as a product of matrices, for the GPU class: filters times columns, a column
 * being one lane of an output pixel. It serves the forward pass and, with turned weights, the
 * data gradient (with strides once for each phase of the image). Nothing is gathered in memory:
 * columns are read where they lie.
 *
 *   y[k, i, j] = bias[k] + sum over c, r, s of
 *       w[c, r, s, k] * x[c, i*stride_y + r*gap_y - pad_y, j*stride_x + s*gap_x - pad_x]
 *
 * One chain of products a result, in the order (c/CHUNK, r, s, c%CHUNK); outside the image x
 * is 0. Then relu (RELU) and, with POOL, a max-pool over 2x2 outputs: `won` keeps which did,
 * 0..3 in row-major order, or 4 where relu cut it off.
 *
 *   x: [tiles][groups][channels][in_h][in_w]
 *   w: [groups][channels][TAPS_Y][TAPS_X][w_pitch] from w_first on, w_group apart
 *   y: [tiles][groups][filters][plane] from y_first on, rows y_row, columns y_column apart
 *
 * GATED: y is 0 where `gate`, of its layout, is not above 0.
 * w_first, w_group, w_pitch are multiples of 4. The weights, and the tiles of x that a block
 * meets, are smaller than 2^31 bytes.
 * Group ids: 0: block of BN columns, 1: block of BM filters, 2: group of channels.
 * -D: TAPS_Y TAPS_X CHUNK RELU POOL GATED, EVEN: slices have no channels past the last
 */
#include "lib/real.cl"
#include "products/gpu/args.h"
#include "products/kernel/args.h"
#ifdef MATRIX
#define PAD 1
#else
#define PAD 0
#endif
#include "products/gpu/gemm.cl"

/* Where Q number `id` of a slice lies that has `quads` in a row. */
#define PLACE(id, quads) ((id) + PAD * ((id) / (quads)))
#define TAPS (TAPS_Y * TAPS_X)
#define ROW (LANES * (int)sizeof(S)) /* a pixel */
#if TAPS > 32
typedef ulong M; /* a bit a tap */
#else
typedef uint M;
#endif

/* Rows of a slice: BK/CHUNK taps of CHUNK channels each. Row `row` of the group's turn f: */
#define TAP_OF(f, rows, row) ((f) * (rows) / CHUNK + (rows > CHUNK ? (row) / CHUNK : 0))
#define CHANNEL_OF(f, rows, row) ((f) * (rows) % CHUNK + (row) % CHUNK)

struct place {
    int tile, i, j, lane;
};

#if POOL
/* The four pixels of a pool lie beside each other, RUN lanes each, so that a block has all. */
#define RUN (4 * LANES < BN ? LANES : BN / 4)

INLINE struct place place_of(int column, int height, int width)
{
    const int run = column / (4 * RUN), pixel = run / (LANES / RUN), which = column / RUN % 4;
    return (struct place){pixel / (width / 2) / (height / 2),
                          pixel / (width / 2) % (height / 2) * 2 + which / 2,
                          pixel % (width / 2) * 2 + which % 2,
                          run % (LANES / RUN) * RUN + column % RUN};
}
#else
INLINE struct place place_of(int column, int height, int width)
{
    const int pixel = column / LANES;
    return (struct place){pixel / width / height, pixel / width % height, pixel % width,
                          column % LANES};
}
#endif

/* The taps of the pixel whose first tap lies at (i, j) that are inside the image. */
INLINE M taps_inside(int i, int j, int height, int width, int gap_y, int gap_x)
{
    M inside = 0;
    for (int r = 0; r < TAPS_Y; r++)
        for (int s = 0; s < TAPS_X; s++)
            if ((uint)(i + r * gap_y) < (uint)height && (uint)(j + s * gap_x) < (uint)width)
                inside |= (M)1 << (r * TAPS_X + s);
    return inside;
}

INLINE real activate(real v)
{
    return RELU && v < 0 ? 0 : v;
}

INLINE Q activate_quad(Q v)
{
    return (Q)(activate(v.x), activate(v.y), activate(v.z), activate(v.w));
}

#if GATED
#define GATE(p, v) (LOAD_QUAD(p) > (Q)(0) ? (v) : (Q)(0))
#else
#define GATED 0
#define GATE(p, v) (v)
#endif

INLINE void store(const Q acc[ROWS / 4][COLUMNS / 4][4], __global S *y, __global const S *gate,
                  int tiles, int filters, int out_height, int out_width, int plane, int y_row,
                  int y_column)
{
    const size_t image = (size_t)get_num_groups(2) * filters * plane;
    UNROLL for (int j = 0; j < COLUMNS / 4; j++) {
        const struct place at =
            place_of(get_group_id(0) * BN + COLUMN_QUAD(my_column(), j) * 4, out_height,
                     out_width);
        if (at.tile >= tiles)
            continue;
        const size_t first = at.tile * image * LANES +
                             (size_t)(at.i * y_row + at.j * y_column) * LANES + at.lane;
        UNROLL for (int i = 0; i < ROWS; i++) {
            const int k = get_group_id(1) * BM + ROW_QUAD(my_row(), i / 4) * 4 + i % 4;
            const size_t to = first + (size_t)k * plane * LANES;
            if (k < filters)
                STORE_QUAD(y + to, GATE(gate + to, activate_quad(acc[i / 4][j][i % 4])));
        }
    }
}

#if POOL
/* The first greatest of four. */
INLINE real greatest(real v0, real v1, real v2, real v3, uchar *which)
{
    real most = v1 > v0 ? v1 : v0;
    *which = v1 > v0;
    *which = v2 > most ? 2 : *which;
    most = v2 > most ? v2 : most;
    *which = v3 > most ? 3 : *which;
    most = v3 > most ? v3 : most;
    *which = RELU && most <= 0 ? 4 : *which;
    return activate(most);
}

INLINE Q greatest_quad(Q v0, Q v1, Q v2, Q v3, uchar4 *which)
{
    uchar at[4];
    const Q most = (Q)(greatest(v0.x, v1.x, v2.x, v3.x, &at[0]),
                       greatest(v0.y, v1.y, v2.y, v3.y, &at[1]),
                       greatest(v0.z, v1.z, v2.z, v3.z, &at[2]),
                       greatest(v0.w, v1.w, v2.w, v3.w, &at[3]));
    *which = (uchar4)(at[0], at[1], at[2], at[3]);
    return most;
}

/* A pool's pixels lie with several work-items: they meet in local memory, a row of every
 * work-item at a time. */
INLINE void store_pooled(const Q acc[ROWS / 4][COLUMNS / 4][4], __local Q *met, __global S *y,
                         __global uchar *won, int tiles, int filters, int out_height,
                         int out_width, int plane)
{
    const size_t image = (size_t)get_num_groups(2) * filters * plane;
    UNROLL for (int i = 0; i < ROWS; i++) {
        barrier(CLK_LOCAL_MEM_FENCE);
        UNROLL for (int j = 0; j < COLUMNS / 4; j++)
            met[my_row() * B_QUADS + COLUMN_QUAD(my_column(), j)] = acc[i / 4][j][i % 4];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int q = get_local_id(0); q < BM / ROWS * (B_QUADS / 4); q += GROUP) {
            const int row = q / (B_QUADS / 4), at = q % (B_QUADS / 4);
            const int first = at / (RUN / 4) * RUN + at % (RUN / 4);
            __local const Q *v = met + row * B_QUADS + first;
            const struct place p =
                place_of(get_group_id(0) * BN + first * 4, out_height, out_width);
            const int k = get_group_id(1) * BM + ROW_QUAD(row, i / 4) * 4 + i % 4;
            if (p.tile >= tiles || k >= filters)
                continue;
            const size_t to =
                (p.tile * image + (size_t)k * plane + p.i / 2 * (out_width / 2) + p.j / 2) *
                    LANES + p.lane;
            uchar4 which;
            STORE_QUAD(y + to, greatest_quad(v[0], v[RUN / 4], v[2 * (RUN / 4)],
                                             v[3 * (RUN / 4)], &which));
            if (won)
                *(__global uchar4 *)(won + to) = which;
        }
    }
}
#endif

GROUP_KERNEL void conv2d_gpu(__global const S *restrict x, int x_first,
                             __global const real *restrict w, int w_first,
                             __global const real *restrict bias, __global S *restrict y,
                             int y_first, __global uchar *restrict won,
                             __global const S *restrict gate, struct lk_gpu_gather a,
                             struct lk_geometry of)
{
    __local Q slices[2 * SLICE + EXCHANGE];
    const int id = get_local_id(0), a_row = id / A_QUADS, b_row = id / B_QUADS;
    const int g = get_group_id(2), k0 = get_group_id(1) * BM;
    /* In bytes. */
    const int w_stride = a.w_pitch * (int)sizeof(real), x_stride = of.in_h * of.in_w * ROW;
    const int column_stride = of.gap_x * ROW;
    /* From a row's end. */
    const int row_stride = of.gap_y * of.in_w * ROW - TAPS_X * column_stride;
    const int chunks = (a.channels + CHUNK - 1) / CHUNK * TAPS;
    const int slice_count = (chunks * CHUNK + BK - 1) / BK;

    /* The column of w that the work-item brings; past the end a column that is not stored. */
    const int k = min(k0 + id % A_QUADS * 4, (a.filters - 1) / 4 * 4);
    const int from_w = CHANNEL_OF(0, A_ROWS, a_row) * TAPS * w_stride + k * (int)sizeof(real);
    w += w_first + (size_t)g * a.w_group;

    /* The column of x that it brings: where in its tile the first tap of its pixel lies. */
    const int column = get_group_id(0) * BN + id % B_QUADS * 4;
    const int first_tile = place_of(get_group_id(0) * BN, of.out_h, of.out_w).tile;
    const struct place at = place_of(column, of.out_h, of.out_w);
    const int i = at.i * of.stride_y - of.pad_y, j = at.j * of.stride_x - of.pad_x;
    const size_t image = (size_t)get_num_groups(2) * a.channels * of.in_h * of.in_w * LANES;
    const M inside =
        at.tile < a.tiles ? taps_inside(i, j, of.in_h, of.in_w, of.gap_y, of.gap_x) : 0;
    const int from_x = ((at.tile - first_tile) * (int)image + at.lane) * (int)sizeof(S) +
                       (i * of.in_w + j) * ROW + CHANNEL_OF(0, B_ROWS, b_row) * x_stride;
    x += x_first + first_tile * image + (size_t)g * a.channels * of.in_h * of.in_w * LANES;

    /* The last channel, less those that lie before the work-item's row. */
    const int last_a = a.channels - 1 - CHANNEL_OF(0, A_ROWS, a_row);
    const int last_b = a.channels - 1 - CHANNEL_OF(0, B_ROWS, b_row);

    __local const Q *my_a = slices + my_left(), *my_b = slices + BK * A_PITCH + my_right();
    __local Q *to_a = slices + PLACE(id, A_QUADS);
    __local Q *to_b = slices + BK * A_PITCH + PLACE(id, B_QUADS);
    Q acc[ROWS / 4][COLUMNS / 4][4], a_next[A_TURNS], b_next[B_TURNS];
    int now = 0; /* of local memory, that is read */

    UNROLL for (int m = 0; m < ROWS; m++) {
        const int n = k0 + ROW_QUAD(my_row(), m / 4) * 4 + m % 4;
        const Q first = bias ? bias[g * a.filters + min(n, a.filters - 1)] : 0;
        UNROLL for (int n = 0; n < COLUMNS / 4; n++)
            acc[m / 4][n][m % 4] = first;
    }

#define FETCH(n)                                                                               \
    {                                                                                          \
        UNROLL for (int f = 0; f < A_TURNS; f++) {                                             \
            const uint chunk = (n) * (BK / CHUNK) + TAP_OF(f, A_ROWS, a_row);                  \
            const int first = CHANNEL_OF(f, A_ROWS, 0) + chunk / TAPS * CHUNK;                 \
            const int channel = EVEN ? first : min(first, last_a);                             \
            a_next[f] = fetch(w, from_w + (channel * TAPS + (int)(chunk % TAPS)) * w_stride);  \
        }                                                                                      \
        UNROLL for (int f = 0; f < B_TURNS; f++) {                                             \
            const uint chunk = (n) * (BK / CHUNK) + TAP_OF(f, B_ROWS, b_row);                  \
            const uint tap = chunk % TAPS;                                                     \
            const int channel = CHANNEL_OF(f, B_ROWS, 0) + chunk / TAPS * CHUNK;               \
            b_next[f] = (Q)(0);                                                                \
            if ((inside >> tap & 1) && (EVEN || channel <= last_b))                            \
                b_next[f] = fetch_stored(x, from_x + channel * x_stride +                      \
                                                (int)tap * column_stride +                     \
                                                (int)(tap / TAPS_X) * row_stride);             \
        }                                                                                      \
    }
#define STASH()                                                                                \
    {                                                                                          \
        UNROLL for (int f = 0; f < A_TURNS; f++)                                               \
            to_a[now + f * A_ROWS * A_PITCH] = factors(a_next[f]);                             \
        UNROLL for (int f = 0; f < B_TURNS; f++)                                               \
            to_b[now + f * B_ROWS * B_PITCH] = factors(b_next[f]);                             \
        barrier(CLK_LOCAL_MEM_FENCE);                                                          \
    }

#if TAPS > 0
    FETCH(0)
    STASH()
    for (int n = 1; n <= slice_count; n++) {
        FETCH(min(n, slice_count - 1)) /* the last time, any will do */
        add_slice(my_a + now, my_b + now, acc, slices + 2 * SLICE);
        now = SLICE - now;
        STASH()
    }
#endif
    const size_t planes = (size_t)g * a.filters * a.plane * LANES;
    y += y_first + planes;
#if POOL
    store_pooled(acc, slices, y, won ? won + planes : 0, a.tiles, a.filters, of.out_h, of.out_w,
                 a.plane);
#else
    store(acc, y, GATED ? gate + y_first + planes : 0, a.tiles, a.filters, of.out_h, of.out_w,
          a.plane, a.y_row, a.y_column);
#endif
}

/* The weights of a gather whose rows are not whole Qs, or not in w's order:
 *   to[g][n][r][s][k] = w[first + g*group_stride + k*out_stride + n*in_stride + r*row_stride +
 *                         s*column_stride], or 0 where k >= outs
 * Group ids: 0: row (n, r, s), 1: g. Work-items: k. */
KERNEL void conv2d_turn(__global const real *restrict w, __global real *restrict to,
                        int to_first, struct lk_gpu_turn a)
{
    const int row = get_group_id(0), g = get_group_id(1), tap = row % TAPS;
    w += a.first + g * a.group_stride + row / TAPS * a.in_stride + tap / TAPS_X * a.row_stride +
         tap % TAPS_X * a.column_stride;
    to += to_first + ((size_t)g * get_num_groups(0) + row) * a.w_pitch;
    for (int k = PART; k < a.w_pitch; k += PARTS)
        to[k] = k < a.outs ? w[(size_t)k * a.out_stride] : 0;
}
