/* Weight gradient of a convolution, and that of its bias, of few channels or of a pool: dz is
 * read in place. CPU class only.
 *
 *   out[part][c, r, s, k] = sum over the part's areas, i, j, lanes of
 *       dz[k, i, j] * x[c, i*STRIDE_Y + r*GAP_Y - pad_y, j*STRIDE_X + s*GAP_X - pad_x]
 *   bias[part][k] = sum over the part's areas, i, j, lanes of dz[k, i, j]
 *
 * The outputs of a tile are cut into areas of ROWS_EACH x STRIP, row by row; a part is
 * areas_each of them. Each lane's sum is one chain over areas, rows and columns (of pools,
 * where there are), then the lanes are added as a tree; no blocking changes this order.
 *
 *   x: [tiles][groups][channels][in_h][in_w]; out, bias: [parts] strides apart, k innermost
 *   dz: GRADIENT 0: dy itself, [tiles][groups][filters][out.y][out.x]; 1: dy where y > 0;
 *       2: dy of a 2x2 max-pool at its place `at` (4: none)
 *
 * Of a pool one output at most has a gradient, another in each lane: instead of four products,
 * three of them with 0, its input is selected lane by lane, rows of the pool last, so that taps
 * share selections: 21 for 3x3 taps, and 9 products.
 *
 * A register block is a channel, ROWS rows of taps and COLUMNS filters. A group copies x of an
 * area and of its channels to local memory, zeros around the image, and goes over it with all
 * its filters. The sums of all its blocks rest in local memory meanwhile. dz of the block that
 * follows, and x of the area that does, are fetched ahead.
 *
 * Group ids: 0: group, run of group_filters filters; 1: run of group_channels channels;
 * 2: part.
 * -D: TAPS_Y TAPS_X STRIDE_Y STRIDE_X GAP_Y GAP_X GRADIENT ROWS COLUMNS ROWS_EACH STRIP
 */
#include "lib/hints.cl"
#include "lib/real.cl"
#include "products/direct/args.h"
#include "products/direct/select.cl"
#include "lib/sum.cl"

#define SUMS (ROWS * TAPS_X * COLUMNS) /* sums of a register block; those of bias follow */
#define ROW_BLOCKS (TAPS_Y / ROWS)
#define EXTENT(outputs, taps, stride, gap) (((outputs)-1) * (stride) + ((taps)-1) * (gap) + 1)
#define HEIGHT EXTENT(ROWS_EACH, TAPS_Y, STRIDE_Y, GAP_Y) /* of an area's inputs */
#define WIDTH EXTENT(STRIP, TAPS_X, STRIDE_X, GAP_X)
#define POOL (GRADIENT == 2 ? 2 : 1)

/* Rows and columns of dy of an area; of the image and group: its x, and where its dy begins. */
struct area {
    __global const S *x;
    size_t first;
    int i0, i1, j0, j1;
};

INLINE struct area area_at(__global const S *x, int u, int g, const struct lk_lanewise *s)
{
    const int across = (s->dz_w * POOL + STRIP - 1) / STRIP;
    const int down = (s->dz_h * POOL + ROWS_EACH - 1) / ROWS_EACH;
    const size_t image = (size_t)(u / (across * down)) * s->groups + g;
    const int n = u % (across * down), i = n / across * (ROWS_EACH / POOL);
    const int j = n % across * (STRIP / POOL);
    const struct area area = {x + image * s->channels * s->in_h * s->in_w,
                              image * s->filters * s->dz_h * s->dz_w,
                              i,
                              min(i + ROWS_EACH / POOL, s->dz_h),
                              j,
                              min(j + STRIP / POOL, s->dz_w)};
    return area;
}

/* The first dy of an area and filter. */
INLINE size_t place(const struct area *area, int k, const struct lk_lanewise *s)
{
    return area->first + ((size_t)k * s->dz_h + area->i0) * s->dz_w + area->j0;
}

/* Copies inputs of channels c0 to c1 to local memory; 0 outside of the image. */
INLINE void stage(__local V *to, const struct area *area, int c0, int c1,
                  const struct lk_lanewise *s)
{
    const int top = area->i0 * (POOL * STRIDE_Y) - s->pad_y;
    const int left = area->j0 * (POOL * STRIDE_X) - s->pad_x;
    const int height = EXTENT((area->i1 - area->i0) * POOL, TAPS_Y, STRIDE_Y, GAP_Y);
    const int width = EXTENT((area->j1 - area->j0) * POOL, TAPS_X, STRIDE_X, GAP_X);
    const int j0 = clamp(-left, 0, width), j1 = clamp(s->in_w - left, j0, width);
    for (int c = c0; c < c1; c++, to += HEIGHT * WIDTH)
        for (int i = 0; i < height; i++) {
            const bool inside = top + i >= 0 && top + i < s->in_h;
            const int begin = inside ? j0 : width, end = inside ? j1 : width;
            __global const S *from =
                area->x + (inside ? ((size_t)c * s->in_h + top + i) * s->in_w : 0);
            __local V *row = to + i * WIDTH;
            for (int j = 0; j < begin; j++)
                row[j] = (V)0;
            for (int j = begin; j < end; j++)
                row[j] = LOAD(from + left + j);
            for (int j = end; j < width; j++)
                row[j] = (V)0;
        }
}

/* Fetches rows n0 to n1 of an area's inputs, HEIGHT of each channel from c0 on. */
INLINE void fetch_inputs(const struct area *area, int c0, int n0, int n1,
                         const struct lk_lanewise *s)
{
    const int left = area->j0 * (POOL * STRIDE_X) - s->pad_x;
    const int j0 = max(left, 0), j1 = min(left + WIDTH, s->in_w);
    for (int n = n0; n < n1; n++) {
        const int i = area->i0 * (POOL * STRIDE_Y) - s->pad_y + n % HEIGHT;
        if (i >= 0 && i < s->in_h)
            for (int j = j0; j < j1; j++)
                PREFETCH(area->x + ((size_t)(c0 + n / HEIGHT) * s->in_h + i) * s->in_w + j);
    }
}

/* Gradients of an output pixel or pool, and where in the pool they belong. */
struct gradient {
    V d;
#if GRADIENT == 2
    M right, low;
#endif
};

INLINE struct gradient gradient_at(__global const S *dy, __global const S *y,
                                   __global const B *at, size_t from)
{
    struct gradient made;
    made.d = LOAD(dy + from);
#if GRADIENT == 2
    const I which = TO_I(at[from]);
    made.d = which < (I)4 ? made.d : (V)0;
    made.right = MASK((which & (I)~2) == (I)1);
    made.low = MASK(which > (I)1);
#elif GRADIENT == 1
    made.d = LOAD(y + from) > (V)0 ? made.d : (V)0;
#endif
    return made;
}

/* The inputs that meet tap r, s. x: those of tap 0, 0 of the pixel or pool. */
INLINE V meets(__local const V *x, int r, int s, const struct gradient *z)
{
    x += r * (GAP_Y * WIDTH) + s * GAP_X;
#if GRADIENT == 2
    const V top = SELECT(z->right, x[STRIDE_X], x[0]);
    x += STRIDE_Y * WIDTH;
    return SELECT(z->low, SELECT(z->right, x[STRIDE_X], x[0]), top);
#else
    return x[0];
#endif
}

/* Adds the products of an area with a register block, and dy to the bias's sums where
 * is_first. from: of its filters in dy; ahead: how far from there dy of the next ones is. */
INLINE void add_area(__local V *sums, __local const V *x, __global const S *dy,
                     __global const S *y, __global const B *at, const size_t from[COLUMNS],
                     long ahead, const struct area *area, int width, bool is_first)
{
    V a[ROWS][TAPS_X][COLUMNS], bias[COLUMNS];
    UNROLL for (int n = 0; n < SUMS; n++)
        ((V *)a)[n] = sums[n];
    UNROLL for (int m = 0; m < COLUMNS; m++)
        bias[m] = is_first ? sums[SUMS + m] : (V)0;
    for (int i = 0; i < area->i1 - area->i0; i++) {
        __local const V *now = x + i * (POOL * STRIDE_Y * WIDTH);
        const int end = i * width + area->j1 - area->j0;
        for (int j = i * width; j < end; j++, now += POOL * STRIDE_X) {
            struct gradient z[COLUMNS];
            UNROLL for (int m = 0; m < COLUMNS; m++) {
                z[m] = gradient_at(dy, y, at, from[m] + j);
                if (is_first)
                    bias[m] += z[m].d;
                PREFETCH(dy + from[m] + j + ahead);
#if GRADIENT == 1
                PREFETCH(y + from[m] + j + ahead);
#elif GRADIENT == 2
                PREFETCH(at + from[m] + j + ahead);
#endif
            }
            UNROLL for (int r = 0; r < ROWS; r++)
                UNROLL for (int s = 0; s < TAPS_X; s++)
                    UNROLL for (int m = 0; m < COLUMNS; m++)
                        a[r][s][m] = FMA(z[m].d, meets(now, r, s, &z[m]), a[r][s][m]);
        }
    }
    UNROLL for (int n = 0; n < SUMS; n++)
        sums[n] = ((V *)a)[n];
    UNROLL for (int m = 0; m < COLUMNS && is_first; m++)
        sums[SUMS + m] = bias[m];
}

/* The sums of a register block, of which `filters` are there. */
INLINE void store(__global real *out, __global real *bias, __local const V *sums, int filters,
                  int all_filters)
{
    for (int tap = 0; tap < ROWS * TAPS_X; tap++)
        for (int m = 0; m < min(COLUMNS, filters); m++)
            out[(size_t)tap * all_filters + m] = sum_vector(sums[tap * COLUMNS + m]);
    for (int m = 0; bias && m < min(COLUMNS, filters); m++)
        bias[m] = sum_vector(sums[SUMS + m]);
}

BODY void weigh_group(__global const S *restrict x, __global const S *restrict dy, int dy_first,
                      __global const S *restrict y, __global const B *restrict at,
                      __global real *restrict out, int out_first, int out_stride,
                      __global real *restrict bias, int bias_first, int bias_stride,
                      struct lk_lanewise s, __local V *sums, __local V *staged,
                      int group_0, int group_1, int group_2)
{
    const int runs = (s.filters + s.group_filters - 1) / s.group_filters;
    const int g = group_0 / runs, k0 = group_0 % runs * s.group_filters;
    const int k1 = min(k0 + s.group_filters, s.filters), c0 = group_1 * s.group_channels;
    const int c1 = min(c0 + s.group_channels, s.channels);
    const int parts = (s.areas + s.areas_each - 1) / s.areas_each;
    const int u0 = group_2 / parts * s.areas + group_2 % parts * s.areas_each;
    const int u1 = min(u0 + s.areas_each, (group_2 / parts + 1) * s.areas);
    const int row_blocks = (c1 - c0) * ROW_BLOCKS;
    const int blocks = (k1 - k0 + COLUMNS - 1) / COLUMNS, rows = (c1 - c0) * HEIGHT;
    const int share = (rows + blocks - 1) / blocks;
    dy += dy_first / VECTOR;
    for (int n = 0; n < blocks * row_blocks * (SUMS + COLUMNS); n++)
        sums[n] = (V)0;
    for (int u = u0; u < u1; u++) {
        const struct area area = area_at(x, u, g, &s);
        const struct area next = area_at(x, min(u + 1, u1 - 1), g, &s);
        __local V *to = sums;
        stage(staged, &area, c0, c1, &s);
        for (int b = 0; b < blocks; b++) {
            const int k = k0 + b * COLUMNS;
            const size_t then = b < blocks - 1 ? place(&area, min(k + COLUMNS, k1 - 1), &s)
                                               : place(&next, k0, &s);
            size_t from[COLUMNS];
            UNROLL for (int m = 0; m < COLUMNS; m++)
                from[m] = place(&area, min(k + m, k1 - 1), &s);
            fetch_inputs(&next, c0, b * share, min((b + 1) * share, rows), &s);
            const long ahead = (long)then - (long)from[0];
            for (int n = 0; n < row_blocks; n++, to += SUMS + COLUMNS) {
                const int row = n / ROW_BLOCKS * HEIGHT + n % ROW_BLOCKS * (ROWS * GAP_Y);
                __local const V *inputs = staged + row * WIDTH;
                if (n == 0)
                    add_area(to, inputs, dy, y, at, from, ahead, &area, s.dz_w, true);
                else
                    add_area(to, inputs, dy, y, at, from, ahead, &area, s.dz_w, false);
            }
        }
    }
    out += out_first + (size_t)group_2 * out_stride + g * s.filters;
    bias = bias && group_1 == 0
               ? bias + bias_first + (size_t)group_2 * bias_stride + g * s.filters
               : 0;
    for (int k = k0; k < k1; k += COLUMNS)
        for (int n = 0; n < row_blocks; n++, sums += SUMS + COLUMNS) {
            const int row = (c0 + n / ROW_BLOCKS) * TAPS_Y + n % ROW_BLOCKS * ROWS;
            store(out + (size_t)row * TAPS_X * (s.groups * s.filters) + k,
                  n == 0 && bias ? bias + k : 0, sums, k1 - k, s.groups * s.filters);
        }
}

KERNEL void conv2d_lanewise(__global const S *restrict x, __global const S *restrict dy,
                            int dy_first, __global const S *restrict y,
                            __global const B *restrict at, __global real *restrict out,
                            int out_first, int out_stride, __global real *restrict bias,
                            int bias_first, int bias_stride,
                            struct lk_lanewise s, __local V *sums,
                            __local V *staged)
{
    weigh_group(x, dy, dy_first, y, at, out, out_first, out_stride, bias, bias_first,
                bias_stride, s, sums, staged, get_group_id(0), get_group_id(1),
                get_group_id(2));
}
