/* Enlarges planes by SIZE_H and SIZE_W. Pixel o of an enlarged axis has its centre at place
 * (o + 1/2) / SIZE - 1/2 of the small one (as in Keras, and in PyTorch with align_corners off).
 *
 *   nearest_forward    y = the pixel whose centre is nearest: every pixel SIZE_H x SIZE_W times
 *   nearest_backward   dx = the sum of its copies' dy, row by row
 *   bilinear_forward   y = on lines between the two nearest pixels, down and then across;
 * beyond the outermost centres the outermost pixel bilinear_backward  dx = the sum of dy of all
 * pixels around, by the same weights
 *
 * x, dx: stored [tiles][c][height][width][LANES]; y, dy: [tiles][c][height * SIZE_H]
 * [width * SIZE_W][LANES]. Group ids: 0: `each` rows of x; 1: plane c; 2: tile. Work-items:
 * PARTS. -D: SIZE_H, SIZE_W, STREAM: y is too large for caches.
 */
#include "lib/hints.cl"
#include "lib/real.cl"

#include "lib/put.cl"

#define FIRST_ROW ((int)get_group_id(0) * each)
#define PLANE ((size_t)get_group_id(2) * get_num_groups(1) + get_group_id(1))
#define ROW ((size_t)width * SIZE_W * PARTS) /* of y */

/* The place of copy number i of a pixel, as seen from the pixel: -1/2 to 1/2. */
#define PLACE(i, size) ((real)(2 * (i) + 1 - (size)) / (real)(2 * (size)))

KERNEL void nearest_forward(__global const S *restrict x, __global S *restrict y, int height,
                            int width, int each)
{
    x += PLANE * height * width * PARTS + PART;
    y += PLANE * height * SIZE_H * ROW + PART;
    for (int h = FIRST_ROW; h < min(FIRST_ROW + each, height); h++)
        for (int r = 0; r < SIZE_H; r++) {
            __global const S *from = x + (size_t)h * width * PARTS;
            __global S *to = y + (size_t)(h * SIZE_H + r) * ROW;
            for (int w = 0; w < width; w++) {
                const V v = LOAD(from + w * PARTS);
                for (int s = 0; s < SIZE_W; s++)
                    PUT(to + (w * SIZE_W + s) * PARTS, v);
            }
        }
}

KERNEL void nearest_backward(__global const S *restrict dy, __global S *restrict dx, int height,
                             int width, int each)
{
    dx += PLANE * height * width * PARTS + PART;
    dy += PLANE * height * SIZE_H * ROW + PART;
    for (int h = FIRST_ROW; h < min(FIRST_ROW + each, height); h++)
        for (int w = 0; w < width; w++) {
            V sum = 0;
            for (int r = 0; r < SIZE_H; r++) {
                __global const S *from = dy + (size_t)(h * SIZE_H + r) * ROW;
                V row = 0;
                UNROLL for (int s = 0; s < SIZE_W; s++)
                {
                    PREFETCH(from + SIZE_H * ROW + (w * SIZE_W + s) * PARTS);
                    row += LOAD(from + (w * SIZE_W + s) * PARTS);
                }
                sum += row;
            }
            STORE(dx + ((size_t)h * width + w) * PARTS, sum);
        }
}

/* Between a and b, at `place` 0 to 1. */
INLINE V between(V a, V b, real place)
{
    return FMA(b - a, (V)place, a);
}

KERNEL void bilinear_forward(__global const S *restrict x, __global S *restrict y, int height,
                             int width, int each)
{
    x += PLANE * height * width * PARTS + PART;
    y += PLANE * height * SIZE_H * ROW + PART;
    for (int h = FIRST_ROW; h < min(FIRST_ROW + each, height); h++)
        for (int r = 0; r < SIZE_H; r++) {
            const real down = PLACE(r, SIZE_H);
            const int above = down < 0 ? max(h - 1, 0) : h;
            const int below = down < 0 ? h : min(h + 1, height - 1);
            const real part = down < 0 ? down + 1 : down;
            __global const S *upper = x + (size_t)above * width * PARTS;
            __global const S *lower = x + (size_t)below * width * PARTS;
            __global S *to = y + (size_t)(h * SIZE_H + r) * ROW;
            V here = between(LOAD(upper), LOAD(lower), part), left = here;
            for (int w = 0; w < width; w++) {
                const int next = min(w + 1, width - 1) * PARTS;
                const V right = between(LOAD(upper + next), LOAD(lower + next), part);
                for (int s = 0; s < SIZE_W; s++) {
                    const real across = PLACE(s, SIZE_W);
                    PUT(to + (w * SIZE_W + s) * PARTS, across < 0
                                                           ? between(left, here, across + 1)
                                                           : between(here, right, across));
                }
                left = here;
                here = right;
            }
        }
}

/* How much of row `row` of y, which lies near it, is that of row h of x. */
INLINE real weigh(int row, int h, int height)
{
    const int away = 2 * (row - h * SIZE_H) + 1 - SIZE_H;
    const bool is_beyond = away < 0 ? h == 0 : h == height - 1;
    return is_beyond ? (real)1 : (real)(2 * SIZE_H - abs(away)) * (1 / (real)(2 * SIZE_H));
}

/* On CPUs the columns of some pixels are taken together where a pixel has many rows: longer
 * pieces of rows come faster. */
#if VECTOR > 1 && SIZE_W >= 4 && SIZE_W < 32
#define STRIP (32 / SIZE_W)
#else
#define STRIP 1
#endif

/* The columns of dy are first added down, then each is shared by the two pixels beside it. */
KERNEL void bilinear_backward(__global const S *restrict dy, __global S *restrict dx,
                              int height, int width, int each)
{
    dx += PLANE * height * width * PARTS + PART;
    dy += PLANE * height * SIZE_H * ROW + PART;
    for (int h = FIRST_ROW; h < min(FIRST_ROW + each, height); h++) {
        const int first = max(h * SIZE_H - SIZE_H / 2, 0);
        const int end = min(h * SIZE_H + SIZE_H + SIZE_H / 2, height * SIZE_H);
        __global S *to = dx + (size_t)h * width * PARTS;
        V left = 0, here = 0; /* what pixels w - 1 and w have got */
        for (int w0 = 0; w0 < width; w0 += STRIP) {
            const int pixels = STRIP == 1 ? 1 : min(STRIP, width - w0);
            V column[STRIP * SIZE_W];
            for (int s = 0; s < pixels * SIZE_W; s++)
                column[s] = 0;
            for (int row = first; row < end; row++) {
                __global const S *from = dy + row * ROW + (size_t)w0 * SIZE_W * PARTS;
                const V weight = weigh(row, h, height);
                if (row >= end - SIZE_H)
                    for (int s = 0; s < pixels * SIZE_W; s++)
                        PREFETCH(from + SIZE_H * ROW + s * PARTS);
                for (int s = 0; s < pixels * SIZE_W; s++)
                    column[s] = FMA(LOAD(from + s * PARTS), weight, column[s]);
            }
            for (int w = w0; w < w0 + pixels; w++) {
                V right = 0;
                for (int s = 0; s < SIZE_W; s++) {
                    const V v = column[(w - w0) * SIZE_W + s];
                    const real across = PLACE(s, SIZE_W);
                    const bool is_beyond = across < 0 ? w == 0 : w == width - 1;
                    const real part = is_beyond ? 0 : fabs(across);
                    here = FMA(v, (V)(1 - part), here);
                    if (across < 0)
                        left = FMA(v, (V)part, left);
                    else
                        right = FMA(v, (V)part, right);
                }
                if (w > 0)
                    STORE(to + (w - 1) * PARTS, left);
                left = here;
                here = right;
            }
        }
        STORE(to + (width - 1) * PARTS, left);
    }
}
