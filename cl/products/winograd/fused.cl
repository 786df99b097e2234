/* Winograd convolution on CPUs, 3x3 taps on every pixel: forward and data gradient.
 *
 *   y = A' m A + bias, m[p][k] = sum over n of u[p][k][n] * v[p][n], v = B' x B: one chain in
 *   ascending order of n, whatever the blocking; then relu and a 2x2 max-pool, `at` as in
 *   direct/gather.cl, or what finish.cl says
 *
 * A data gradient is that with turned weights or, TRANSPOSED, which takes fewer tiles where
 * outputs are fewer than inputs, y = B m B', v = A x A': the tiles of x touch, those of y
 * overlap, and are added in row-major order.
 *
 *   x: [tiles][ins][in_h][in_w]; y, at: [tiles][outs][out_h][out_w], or pooled
 *   u: as pack.cl makes it
 *
 * A chunk is `chunk` Winograd tiles, a multiple of EACH, of one batch tile or several,
 * TRANSPOSED, all of these. Groups have equal parts of all (chunk, block of ROWS output
 * channels), so that few chunks are shared. They do EACH tiles at a time: a job. A group keeps
 * v[p][EACH / COLUMNS][ins][COLUMNS] and m[p][EACH / COLUMNS][outs][COLUMNS] in scratch of its
 * own, which stays in the caches, and sums of tiles that overlap, [outs][out_h][out_w]: inputs
 * are transformed, multiplied with ROWS x COLUMNS sums in registers, transformed back.
 * Meanwhile the next job's inputs are fetched.
 *
 * Group ids: 0: of any number of groups.
 * -D: TILE; EACH; ROWS, COLUMNS: register block; SOURCE: of dy, as inputs.cl has it, with
 *     y or `at` of the forward pass as `gate` and `won`; POOL; GATED: y is 0 where `y_gate`, of
 *     its layout, is not above 0; ADDS: y_gate is what is added; TRANSPOSED; those of finish.cl
 */
#include "lib/hints.cl"
#include "lib/real.cl"
#include "products/kernel/args.h"
#include "products/winograd/args.h"
#include "lib/put.cl"
#include "lib/greatest.cl"
#include "lib/winograd.cl"
#include "lib/finish.cl"
#include "products/winograd/inputs.cl"
#include "products/winograd/outputs.cl"

/* --- products -------------------------------------------------------------------------- */

#define WEIGHTS_AHEAD 1024 /* reals */

/* m[ROWS][COLUMNS] = sum over n of u[n][ROWS] * v[n][COLUMNS]. */
INLINE void multiply(__global const V *v, __global const real *u, __global V *m, int ins)
{
    V a[ROWS][COLUMNS];
    UNROLL for (int i = 0; i < ROWS; i++)
        UNROLL for (int j = 0; j < COLUMNS; j++)
            a[i][j] = (V)0;
    for (int n = 0; n < ins; n++) {
        if ((n & (16 / ROWS - 1)) == 0)
            PREFETCH(u + WEIGHTS_AHEAD);
        UNROLL for (int i = 0; i < ROWS; i++) {
            const V f = u[i];
            UNROLL for (int j = 0; j < COLUMNS; j++)
                a[i][j] = FMA(f, v[j], a[i][j]);
        }
        v += COLUMNS;
        u += ROWS;
    }
    UNROLL for (int i = 0; i < ROWS; i++)
        UNROLL for (int j = 0; j < COLUMNS; j++)
            m[i * COLUMNS + j] = a[i][j];
}

/* --- jobs ------------------------------------------------------------------------------ */

struct sizes {
    struct winograd_window from; /* of the batch's first plane */
    __global S *y;
    __global const S *y_gate;
    __global const real *norms; /* or null */
    __global B *at;
    int ins, outs, out_h, out_w, pad_y, pad_x;
    int tiles, chunk, down, across; /* batch tiles; Winograd tiles of a chunk, of a plane */
    bool stream; /* y is written past the caches */
};

/* A Winograd tile: its place in the plane of outputs or, TRANSPOSED, of inputs, and where the
 * planes of its images begin. run: tiles from it on that are side by side. */
struct place {
    int y0, x0, run;
    size_t in, out;
};

struct job {
    struct place places[EACH];
    int count, k0, k1; /* places; output channels */
};

/* What is left of a group's work: blocks of output channels, counted over all chunks, and the
 * tile of the chunk with which the next job begins. */
struct cursor {
    long first, end;
    int q;
};

INLINE int blocks_of(const struct sizes *s)
{
    return (s->outs + ROWS - 1) / ROWS;
}

INLINE int tiles_of(const struct sizes *s)
{
    return s->tiles * s->down * s->across;
}

/* The job at the cursor, which moves on. */
INLINE struct job next_job(const struct sizes *s, struct cursor *at)
{
    const int squares = s->down * s->across, blocks = blocks_of(s);
    const int chunk = (int)(at->first / blocks), first = (int)(at->first % blocks);
    const int last = (int)min((long)blocks, at->end - at->first + first);
    const int q0 = chunk * s->chunk + at->q;
    struct job job;
    job.count = min(EACH, tiles_of(s) - q0);
    job.k0 = first * ROWS;
    job.k1 = min(last * ROWS, s->outs);
    for (int i = 0; i < job.count; i++) {
        const int t = (q0 + i) / squares, q = (q0 + i) % squares;
        job.places[i].y0 = q / s->across * TILE;
        job.places[i].x0 = q % s->across * TILE;
        job.places[i].run =
            min(min(job.count - i, COLUMNS - i % COLUMNS), s->across - q % s->across);
        job.places[i].in = t * winograd_plane(&s->from, SOURCE) * s->ins;
        job.places[i].out = (size_t)t * s->outs * (s->out_h >> POOL) * (s->out_w >> POOL);
    }
    at->q += EACH;
    if (at->q >= s->chunk || q0 + EACH >= tiles_of(s)) {
        at->q = 0;
        at->first += last - first;
    }
    return job;
}

#if TRANSPOSED
#define READ TILE /* inputs along each side of a tile */
#define PAD_OF(axis) 0
#else
#define READ SIDE
#define PAD_OF(axis) s->pad_##axis
#endif

/* Makes v of a job. */
INLINE void transform_inputs(const struct sizes *s, const struct job *job, __global V *v,
                             size_t stride)
{
    for (int n = 0; n < s->ins; n++)
        for (int i = 0, run; i < job->count; i += run) {
            const struct place *at = &job->places[i];
            const struct winograd_window from =
                winograd_window_at(s->from, at->in + n * winograd_plane(&s->from, SOURCE),
                                   at->y0 - PAD_OF(y), at->x0 - PAD_OF(x), SOURCE);
            __global V *to = v + ((size_t)(i / COLUMNS) * s->ins + n) * COLUMNS + i % COLUMNS;
#if TRANSPOSED
            run = 1;
            winograd_gradients(&from, to, stride, SOURCE);
#else
            run = at->run;
            winograd_strip(&from, run, to, stride, SOURCE);
#endif
        }
}

/* Fetches row r of a job's inputs, READ of every channel. */
INLINE void fetch_inputs(const struct sizes *s, const struct job *job, int r)
{
#if SOURCE != 2
    for (int i = 0; i < job->count; i += job->places[i].run) {
        const struct place *at = &job->places[i];
        const int row = clamp(at->y0 - PAD_OF(y) + r % READ, 0, s->from.height - 1);
        const int x0 = max(at->x0 - PAD_OF(x), 0);
        const int columns = min(at->run * TILE + READ - TILE, s->from.width - x0);
        const size_t place =
            at->in + ((size_t)(r / READ) * s->from.height + row) * s->from.width + x0;
        for (int j = 0; j < columns; j++) {
            PREFETCH(s->from.x + place + j);
#if SOURCE == 1
            PREFETCH(s->from.y + place + j);
#endif
        }
    }
#endif
}

/* Fetches row r of what gates a job's outputs, HEIGHT of every channel. */
#define HEIGHT (TRANSPOSED ? SIDE : TILE)
INLINE void fetch_gates(const struct sizes *s, const struct job *job, int r)
{
    const size_t plane = (size_t)(job->k0 + r / HEIGHT) * s->out_h * s->out_w;
    for (int i = 0; i < job->count; i += job->places[i].run) {
        const struct place *at = &job->places[i];
        const int y0 = at->y0 - (TRANSPOSED ? s->pad_y : 0) + r % HEIGHT;
        const int x0 = max(at->x0 - (TRANSPOSED ? s->pad_x : 0), 0);
        const int columns = min((at->run - 1) * TILE + HEIGHT, s->out_w - x0);
        const size_t place = at->out + plane + clamp(y0, 0, s->out_h - 1) * s->out_w + x0;
        for (int j = 0; j < columns; j++)
            PREFETCH(s->y_gate + place + j);
    }
}

/* m of a job; what gates its outputs and the next one's inputs are fetched meanwhile, a little
 * with every block. */
INLINE void multiply_job(const struct sizes *s, const struct job *job, const struct job *next,
                         __global const real *u, __global const V *v, size_t v_step,
                         __global V *m, size_t m_step)
{
    const int blocks = blocks_of(s), columns = (job->count + COLUMNS - 1) / COLUMNS;
    const int rows = next ? s->ins * READ : 0;
    const int runs = POSITIONS * ((job->k1 - job->k0 + ROWS - 1) / ROWS);
    const int gates = READS_GATE ? (job->k1 - job->k0) * HEIGHT : 0;
    int due = 0, row = 0, due_gates = 0, gate = 0;
    for (int p = 0; p < POSITIONS; p++)
        for (int k = job->k0; k < job->k1; k += ROWS) {
            for (int j = 0; j < columns; j++)
                multiply(v + p * v_step + (size_t)j * s->ins * COLUMNS,
                         u + ((size_t)p * blocks + k / ROWS) * s->ins * ROWS,
                         m + p * m_step + ((size_t)j * blocks * ROWS + k - job->k0) * COLUMNS,
                         s->ins);
            for (due += rows; due >= runs; due -= runs)
                fetch_inputs(s, next, row++);
            for (due_gates += gates; due_gates >= runs; due_gates -= runs)
                fetch_gates(s, job, gate++);
        }
}

/* Makes y of a job. */
INLINE void transform_outputs(const struct sizes *s, const struct job *job,
                              __global const real *bias, V least, __global V *m, size_t stride)
{
    const size_t size = (size_t)(s->out_h >> POOL) * (s->out_w >> POOL);
    for (int k = job->k0; k < job->k1; k++)
        for (int i = 0; i < job->count; i++) {
            const struct place *at = &job->places[i];
            const size_t image = at->out + k * size;
            const struct plane to = {s->y + image,
                                     s->at ? s->at + image : 0,
                                     READS_GATE ? s->y_gate + image : 0,
                                     s->out_h, s->out_w,
                                     bias ? bias[k] : (real)0,
                                     least,
                                     s->stream, NORMS ? s->norms + 3 * k : 0};
            __global const V *from =
                m + ((size_t)(i / COLUMNS) * blocks_of(s) * ROWS + k - job->k0) * COLUMNS +
                i % COLUMNS;
#if TRANSPOSED
            const struct overlap with = {at->y0 > 0, at->x0 > 0, at->y0 + TILE < s->from.height,
                                         at->x0 + TILE < s->from.width,
                                         m + POSITIONS * stride + (k - job->k0) * size};
            scatter_tile(&to, &with, from, stride, at->y0 - s->pad_y, at->x0 - s->pad_x);
#else
            store_tile(&to, from, stride, at->y0, at->x0);
#endif
        }
}

BODY void winograd_group(struct sizes s, __global const real *restrict u,
                         __global const real *restrict bias, __global V *restrict scratch,
                         int relu, int group_0, int groups_0)
{
    const int blocks = blocks_of(&s);
    const size_t v_step = (size_t)EACH * s.ins + 4, m_step = (size_t)EACH * blocks * ROWS + 4;
    const size_t overlaps = TRANSPOSED ? (size_t)s.outs * s.out_h * s.out_w : 0;
    __global V *v = scratch + group_0 * (POSITIONS * (v_step + m_step) + overlaps);
    __global V *m = v + POSITIONS * v_step;
    const V least = relu ? (V)0 : (V)-INFINITY;
    const long all = (long)((tiles_of(&s) + s.chunk - 1) / s.chunk) * blocks;
    struct cursor at = {all * group_0 / groups_0, all * (group_0 + 1) / groups_0, 0};
    struct job job = next_job(&s, &at);
    for (bool more = true; more;) {
        more = at.first < at.end;
        const struct job next = more ? next_job(&s, &at) : job;
        transform_inputs(&s, &job, v, v_step);
        multiply_job(&s, &job, more ? &next : 0, u, v, v_step, m, m_step);
        transform_outputs(&s, &job, bias, least, m, m_step);
        job = next;
    }
}

KERNEL void conv2d_winograd(__global const S *restrict x, int x_first,
                            __global const S *restrict gate, __global const B *restrict won,
                            __global const real *restrict u, int u_first,
                            __global const real *restrict bias, __global S *restrict y,
                            __global B *restrict at, __global const S *restrict y_gate,
                            __global const real *restrict norms, __global V *restrict scratch,
                            int scratch_first, struct lk_winograd_whole a,
                            struct lk_geometry of GROUP_ARGS)
{
    const struct sizes s = {
        .from = {x + x_first / VECTOR, gate, won, .height = of.in_h, .width = of.in_w},
        .y = y, .at = at,
        .y_gate = y_gate, .norms = norms,
        .ins = a.ins, .outs = a.outs,
        .out_h = of.out_h, .out_w = of.out_w,
        .pad_y = of.pad_y, .pad_x = of.pad_x, .tiles = a.tiles, .chunk = a.chunk,
        .down = ((TRANSPOSED ? of.in_h : of.out_h) + TILE - 1) / TILE,
        .across = ((TRANSPOSED ? of.in_w : of.out_w) + TILE - 1) / TILE,
        .stream = a.stream};
    winograd_group(s, u + u_first, bias, scratch + scratch_first / VECTOR, a.relu,
                   GROUP_ID(0), GROUP_COUNT(0));
}
