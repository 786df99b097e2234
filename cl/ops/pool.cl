/* Pooling over windows of SIZE_H x SIZE_W pixels, STRIDE_H and STRIDE_W apart; window (oh, ow)
 * starts at pixel (oh * STRIDE_H - before_h, ow * STRIDE_W - before_w), padding is never seen.
 *
 *   max_forward       y = the largest pixel, the first in row order of equals; NaN if one is
 *   max_backward      dx = the sum of dy of the windows whose largest pixel it was
 *   average_forward   y = the mean of the window's real pixels (COUNT_PADDING: padding is 0)
 *   average_backward  dx = the sum of dy / pixels of the windows it is in
 *
 * x, dx: stored [tiles][c][height][width][LANES]; y, dy: [tiles][c][out_h][out_w][LANES];
 * positions: POSITION (uchar, ushort or int) like y, r * SIZE_W + s of the maximum, written if
 * KEEP.
 * Group ids: 0: `each` rows of what is written; 1: plane c; 2: tile. Work-items: PARTS.
 */
#include "lib/hints.cl"
#include "lib/real.cl"
#include "ops/args.h"

#define FIRST_ROW (GROUP_ID(0) * a.each)
#define PLANE ((size_t)GROUP_ID(2) * GROUP_COUNT(1) + GROUP_ID(1))

/* Windows that see a pixel: from first to last, where last may be below first. */
INLINE int first_window(int pixel, int before, int size, int stride)
{
    const int reach = pixel + before - size;
    return reach < 0 ? 0 : reach / stride + 1;
}

INLINE int last_window(int pixel, int before, int stride, int count)
{
    return min((pixel + before) / stride, count - 1);
}

/* How many pixels of a window that starts at `start` lie in the image. */
INLINE int pixels_seen(int start, int size, int pixels)
{
    return min(start + size, pixels) - max(start, 0);
}

#ifdef POSITION
#if VECTOR == 1
typedef POSITION P;
#define TO_P(x) ((P)(x))
#else
typedef PASTE(POSITION, VECTOR) P;
#define TO_P(x) PASTE(PASTE(convert_, POSITION), VECTOR)(x)
#endif

struct greatest {
    V value;
    I position;
};

/* The largest of the window's pixels in rows r0 to r1 and columns s0 to s1, and its place; x:
 * the window's first pixel. Fetches the window below meanwhile. */
INLINE struct greatest find_greatest(__global const S *x, int width, int r0, int r1, int s0,
                                     int s1)
{
    struct greatest best = {LOAD(x + (r0 * width + s0) * PARTS), (I)(r0 * SIZE_W + s0)};
    for (int r = r0; r < r1; r++)
        for (int s = s0; s < s1; s++) {
            const V v = LOAD(x + (r * width + s) * PARTS);
            PREFETCH(x + ((r + STRIDE_H) * width + s) * PARTS);
            const I larger = !(v <= best.value) & (best.value == best.value);
            best.value = larger ? v : best.value;
            best.position = larger ? (I)(r * SIZE_W + s) : best.position;
        }
    return best;
}

KERNEL void max_forward(__global const S *restrict x, __global P *restrict positions,
                        __global S *restrict y, struct lk_pool a GROUP_ARGS)
{
    x += PLANE * a.height * a.width * PARTS + PART;
    y += PLANE * a.out_h * a.out_w * PARTS + PART;
    for (int oh = FIRST_ROW; oh < min(FIRST_ROW + a.each, a.out_h); oh++)
        for (int ow = 0; ow < a.out_w; ow++) {
            const int h = oh * STRIDE_H - a.before_h, w = ow * STRIDE_W - a.before_w;
            __global const S *from = x + ((long)h * a.width + w) * PARTS;
            const bool is_whole =
                h >= 0 && w >= 0 && h + SIZE_H <= a.height && w + SIZE_W <= a.width;
            const struct greatest best =
                is_whole ? find_greatest(from, a.width, 0, SIZE_H, 0, SIZE_W)
                         : find_greatest(from, a.width, max(-h, 0), min(SIZE_H, a.height - h),
                                         max(-w, 0), min(SIZE_W, a.width - w));
            STORE(y + (size_t)(oh * a.out_w + ow) * PARTS, best.value);
#ifdef KEEP
            positions[(PLANE * a.out_h * a.out_w + oh * a.out_w + ow) * PARTS + PART] =
                TO_P(best.position);
#endif
        }
}

/* Windows of a pixel down and across, at most. */
#define REACH_H ((SIZE_H + STRIDE_H - 1) / STRIDE_H)
#define REACH_W ((SIZE_W + STRIDE_W - 1) / STRIDE_W)

#if VECTOR == 1 && REACH_H * REACH_W <= 9
/* A GPU waits for its memory: so a work-item goes over blocks of BLOCK pixels, as many as
 * SPAN windows begin with, and starts the loads of all windows of a block together. */
#define SPAN (STRIDE_W < 8 ? 8 / STRIDE_W : 1)
#define BLOCK (SPAN * STRIDE_W)

/* Adds to the block that begins `STRIDE_W ow` pixels behind the first padding what its windows
 * in row oh of windows, whose row r it lies in, have for it. dy, positions: of the plane. */
INLINE void add_windows(V sum[BLOCK], __global const S *dy, __global const P *positions,
                        const struct lk_pool *a, int oh, int r, int ow)
{
    const bool sees_row = oh >= 0 && oh < a->out_h && r < SIZE_H;
    const int row = clamp(oh, 0, (int)a->out_h - 1) * a->out_w;
    V d[SPAN + REACH_W - 1];
    I at[SPAN + REACH_W - 1];
    UNROLL for (int n = 0; n < SPAN + REACH_W - 1; n++) {
        const int o = ow + n - (REACH_W - 1);
        const int from = (row + clamp(o, 0, (int)a->out_w - 1)) * PARTS;
        d[n] = LOAD(dy + from);
        at[n] = sees_row && o >= 0 && o < a->out_w ? TO_I(positions[from]) : (I)(-1);
    }
    UNROLL for (int n = 0; n < SPAN + REACH_W - 1; n++)
        UNROLL for (int j = 0; j < BLOCK; j++) {
            const int s = j - (n - (REACH_W - 1)) * STRIDE_W;
            if (s >= 0 && s < SIZE_W)
                sum[j] += at[n] == (I)(r * SIZE_W + s) ? d[n] : (V)0;
        }
}

/* Row h of the plane, windows in ascending order as below. */
INLINE void backward_row(__global const S *dy, __global const P *positions, __global S *dx,
                         const struct lk_pool *a, int h)
{
    const int oh = (h + a->before_h) / STRIDE_H, r = (h + a->before_h) % STRIDE_H;
    for (int ow = 0; ow * STRIDE_W - a->before_w < a->width; ow += SPAN) {
        V sum[BLOCK];
        UNROLL for (int j = 0; j < BLOCK; j++)
            sum[j] = 0;
        UNROLL for (int k = REACH_H - 1; k >= 0; k--)
            add_windows(sum, dy, positions, a, oh - k, r + k * STRIDE_H, ow);
        UNROLL for (int j = 0; j < BLOCK; j++) {
            const int w = ow * STRIDE_W - a->before_w + j;
            if (w >= 0 && w < a->width)
                STORE(dx + (h * a->width + w) * PARTS, sum[j]);
        }
    }
}
#else
INLINE void backward_row(__global const S *dy, __global const P *positions, __global S *dx,
                         const struct lk_pool *a, int h)
{
    for (int w = 0; w < a->width; w++) {
        V sum = 0;
        const int last_h = last_window(h, a->before_h, STRIDE_H, a->out_h);
        const int last_w = last_window(w, a->before_w, STRIDE_W, a->out_w);
        const int first_w = first_window(w, a->before_w, SIZE_W, STRIDE_W);
        for (int oh = first_window(h, a->before_h, SIZE_H, STRIDE_H); oh <= last_h; oh++)
            for (int ow = first_w; ow <= last_w; ow++) {
                const int r = h + a->before_h - oh * STRIDE_H;
                const int s = w + a->before_w - ow * STRIDE_W;
                const size_t at = (size_t)(oh * a->out_w + ow) * PARTS;
                const I here = TO_I(positions[at]) == (I)(r * SIZE_W + s);
                sum += here ? LOAD(dy + at) : (V)0;
            }
        STORE(dx + (size_t)(h * a->width + w) * PARTS, sum);
    }
}
#endif

KERNEL void max_backward(__global const S *restrict dy, __global const P *restrict positions,
                         __global S *restrict dx, struct lk_pool a GROUP_ARGS)
{
    dx += PLANE * a.height * a.width * PARTS + PART;
    dy += PLANE * a.out_h * a.out_w * PARTS + PART;
    positions += PLANE * a.out_h * a.out_w * PARTS + PART;
    for (int h = FIRST_ROW; h < min(FIRST_ROW + a.each, a.height); h++)
        backward_row(dy, positions, dx, &a, h);
}
#else

#ifdef COUNT_PADDING
#define DIVISOR(h, w) ((real)(SIZE_H * SIZE_W))
#else
#define DIVISOR(h, w)                                                                          \
    ((real)(pixels_seen(h, SIZE_H, a.height) * pixels_seen(w, SIZE_W, a.width)))
#endif

KERNEL void average_forward(__global const S *restrict x, __global const uchar *restrict unused,
                            __global S *restrict y, struct lk_pool a GROUP_ARGS)
{
    x += PLANE * a.height * a.width * PARTS + PART;
    y += PLANE * a.out_h * a.out_w * PARTS + PART;
    for (int oh = FIRST_ROW; oh < min(FIRST_ROW + a.each, a.out_h); oh++)
        for (int ow = 0; ow < a.out_w; ow++) {
            const int h = oh * STRIDE_H - a.before_h, w = ow * STRIDE_W - a.before_w;
            V sum = 0;
            for (int r = max(h, 0); r < min(h + SIZE_H, a.height); r++) {
                V row = 0;
                for (int s = max(w, 0); s < min(w + SIZE_W, a.width); s++)
                    row += LOAD(x + (size_t)(r * a.width + s) * PARTS);
                sum += row;
            }
            STORE(y + (size_t)(oh * a.out_w + ow) * PARTS, sum / DIVISOR(h, w));
        }
}

KERNEL void average_backward(__global const S *restrict dy,
                             __global const uchar *restrict unused, __global S *restrict dx,
                             struct lk_pool a GROUP_ARGS)
{
    dx += PLANE * a.height * a.width * PARTS + PART;
    dy += PLANE * a.out_h * a.out_w * PARTS + PART;
    for (int h = FIRST_ROW; h < min(FIRST_ROW + a.each, a.height); h++)
        for (int w = 0; w < a.width; w++) {
            V sum = 0;
            const int last_h = last_window(h, a.before_h, STRIDE_H, a.out_h);
            const int last_w = last_window(w, a.before_w, STRIDE_W, a.out_w);
            for (int oh = first_window(h, a.before_h, SIZE_H, STRIDE_H); oh <= last_h; oh++)
                for (int ow = first_window(w, a.before_w, SIZE_W, STRIDE_W); ow <= last_w; ow++)
                    sum += LOAD(dy + (size_t)(oh * a.out_w + ow) * PARTS) /
                           DIVISOR(oh * STRIDE_H - a.before_h, ow * STRIDE_W - a.before_w);
            STORE(dx + (size_t)(h * a.width + w) * PARTS, sum);
        }
}
#endif
