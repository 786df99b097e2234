/* The sums of gather.cl in the same order, for planes of any size and any number of rows of
 * taps, which are told when the kernel runs: convolutions with strides and the phases of their
 * data gradients share a few kernels, where each would be compiled alone. CPU class only.
 *
 *   y[k, i, j] = bias[k] + sum over c, r, s of
 *       w[k, c, r, s] * x[c, i*stride_y + r*gap_y - pad_y, j*stride_x + s*gap_x - pad_x]
 *
 * Taps outside the image are left out. Then comes what finish.cl says or, where it is asked for
 * when the kernel runs, a relu.
 *
 *   x: [tiles][groups][channels][in_h][in_w]
 *   w: [groups][blocks][channels][taps_y][taps_x][ROWS]
 *   y: [tiles][groups][filters][plane] from y_first on, rows `pitch`, columns out_stride apart
 *
 * A register block is ROWS filters of COLUMNS pixels. Of the blocks of a row, `left` see the
 * left edge, `right` the right edge or are narrower. stream: outputs are written past the
 * caches. GATED: they are 0 where `gate`, of y's layout, is not above 0; ADDS: `gate` is what
 * is added.
 *
 * Group ids: 0: run of rows_each rows, 1: run of blocks_each filter blocks, 2: tile.
 * -D: TAPS_X STRIDE_X GAP_X ROWS COLUMNS GATED, those of finish.cl
 */
#include "lib/hints.cl"
#include "lib/real.cl"
#include "lib/put.cl"
#include "products/direct/args.h"
#include "lib/finish.cl"
#include "products/kernel/args.h"

#define X_AT(j, s) (((j) * STRIDE_X + (s) * GAP_X) * PARTS)

/* A row of outputs of ROWS filters. */
struct job {
    __global const S *x;       /* channel 0, the first row of taps that is inside, column 0 */
    __global const real *w;    /* of that row of taps */
    __global const real *bias; /* of the filters, or null */
    __global S *y;             /* of the first filter, at column 0 */
    __global const S *gate;    /* likewise, or null */
    __global const real *norms; /* of the filters, or null */
    int rows, filters;         /* of taps inside */
    int ahead; /* from an input of a tap to what is fetched beside it */
};

INLINE size_t out_at(const struct lk_strided *a, int i, int j)
{
    return ((size_t)i * a->plane + j * a->out_stride) * PARTS;
}

/* Adds the products of a row of taps with an input row, of which x is at `column`. */
INLINE void add_taps(V a[ROWS][COLUMNS], __global const S *x, __global const real *w,
                     int column, int width, int n, bool edge)
{
    UNROLL for (int s = 0; s < TAPS_X; s++)
        if (edge) {
            UNROLL for (int j = 0; j < COLUMNS; j++)
                if (j < n && (uint)(column + j * STRIDE_X + s * GAP_X) < (uint)width)
                    UNROLL for (int i = 0; i < ROWS; i++)
                        a[i][j] = FMA((V)w[s * ROWS + i], LOAD(x + X_AT(j, s)), a[i][j]);
        } else {
            UNROLL for (int i = 0; i < ROWS; i++) {
                const V f = w[s * ROWS + i];
                UNROLL for (int j = 0; j < COLUMNS; j++)
                    a[i][j] = FMA(f, LOAD(x + X_AT(j, s)), a[i][j]);
            }
        }
}

/* One loop over channels and rows of taps: with two, the sums would leave the registers. What
 * gates the outputs is fetched beside it, a line a turn. */
INLINE void add_products(V sums[ROWS][COLUMNS], const struct job *job,
                         const struct lk_geometry *of, const struct lk_strided *a, int x0,
                         int n, bool edge)
{
    const int column = x0 * STRIDE_X - of->pad_x, row = of->gap_y * of->in_w * PARTS;
    const int next_channel = of->in_h * of->in_w * PARTS - job->rows * row;
    const int next_weights = (of->taps_y - job->rows) * (TAPS_X * ROWS);
    __global const S *x = job->x + column * PARTS;
    __global const real *w = job->w;
    int r = job->rows, gates = 0;
    for (int left = TAPS_X > 0 ? a->channels * job->rows : 0; left > 0; left--) {
        PREFETCH(x + job->ahead);
        if (READS_GATE && gates < ROWS * COLUMNS) {
            const int i = min(gates % ROWS, job->filters - 1), j = min(gates / ROWS, n - 1);
            PREFETCH(job->gate + out_at(a, i, x0 + j));
            gates++;
        }
        add_taps(sums, x, w, column, of->in_w, n, edge);
        x += row;
        w += TAPS_X * ROWS;
        if (--r == 0) {
            r = job->rows;
            x += next_channel;
            w += next_weights;
        }
    }
}

#define EACH_OUTPUT(STORE_ONE)                                                                 \
    UNROLL for (int i = 0; i < ROWS; i++)                                                      \
        if (i < job->filters)                                                                  \
            UNROLL for (int j = 0; j < COLUMNS; j++)                                           \
                if (j < n)                                                                     \
                    STORE_ONE(job->y + out_at(a, i, x0 + j),                                   \
                              GATE(job->gate + out_at(a, i, x0 + j),                           \
                                   sums[i][j] < least ? least : sums[i][j]));

INLINE void store(V sums[ROWS][COLUMNS], const struct job *job, const struct lk_strided *a,
                  int x0, int n)
{
    const V least = a->relu ? (V)0 : (V)-INFINITY;
    if (NORMS || ADDS || RELU)
        UNROLL for (int i = 0; i < ROWS; i++)
            if (i < job->filters)
                UNROLL for (int j = 0; j < COLUMNS; j++)
                    if (j < n)
                        sums[i][j] = finish_norm(sums[i][j], job->norms + 3 * i,
                                                 job->gate + out_at(a, i, x0 + j));
    if (a->stream) {
        APART;
        EACH_OUTPUT(PUT_PAST)
        APART;
    } else {
        EACH_OUTPUT(STORE)
    }
}

INLINE void block(const struct job *job, const struct lk_geometry *of,
                  const struct lk_strided *a, int x0, int n, bool edge)
{
    V sums[ROWS][COLUMNS];
    UNROLL for (int i = 0; i < ROWS; i++) {
        const V bias = job->bias ? job->bias[min(i, job->filters - 1)] : (real)0;
        UNROLL for (int j = 0; j < COLUMNS; j++)
            sums[i][j] = bias;
    }
    add_products(sums, job, of, a, x0, n, edge);
    store(sums, job, a, x0, n);
}

/* The first column that outputs before column j do not read. */
INLINE int columns_before(const struct lk_geometry *of, int j)
{
    return clamp((j - 1) * STRIDE_X + (TAPS_X - 1) * GAP_X - of->pad_x + 1, 0,
                 of->in_w);
}

/* A row of outputs of all filters of a group. */
struct row {
    struct job job;      /* of the first ROWS filters */
    int blocks, weights; /* of filters; of a block */
    int next;            /* from its inputs to those of the next row */
};

/* As in gather.cl: each of the first blocks of filters fetches a column that comes next. */
INLINE void over_filters(const struct row *row, const struct lk_geometry *of,
                         const struct lk_strided *a, int x0, bool edge)
{
    const int n = edge ? min(COLUMNS, of->out_w - x0) : COLUMNS;
    const bool wraps = x0 + COLUMNS >= of->out_w;
    const int j0 = wraps ? 0 : columns_before(of, x0 + COLUMNS);
    const int j1 = columns_before(of, wraps ? COLUMNS : x0 + 2 * COLUMNS);
    const int next =
        (wraps ? row->next : 0) + (j0 + of->pad_x - x0 * STRIDE_X) * PARTS;
    const size_t outs = (size_t)ROWS * a->plane * PARTS;
    struct job job = row->job;
    for (int b = 0; b < row->blocks; b++) {
        job.ahead = b < j1 - j0 ? next + b * PARTS : 0;
        block(&job, of, a, x0, n, edge);
        job.w += row->weights;
        job.bias = job.bias ? job.bias + ROWS : 0;
        job.y += outs;
        job.gate = READS_GATE ? job.gate + outs : 0;
        job.norms = NORMS ? job.norms + 3 * ROWS : 0;
        job.filters -= ROWS;
    }
}

BODY void strided_group(__global const S *restrict x, __global const real *restrict w,
                        __global const real *restrict bias, __global S *restrict y,
                        int y_first, __global const S *restrict gate,
                        __global const real *restrict norms, struct lk_geometry of,
                        struct lk_strided a, int group_0, int group_1, int group_2)
{
    const int blocks = (a.filters + ROWS - 1) / ROWS;
    const int runs = (blocks + a.blocks_each - 1) / a.blocks_each;
    const int g = group_1 / runs, b0 = group_1 % runs * a.blocks_each;
    const size_t image = (size_t)group_2 * a.groups + g;
    const int taps = TAPS_X * ROWS, weights = a.channels * of.taps_y * taps;
    const int width = of.in_w * PARTS, plane = of.in_h * width;
    const int across = (of.out_w + COLUMNS - 1) / COLUMNS;
    x += image * a.channels * plane + PART;
    w += ((size_t)g * blocks + b0) * weights;
    const size_t to = (image * a.filters * a.plane + (size_t)b0 * ROWS * a.plane + y_first) *
                          PARTS + PART;
    const int i0 = group_0 * a.rows_each, i1 = min(i0 + a.rows_each, of.out_h);
    for (int i = i0; i < i1; i++) {
        const int top = i * of.stride_y - of.pad_y;
        const int r0 = (max(0, -top) + of.gap_y - 1) / of.gap_y;
        const int r1 = min(of.taps_y, (of.in_h - top + of.gap_y - 1) / of.gap_y);
        const size_t at = to + (size_t)i * a.pitch * PARTS;
        const struct row row = {{.x = x + (top + r0 * of.gap_y) * width,
                                 .w = w + r0 * taps,
                                 .bias = bias ? bias + g * a.filters + b0 * ROWS : 0,
                                 .y = y + at,
                                 .gate = READS_GATE ? gate + at : 0,
                                 .norms = NORMS ? norms + 3 * (g * a.filters + b0 * ROWS) : 0,
                                 .rows = max(0, r1 - r0),
                                 .filters = a.filters - b0 * ROWS},
                                min(a.blocks_each, blocks - b0),
                                weights,
                                i + 1 < of.out_h ? of.stride_y * width
                                                 : a.groups * a.channels * plane -
                                                       i * of.stride_y * width};
        for (int b = 0; b < across; b++)
            if (b < a.left || b >= across - a.right)
                over_filters(&row, &of, &a, b * COLUMNS, true);
            else
                over_filters(&row, &of, &a, b * COLUMNS, false);
    }
}

KERNEL void conv2d_strided(__global const S *restrict x, int x_first,
                           __global const real *restrict w, int w_first,
                           __global const real *restrict bias, __global S *restrict y,
                           int y_first, __global const S *restrict gate,
                           __global const real *restrict norms, struct lk_geometry of,
                           struct lk_strided a)
{
    strided_group(x + x_first / VECTOR, w + w_first, bias, y, y_first, gate, norms, of,
                  a, get_group_id(0), get_group_id(1), get_group_id(2));
}
