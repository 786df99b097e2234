/* Convolution of single taps inside the image: a product of matrices. Every output is one chain
 * of products in ascending order of channel, as in gather.cl. It serves the forward pass and
 * the data gradient. CPU class only.
 *
 *   y[k, q] = bias[k] + sum over c of w[k, c] * x[c, from(q)], then what finish.cl says
 *
 *   x: [tiles][groups][channels][in_plane]; pixel q is read at q / width * in_row +
 *      q % width * in_stride
 *   w: [groups][blocks][channels][ROWS], or (IN_PLACE) where they are: filters w_row apart, a
 *      channel's next to each other
 *   y: [tiles][groups][all_filters][out_h * out_w], from filter `filter_first` on; where
 *      `cell` > 1 pixel q is the first of a cell of cell_h x cell_w outputs, the others being 0
 *
 * A panel is the inputs of COLUMNS pixels, [channels][COLUMNS], in local memory. While a group
 * goes over one with all its filters, ROWS at a time, it copies the next one, a channel every
 * few products, which hides both the copying and the memory. stream: outputs are too
 * large for caches and are written past them. GATED: they are 0 where `gate`, of y's layout, is
 * not above 0; ADDS: `gate` is what is added.
 *
 * Group ids: 0: one of panel_runs runs of panels of pixels; 1: group, run of blocks_each
 * filter blocks; 2: tile.
 * -D: ROWS COLUMNS IN_PLACE GATED, those of finish.cl
 */
#include "lib/real.cl"
#include "lib/hints.cl"
#include "lib/put.cl"
#include "products/direct/args.h"
#include "lib/finish.cl"

#define AHEAD 16 /* channels that are fetched before they are copied */

/* Where the pixels of a panel lie in a plane of x. */
struct panel {
    int first, count, from[COLUMNS];
};

INLINE struct panel panel_at(int n, const struct lk_pointwise *s)
{
    struct panel p;
    p.first = n * COLUMNS;
    p.count = min(COLUMNS, s->pixels - p.first);
    UNROLL for (int j = 0; j < COLUMNS; j++) {
        const int q = min(p.first + j, s->pixels - 1);
        p.from[j] = q / s->width * s->in_row + q % s->width * s->in_stride;
    }
    return p;
}

/* A panel that is brought, channel by channel, and the one that follows it. */
struct copy {
    __global const S *x;
    __local V *to;
    struct panel now, then;
    int channel, each; /* every so many channels of products */
};

INLINE void copy_channel(struct copy *copy, const struct lk_pointwise *s)
{
    const int c = copy->channel++, ahead = c + AHEAD;
    __global const S *x = copy->x + (size_t)c * s->in_plane;
    __local V *to = copy->to + c * COLUMNS;
    UNROLL for (int j = 0; j < COLUMNS; j++)
        to[j] = LOAD(x + copy->now.from[j]);
    const bool is_now = ahead < s->channels;
    const int *from = is_now ? copy->now.from : copy->then.from;
    const int fetched = is_now ? ahead : min(ahead - s->channels, s->channels - 1);
    x = copy->x + (size_t)fetched * s->in_plane;
    UNROLL for (int j = 0; j < COLUMNS; j++)
        PREFETCH(x + from[j]);
}

/* ROWS filters, of which those from `first` to `last` are to be written. */
struct job {
    __global const real *w, *bias;
    __global S *y;
    __global const S *gate; /* as y, or null */
    __global const real *norms; /* of the first filter, or null */
    int first, last, w_row; /* of w: from one filter to the next */
};

#define W_STRIDE (IN_PLACE ? 1 : ROWS) /* from one channel to the next */

/* The outputs of cell q beside its first, of every filter. */
INLINE void fill_cell(const struct job *job, int q, const struct lk_pointwise *s)
{
    const int i0 = q / s->width * s->cell_h, height = min(s->cell_h, s->out_h - i0);
    const int j0 = q % s->width * s->cell_w, width = min(s->cell_w, s->out_w - j0);
    __global S *y = job->y + i0 * s->out_w + j0;
    for (int m = job->first; m < job->last; m++)
        for (int i = 0; i < height; i++)
            for (int j = i == 0; j < width; j++) {
                __global S *at = y + (m * s->out_h + i) * s->out_w + j;
                if (s->stream) {
                    APART;
                    PUT_PAST(at, (V)0);
                    APART;
                } else {
                    STORE(at, (V)0);
                }
            }
}

#define EACH_OUTPUT(STORE_ONE)                                                                 \
    UNROLL for (int i = 0; i < ROWS; i++)                                                      \
        if (i >= job->first && i < job->last)                                                  \
            UNROLL for (int j = 0; j < COLUMNS; j++)                                           \
                if (j < columns && j < n)                                                      \
                    STORE_ONE(job->y + i * plane + to[j],                                      \
                              GATE(job->gate + i * plane + to[j],                              \
                                   finish_norm(a[i][j], job->norms + 3 * i,                    \
                                               job->gate + i * plane + to[j])));

/* n pixels from q on. `columns` are computed, of which those beyond n repeat the last. The
 * compiler unrolls loops before it knows `columns`. */
INLINE void block(__local const V *x, const struct job *job, const struct lk_pointwise *s,
                  struct copy *copy, int q, int columns, int n)
{
    V a[ROWS][COLUMNS];
    int to[COLUMNS];
    const int plane = s->out_w * s->out_h;
    const bool cells = s->cell_w * s->cell_h > 1;
    UNROLL for (int j = 0; j < COLUMNS; j++)
        to[j] = cells ? (q + j) / s->width * s->cell_h * s->out_w +
                            (q + j) % s->width * s->cell_w
                      : q + j;
    UNROLL for (int i = 0; i < ROWS; i++)
        UNROLL for (int j = 0; j < COLUMNS; j++)
            a[i][j] = 0;
    if (job->bias)
        UNROLL for (int i = 0; i < ROWS; i++)
            UNROLL for (int j = 0; j < COLUMNS; j++)
                a[i][j] = job->bias[min(i, job->last - 1)];
    __global const real *w = job->w;
    int gates = 0;
    for (int c0 = 0; c0 < s->channels; c0 += copy->each) {
        if (copy->channel < s->channels)
            copy_channel(copy, s);
        const int c1 = min(c0 + copy->each, s->channels);
        for (int c = c0; c < c1; c++, x += COLUMNS, w += W_STRIDE) {
            if (READS_GATE && gates < ROWS * n) { /* by lines: many at once would be dropped */
                PREFETCH(job->gate + min(gates % ROWS, job->last - 1) * plane +
                         to[gates / ROWS]);
                gates++;
            }
            UNROLL for (int i = 0; i < ROWS; i++) {
                const V f = IN_PLACE ? w[i * job->w_row] : w[i];
                UNROLL for (int j = 0; j < COLUMNS; j++)
                    if (j < columns)
                        a[i][j] = FMA(f, x[j], a[i][j]);
            }
        }
    }
    if (s->stream) {
        APART;
        EACH_OUTPUT(PUT_PAST)
        APART;
    } else {
        EACH_OUTPUT(STORE)
    }
    if (cells)
        for (int j = 0; j < n; j++)
            fill_cell(job, q + j, s);
}

/* Block b of a group's filters. In place, where none is beyond the last, a short block begins
 * with filters of the one before, which that one writes. */
INLINE struct job job_at(__global const real *w, int w_row, __global const real *bias,
                         __global S *y, __global const S *gate, __global const real *norms,
                         const struct lk_pointwise *s, int b)
{
    const int k = b * ROWS, before = IN_PLACE ? max(0, k + ROWS - s->filters) : 0;
    __global const real *from = IN_PLACE ? w + (size_t)(k - before) * w_row
                                     : w + (size_t)k * s->channels;
    const size_t to = (size_t)(k - before) * s->out_w * s->out_h;
    return (struct job){.w = from,
                        .bias = bias ? bias + k - before : 0,
                        .y = y + to,
                        .gate = READS_GATE ? gate + to : 0,
                        .norms = NORMS ? norms + 3 * (k - before) : 0,
                        .first = before,
                        .last = min(ROWS, s->filters - k + before),
                        .w_row = w_row};
}

INLINE void some_pixels(__local const V *x, const struct job *job, const struct lk_pointwise *s,
                        struct copy *copy, int q, int n)
{
    if (n > 1)
        block(x, job, s, copy, q, COLUMNS, n);
    else
        block(x, job, s, copy, q, 1, 1);
}

BODY void pointwise_group(__global const S *restrict x, int x_first,
                          __global const real *restrict w, int w_first, int w_group,
                          int w_row, __global const real *restrict bias,
                          __global S *restrict y, __global const S *restrict gate,
                          __global const real *restrict norms, struct lk_pointwise s,
                          __local V *copied, int group_0, int group_1, int group_2)
{
    const int blocks = (s.filters + ROWS - 1) / ROWS;
    const int runs = (blocks + s.blocks_each - 1) / s.blocks_each;
    const int g = group_1 / runs, b0 = group_1 % runs * s.blocks_each;
    const int b1 = min(b0 + s.blocks_each, blocks);
    const int plane = s.out_w * s.out_h, panels = (s.pixels + COLUMNS - 1) / COLUMNS;
    const int n0 = (int)((long)group_0 * panels / s.panel_runs);
    const int n1 = (int)((group_0 + 1L) * panels / s.panel_runs);
    const size_t image = (size_t)group_2 * s.groups + g;
    x += x_first / VECTOR + image * s.channels * s.in_plane;
    w += w_first + (size_t)g * w_group;
    y += (image * s.all_filters + s.filter_first) * plane;
    gate = READS_GATE ? gate + (image * s.all_filters + s.filter_first) * plane : 0;
    norms = NORMS ? norms + 3 * (g * s.all_filters + s.filter_first) : 0;
    bias = bias ? bias + g * s.all_filters + s.filter_first : 0;
    const int size = COLUMNS * s.channels, copies = (s.channels + b1 - b0 - 1) / (b1 - b0);
    struct copy copy = {.x = x, .to = copied, .now = panel_at(n0, &s),
                        .then = panel_at(min(n0 + 1, n1 - 1), &s),
                        .each = (s.channels + copies - 1) / copies};
    while (copy.channel < s.channels)
        copy_channel(&copy, &s);
    for (int n = n0; n < n1; n++) {
        const struct panel p = copy.now;
        __local const V *from = copied + (n - n0) % 2 * size;
        copy.to = copied + (n - n0 + 1) % 2 * size;
        copy.now = copy.then;
        copy.then = panel_at(min(n + 2, n1 - 1), &s);
        copy.channel = n + 1 < n1 ? 0 : s.channels;
        for (int b = b0; b < b1; b++) {
            const struct job job = job_at(w, w_row, bias, y, gate, norms, &s, b);
            some_pixels(from, &job, &s, &copy, p.first, p.count);
        }
    }
}

KERNEL void conv2d_pointwise(__global const S *restrict x, int x_first,
                             __global const real *restrict w, int w_first, int w_group,
                             int w_row, __global const real *restrict bias,
                             __global S *restrict y, __global const S *restrict gate,
                             __global const real *restrict norms, struct lk_pointwise s,
                             __local V *copied GROUP_ARGS)
{
    pointwise_group(x, x_first, w, w_first, w_group, w_row, bias, y, gate, norms, s, copied,
                    GROUP_ID(0), GROUP_ID(1), GROUP_ID(2));
}
