/* Convolution as a gather: every output is one chain of products in ascending order of channel,
 * tap row, tap column, whatever the blocking. It serves the forward pass and, with turned
 * weights, the data gradient (with strides once for each phase of the image).
 *
 *   y[k, i, j] = bias[k] + sum over c, r, s of
 *       w[k, c, r, s] * x[c, i*STRIDE_Y + r*GAP_Y - PAD_Y, j*STRIDE_X + s*GAP_X - PAD_X]
 *
 * Taps outside the image are left out, not multiplied by zero. Then comes what finish.cl says
 * or, where PIXEL_ROWS is 2, relu (RELU) and a max-pool over 2x2 outputs: `at` keeps which won,
 * 0..3 in row-major order, or 4 where relu cut it off.
 *
 *   x: [tiles][GROUPS][channels][IN_H][IN_W]
 *   w: [GROUPS][blocks][channels][TAPS_Y][TAPS_X][ROWS]
 *   y: [tiles][GROUPS][filters][PLANE] from y_first on, rows PITCH, columns OUT_STRIDE apart
 *
 * A register block is ROWS filters, COLUMNS pixels and PIXEL_ROWS of these. Of the blocks of a
 * row, LEFT see the left edge or lie before one that does, RIGHT the right edge or are
 * narrower. STREAM: the outputs are too large for caches, so they are written past them. GATED:
 * they are 0 where `gate`, of y's layout, is not above 0; ADDS: `gate` is what is added.
 *
 * Group ids: 0: run of rows_each row blocks, 1: run of blocks_each filter blocks, 2: tile.
 * -D: TAPS_Y TAPS_X STRIDE_Y STRIDE_X GAP_Y GAP_X PAD_Y PAD_X IN_H IN_W OUT_H OUT_W PLANE PITCH
 *     OUT_STRIDE GROUPS ROWS COLUMNS PIXEL_ROWS LEFT RIGHT STREAM GATED, those of finish.cl
 */
#include "lib/hints.cl"
#include "lib/real.cl"
#include "lib/put.cl"
#include "lib/greatest.cl"
#include "products/direct/taps.cl"
#include "lib/finish.cl"

#define BLOCKS ((OUT_W + COLUMNS - 1) / COLUMNS)
#define TAIL (OUT_W - (BLOCKS - 1) * COLUMNS)
#define SPAN_Y ((PIXEL_ROWS - 1) * STRIDE_Y + (TAPS_Y - 1) * GAP_Y + 1)
#define ROW_STRIDE (PIXEL_ROWS == 1 ? GAP_Y : 1)

#define X_AT(j, s) (((j) * STRIDE_X + (s) * GAP_X) * PARTS)
#define X_ROW (IN_W * PARTS)
#define X_PLANE (IN_H * IN_W * PARTS)
#define OUT_AT(i, j) (((size_t)(i)*PLANE + (j)*OUT_STRIDE) * PARTS)

/* A row of outputs of ROWS filters. */
struct job {
    __global const S *x;       /* channel 0, row `row`, which may lie outside */
    __global const real *w;    /* of the filters */
    __global const real *bias; /* of the filters, or null */
    __global S *y;             /* of the first filter, at column 0 */
    __global B *at;            /* likewise, or null */
    __global const S *gate;    /* likewise, or null */
    __global const real *norms; /* of the first filter, or null */
    int channels, row, filters;
    int ahead; /* from an input of a tap to what is fetched beside it */
};

/* Adds the products of a row of taps with an input row. */
INLINE void add_taps(V a[ROWS][COLUMNS], __global const S *x, __global const real *w, int x0,
                     int n, bool edge)
{
    UNROLL for (int s = 0; s < TAPS_X; s++)
        UNROLL for (int i = 0; i < ROWS; i++) {
            const V f = w[s * ROWS + i];
            UNROLL for (int j = 0; j < COLUMNS; j++)
                if (j < n && (!edge || inside(x0 + j, s)))
                    a[i][j] = FMA(f, LOAD(x + X_AT(j, s)), a[i][j]);
        }
}

/* One loop over channels and input rows: with two, the sums would leave the registers. What
 * gates the outputs is fetched beside it, a line a turn: many at once would be dropped. */
INLINE void add_products(V a[PIXEL_ROWS][ROWS][COLUMNS], const struct job *job, int x0, int n,
                         bool edge)
{
    const int first = (max(0, -job->row) + ROW_STRIDE - 1) / ROW_STRIDE * ROW_STRIDE;
    const int last = min(SPAN_Y, IN_H - job->row);
    const int count = (last - first + ROW_STRIDE - 1) / ROW_STRIDE;
    __global const S *x = job->x + (x0 * STRIDE_X - PAD_X) * PARTS + first * X_ROW;
    __global const real *w = job->w;
    int u = first, gates = 0;
    for (int left = TAPS_X > 0 && count > 0 ? job->channels * count : 0; left > 0; left--) {
        PREFETCH(x + job->ahead);
        if (READS_GATE && gates < ROWS * COLUMNS) {
            const int i = min(gates % ROWS, job->filters - 1), j = min(gates / ROWS, n - 1);
            PREFETCH(job->gate + OUT_AT(i, x0 + j));
            gates++;
        }
        UNROLL for (int m = 0; m < PIXEL_ROWS; m++) {
            const int v = u - m * STRIDE_Y, r = v / GAP_Y;
            if (PIXEL_ROWS == 1 || (v >= 0 && r < TAPS_Y && r * GAP_Y == v))
                add_taps(a[m], x, w + r * (TAPS_X * ROWS), x0, n, edge);
        }
        x += ROW_STRIDE * X_ROW;
        u += ROW_STRIDE;
        if (u >= last) {
            x += X_PLANE - count * ROW_STRIDE * X_ROW;
            w += TAPS_Y * TAPS_X * ROWS;
            u = first;
        }
    }
}

#if PIXEL_ROWS == 2
INLINE void store(const V a[PIXEL_ROWS][ROWS][COLUMNS], const struct job *job, int x0, int n)
{
    UNROLL for (int i = 0; i < ROWS; i++)
        if (i < job->filters)
            UNROLL for (int j = 0; j < COLUMNS && j < n; j += 2) {
                const size_t to = ((size_t)i * PLANE + (x0 + j) / 2) * PARTS;
                I which;
                const V most =
                    greatest(a[0][i][j], a[0][i][j + 1], a[1][i][j], a[1][i][j + 1], &which);
                PUT(job->y + to, activate(most));
                if (job->at)
                    job->at[to] = TO_B(RELU ? (most <= (V)0 ? (I)4 : which) : which);
            }
}
#else
INLINE void store(const V a[PIXEL_ROWS][ROWS][COLUMNS], const struct job *job, int x0, int n)
{
    UNROLL for (int i = 0; i < ROWS; i++)
        if (i < job->filters)
            UNROLL for (int j = 0; j < COLUMNS; j++)
                if (j < n)
                    PUT(job->y + OUT_AT(i, x0 + j),
                        GATE(job->gate + OUT_AT(i, x0 + j),
                             finish_norm(a[0][i][j], job->norms + 3 * i,
                                         job->gate + OUT_AT(i, x0 + j))));
}
#endif

/* The compiler unrolls loops before it knows n, so none ends there. */
INLINE void block(const struct job *job, int x0, int n, bool edge)
{
    V a[PIXEL_ROWS][ROWS][COLUMNS];
    UNROLL for (int i = 0; i < ROWS; i++) {
        const V bias = job->bias ? job->bias[min(i, job->filters - 1)] : (real)0;
        UNROLL for (int m = 0; m < PIXEL_ROWS; m++)
            UNROLL for (int j = 0; j < COLUMNS; j++)
                a[m][i][j] = bias;
    }
    add_products(a, job, x0, n, edge);
    store(a, job, x0, n);
}

/* A row of outputs of all filters of a group. */
struct row {
    struct job job; /* of the first ROWS filters */
    int blocks, weights; /* of filters; of a block */
    int next; /* from its inputs to those of the next row */
};

/* The first column that outputs before column j do not read. */
INLINE int columns_before(int j)
{
    return clamp((j - 1) * STRIDE_X + (TAPS_X - 1) * GAP_X - PAD_X + 1, 0, IN_W);
}

/* The inputs of a block are read from afar once: the weights follow each other in memory.
 * Beside its products each of the first blocks of filters fetches a column that comes next. */
INLINE void over_filters(const struct row *row, int x0, int n, bool edge)
{
    const bool wraps = x0 + COLUMNS >= OUT_W;
    const int j0 = wraps ? 0 : columns_before(x0 + COLUMNS);
    const int j1 = columns_before(wraps ? COLUMNS : x0 + 2 * COLUMNS);
    const int next = (wraps ? row->next : 0) + (j0 + PAD_X - x0 * STRIDE_X) * PARTS;
    struct job job = row->job;
    for (int b = 0; b < row->blocks; b++) {
        job.ahead = b < j1 - j0 ? next + b * PARTS : 0;
        block(&job, x0, n, edge);
        job.w += row->weights;
        job.bias = job.bias ? job.bias + ROWS : 0;
        job.y += (size_t)ROWS * PLANE * PARTS;
        job.at = job.at ? job.at + (size_t)ROWS * PLANE * PARTS : 0;
        job.gate = READS_GATE ? job.gate + (size_t)ROWS * PLANE * PARTS : 0;
        job.norms = NORMS ? job.norms + 3 * ROWS : 0;
        job.filters -= ROWS;
    }
}

/* The compiler leaves out the taps outside the image of blocks whose place it knows. */
INLINE void blocks_of_row(const struct row *row)
{
#if LEFT > 0
    over_filters(row, 0, BLOCKS == 1 ? TAIL : COLUMNS, true);
#endif
#if LEFT > 1
    for (int b = 1; b < LEFT; b++)
        over_filters(row, b * COLUMNS, COLUMNS, true);
#endif
#if BLOCKS > LEFT + RIGHT
    for (int b = LEFT; b < BLOCKS - RIGHT; b++)
        over_filters(row, b * COLUMNS, COLUMNS, false);
#endif
#if RIGHT > 1
    for (int b = BLOCKS - RIGHT; b < BLOCKS - 1; b++)
        over_filters(row, b * COLUMNS, COLUMNS, true);
#endif
#if RIGHT > 0
    over_filters(row, (BLOCKS - 1) * COLUMNS, TAIL, true);
#endif
}

BODY void gather_group(__global const S *restrict x, int x_first,
                       __global const real *restrict w, int w_first,
                       __global const real *restrict bias, __global S *restrict y, int y_first,
                       __global B *restrict at, __global const S *restrict gate,
                       __global const real *restrict norms, int channels, int filters,
                       int rows_each, int blocks_each, int group_0, int group_1, int group_2)
{
    const int blocks = (filters + ROWS - 1) / ROWS;
    const int runs = (blocks + blocks_each - 1) / blocks_each;
    const int g = group_1 / runs, b0 = group_1 % runs * blocks_each;
    const size_t image = (size_t)group_2 * GROUPS + g;
    const int weights = ROWS * channels * (TAPS_Y * TAPS_X);
    x += x_first / VECTOR + image * channels * (IN_H * IN_W * PARTS) + PART;
    w += w_first + (size_t)g * blocks * weights;
    y += (image * filters * PLANE + y_first) * PARTS + PART;
    at = at ? at + image * filters * (PLANE * PARTS) + PART : 0;
    gate = READS_GATE ? gate + (image * filters * PLANE + y_first) * PARTS + PART : 0;
    norms = NORMS ? norms + 3 * g * filters : 0;
    bias = bias ? bias + g * filters : 0;
    const int rows = OUT_H / PIXEL_ROWS;
    const int i0 = group_0 * rows_each, i1 = min(i0 + rows_each, rows);
    for (int i = i0; i < i1; i++) {
        const int first = i * PIXEL_ROWS * STRIDE_Y - PAD_Y;
        const size_t to = ((size_t)b0 * ROWS * PLANE + i * PITCH) * PARTS;
        const struct row row = {{.x = x + first * (IN_W * PARTS),
                                 .w = w + (size_t)b0 * weights,
                                 .bias = bias ? bias + b0 * ROWS : 0,
                                 .y = y + to,
                                 .at = at ? at + to : 0,
                                 .gate = READS_GATE ? gate + to : 0,
                                 .norms = NORMS ? norms + 3 * b0 * ROWS : 0,
                                 .channels = channels,
                                 .row = first,
                                 .filters = filters - b0 * ROWS},
                                min(blocks_each, blocks - b0),
                                weights,
                                i + 1 < rows ? PIXEL_ROWS * STRIDE_Y * X_ROW
                                             : GROUPS * channels * X_PLANE -
                                                   i * PIXEL_ROWS * STRIDE_Y * X_ROW};
        blocks_of_row(&row);
    }
}

KERNEL void conv2d_gather(__global const S *restrict x, int x_first,
                          __global const real *restrict w, int w_first,
                          __global const real *restrict bias, __global S *restrict y,
                          int y_first, __global B *restrict at,
                          __global const S *restrict gate, __global const real *restrict norms,
                          int channels, int filters, int rows_each, int blocks_each GROUP_ARGS)
{
    gather_group(x, x_first, w, w_first, bias, y, y_first, at, gate, norms, channels,
                 filters, rows_each, blocks_each, GROUP_ID(0), GROUP_ID(1), GROUP_ID(2));
}
