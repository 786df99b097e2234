/* The weight gradient of depthwise convolutions, for the GPU class: strips of STRIP rows of dz
 * make as many sums as a large GPU wants, and all taps of a block are summed in registers, so
 * that every number is loaded about once and many are on their way.
 *
 *   out[part][r, s, c] = sum over the part's strips, blocks, and in a block i, j and lanes of
 *       dz[c, i, j] * x[c, i*STRIDE_Y + r*GAP_Y - PAD_Y, j*STRIDE_X + s*GAP_X - PAD_X]
 *
 * One chain a lane, in this order; then the lanes are added as a tree. A block is COLUMNS
 * columns of a strip; both sizes are part of the order. Outside the image x and dz are 0. A
 * part is part_strips strips of a shard, tiles in turn, or what is left of it.
 *
 *   x: [tiles][channels][IN_H][IN_W]; dz: [tiles][channels][OUT_H][OUT_W] from dz_first on
 *   out: [parts] out_stride apart; scratch: [taps][LANES + 1]
 *
 * Group id 0: channels of a part, part after part: other dimensions of some devices are short.
 * -D: TAPS_Y TAPS_X STRIDE_Y STRIDE_X GAP_Y GAP_X PAD_Y PAD_X IN_H IN_W OUT_H OUT_W STRIP
 *     COLUMNS
 */
#include "lib/real.cl"

#define TAPS (TAPS_Y * TAPS_X)
#define STRIPS ((OUT_H + STRIP - 1) / STRIP) /* of an image */

/* The pixel of an image of height x width, from its lane's first on; 0 outside. Inside nothing
 * has to be asked, and no load waits for an answer anyway. */
INLINE V pixel(__global const S *image, int height, int width, int i, int j, bool edge)
{
    if (!edge)
        return LOAD(image + (i * width + j) * PARTS);
    const bool is_there = i >= 0 && i < height && j >= 0 && j < width;
    const V v =
        LOAD(image + (clamp(i, 0, height - 1) * width + clamp(j, 0, width - 1)) * PARTS);
    return is_there ? v : (V)0;
}

INLINE void weigh_block(V a[TAPS], __global const S *x, __global const S *dz, int i0, int j0,
                        bool edge)
{
    UNROLL for (int i = 0; i < STRIP; i++) {
        const int row = (i0 + i) * STRIDE_Y - PAD_Y, column = j0 * STRIDE_X - PAD_X;
        V d[COLUMNS];
        UNROLL for (int j = 0; j < COLUMNS; j++)
            d[j] = pixel(dz, OUT_H, OUT_W, i0 + i, j0 + j, edge);
        UNROLL for (int n = 0; n < TAPS; n++)
            UNROLL for (int j = 0; j < COLUMNS; j++)
                a[n] = FMA(d[j],
                           pixel(x, IN_H, IN_W, row + n / TAPS_X * GAP_Y,
                                 column + j * STRIDE_X + n % TAPS_X * GAP_X, edge),
                           a[n]);
    }
}

/* Whether taps of outputs first .. first + count - 1, or these themselves, are outside. */
INLINE bool is_edge(int first, int count, int stride, int reach, int pad, int in, int out)
{
    return first * stride - pad < 0 || first + count > out ||
           (first + count - 1) * stride + reach - pad >= in;
}

INLINE void weigh_strip(V a[TAPS], __global const S *x, __global const S *dz, int i0)
{
    const bool edge = is_edge(i0, STRIP, STRIDE_Y, (TAPS_Y - 1) * GAP_Y, PAD_Y, IN_H, OUT_H);
    for (int j0 = 0; j0 < OUT_W; j0 += COLUMNS) {
        if (edge ||
            is_edge(j0, COLUMNS, STRIDE_X, (TAPS_X - 1) * GAP_X, PAD_X, IN_W, OUT_W))
            weigh_block(a, x, dz, i0, j0, true);
        else
            weigh_block(a, x, dz, i0, j0, false);
    }
}

/* Adds the lanes of all taps at once, a tap for each work-item: as lib/sum.cl does, which would
 * take as many barriers for each. */
INLINE void store_sums(const V a[TAPS], __global real *out, int channels,
                       __local real *scratch)
{
    UNROLL for (int n = 0; n < TAPS; n++)
        scratch[n * (LANES + 1) + PART] = a[n];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int n = PART; n < TAPS; n += PARTS) {
        real lanes[LANES];
        UNROLL for (int l = 0; l < LANES; l++)
            lanes[l] = scratch[n * (LANES + 1) + l];
        UNROLL for (int apart = LANES / 2; apart > 0; apart /= 2)
            UNROLL for (int l = 0; l < apart; l++)
                lanes[l] += lanes[l + apart];
        out[n * channels] = lanes[0];
    }
}

KERNEL void conv2d_depthwise_sums(__global const S *restrict x, __global const S *restrict dz,
                                  int dz_first, __global real *restrict out, int out_first,
                                  int out_stride, int channels, int shard_tiles,
                                  int part_strips, __local real *scratch)
{
    const int c = get_group_id(0) % channels, part = get_group_id(0) / channels;
    const int all = shard_tiles * STRIPS; /* of a shard */
    const int parts = (all + part_strips - 1) / part_strips, first = part % parts * part_strips;
    V a[TAPS];
    UNROLL for (int n = 0; n < TAPS; n++)
        a[n] = (V)0;
    dz += dz_first;
    for (int n = first; n < min(first + part_strips, all); n++) {
        const size_t tile = (size_t)(part / parts) * shard_tiles + n / STRIPS;
        const size_t image = tile * channels + c;
        weigh_strip(a, x + image * (IN_H * IN_W * PARTS) + PART,
                    dz + image * (OUT_H * OUT_W * PARTS) + PART, n % STRIPS * STRIP);
    }
    store_sums(a, out + out_first + (size_t)part * out_stride + c, channels, scratch);
}
