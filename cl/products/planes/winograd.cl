/* Winograd's algorithm over plane tiles, whose lanes are Winograd tiles side by side:
 * y = act(A' m A + b), where m[p][k] = sum over images and c of u[p][k][c] v[p][c],
 * v = B' x B. What images, and which positions p: positions.cl.
 *
 *   planes_winograd_inputs   v: [sections][samples][p][images][c][v_plane], from p to p
 *                            v_position
 *   planes_winograd_outputs  y, of m: [sections][samples][p][k][m_plane], from p to p
 *                            m_position, which convolve.cl makes of v and u (winograd_pack.cl):
 *                            the positions of a section are groups
 *
 * All take g.rows rows of Winograd tiles from g.first on: a strip, for which v and m stay in
 * the caches. x, y, more: as convolve.cl; scratch: of a group, from g.scratch on. -D: TILE 2 or
 * 4; STRIDE_Y, STRIDE_X: both 1 or 2; TAPS_Y, TAPS_X, GAP_Y, GAP_X: 1; FILTERS, RELU, ADDS: as
 * convolve.cl. Group ids: 0: `each` channels or filters, 1: sample.
 */
#include "lib/real.cl"
#include "products/planes/args.h"
#include "lib/planes.cl"
#include "products/planes/positions.cl"
#include "products/planes/tile_rows.cl"
#include "lib/finish.cl"

/* --- inputs ----------------------------------------------------------------------------- */

/* An image of a plane: rows `pitch` apart, and where its v lies. */
struct image {
    __global const real *x;
    int pitch;
    __global real *v;
    size_t next; /* from image to image */
    const struct positions *at;
};

/* Of VECTOR Winograd tiles, the first at x and v: of a row, or of a pair of `across` each. */
INLINE void transform_tiles(const struct image *image, __global const real *x,
                            __global real *v, bool is_pair, int across, int odd_y, int odd_x)
{
    const int to_other = is_pair ? TILE * image->pitch : TILE * VECTOR / 2;
    V turned[SIDE][SIDE];
    UNROLL
    for (int i = 0; i < SIDE; i++) {
        __global const real *row = x + i * image->pitch;
        V d[2 * TILE];
        part_tiles(row, row + to_other, d);
        part_tiles(row + TILE, row + to_other + TILE, d + TILE);
#define D(j) d[j]
        WINOGRAD_BT(turned[i], D);
#undef D
    }
    UNROLL
    for (int j = 0; j < SIDE; j++) {
        V o[SIDE];
#define D(i) turned[i][j]
        WINOGRAD_BT(o, D);
#undef D
        UNROLL
        for (int i = 0; i < SIDE; i++)
            if (has_image(i, j, odd_y, odd_x))
                store_tiles(v + position_at(image->at, i, j) +
                                image_of(i, j, odd_y, odd_x) * image->next,
                            is_pair, across, o[i]);
    }
}

/* Of `rows` rows of `across` Winograd tiles. What a row writes beyond its end the next one
 * overwrites. */
INLINE void transform_image(const struct image *image, int rows, int across, int odd_y,
                            int odd_x)
{
    const int next = TILE * image->pitch;
    int i = 0;
    for (; across <= HALF && i + 1 < rows; i += 2)
        transform_tiles(image, image->x + i * next, image->v + i * across, true, across, odd_y,
                        odd_x);
    for (; i < rows; i++)
        for (int t = 0; t < across; t += VECTOR)
            transform_tiles(image, image->x + i * next + t * TILE, image->v + i * across + t,
                            false, across, odd_y, odd_x);
}

BODY void transform_channel(const struct lk_planes *a, const struct lk_plane_winograd *g,
                            __global const real *x, struct surroundings around,
                            __global real *scratch, __global real *v, size_t next,
                            const struct positions *positions)
{
    const struct positions at = *positions; /* a copy stays in registers */
    struct image image = {.pitch = a->out_w, .v = v, .next = next, .at = &at};
    for (int s = 0; s < STRIDE_X; s++)
        arrange_copy(a, x, around, scratch + s * a->copy, s, 0);
#define TRANSFORM(odd_y, odd_x)                                                                \
    image.x = scratch + (odd_x)*a->copy + (odd_y)*a->rows * a->out_w;                          \
    transform_image(&image, g->rows, g->across, odd_y, odd_x)
    TRANSFORM(0, 0);
#if STRIDE_Y == 2
    TRANSFORM(0, 1);
    TRANSFORM(1, 0);
    TRANSFORM(1, 1);
#endif
#undef TRANSFORM
}

KERNEL void planes_winograd_inputs(__global const real *x, int x_first,
                                   __global real *workspace, struct lk_planes a,
                                   struct lk_plane_winograd g, int channels,
                                   int each GROUP_ARGS)
{
    const int first = GROUP_ID(0) * each, sample = GROUP_ID(1), samples = GROUP_COUNT(1);
    const size_t group = (size_t)sample * GROUP_COUNT(0) + GROUP_ID(0);
    const struct positions at = positions_of(g.v_position, sample, samples);
    __global real *scratch = workspace + g.scratch + group * g.scratch_each;
    x += x_first;
    for (int c = first; c < min(first + each, channels); c++) {
        const size_t plane = (size_t)sample * channels + c;
        transform_channel(&a, &g, x + plane * a.in_vectors * VECTOR,
                          around(&a, plane, (size_t)samples * channels), scratch,
                          workspace + g.v_first + c * g.v_plane, (size_t)channels * g.v_plane,
                          &at);
    }
}

/* --- outputs ---------------------------------------------------------------------------- */

/* TILE rows of y, `pitch` apart, each ending in what no one reads; as transform_tiles(). */
INLINE void restore_tiles(__global const real *m, const struct positions *at, bool is_pair,
                          int across, real shift, __global real *y, int pitch)
{
    const int to_other = is_pair ? TILE * pitch : TILE * VECTOR / 2;
    V s[TILE][SIDE];
    UNROLL
    for (int j = 0; j < SIDE; j++) {
        V column[TILE];
#define M(i) load_tiles(m + position_at(at, i, j), is_pair, across)
        WINOGRAD_AT(column, M);
#undef M
        UNROLL
        for (int i = 0; i < TILE; i++)
            s[i][j] = column[i];
    }
    UNROLL
    for (int i = 0; i < TILE; i++) {
        V row[TILE];
#define M(j) s[i][j]
        WINOGRAD_AT(row, M);
#undef M
        UNROLL
        for (int j = 0; j < TILE; j++)
            row[j] += (V)shift;
        join_tiles(row, y + i * pitch, y + i * pitch + to_other);
    }
}

INLINE void restore_rows(__global const real *m, const struct positions *at, int rows,
                         int across, real shift, __global real *y, int pitch)
{
    const int next = TILE * pitch;
    int i = 0;
    for (; across <= HALF && i + 1 < rows; i += 2)
        restore_tiles(m + i * across, at, true, across, shift, y + i * next, pitch);
    for (; i < rows; i++)
        for (int t = 0; t < across; t += VECTOR)
            restore_tiles(m + i * across + t, at, false, across, shift,
                          y + i * next + t * TILE, pitch);
}

/* The strip of a plane of y, by way of scratch: its rows apart, then one behind the other. */
BODY void restore_filter(const struct lk_planes *a, const struct lk_plane_winograd *g,
                         __global const real *m, const struct positions *positions,
                         real shift, __global real *scratch, __global const V *more,
                         __global V *y)
{
    const struct positions at = *positions;
    const int pitch = g->width, width = a->in_w, begin = g->first * TILE;
    const int rows = min((int)g->rows * TILE, (int)a->in_h - begin);
    __global real *joined = scratch + (g->rows * TILE + 1) * pitch;
    restore_rows(m, &at, g->rows, g->across, shift, scratch, pitch);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < width; j += VECTOR)
            ROW_STORE(joined + i * width + j, ROW_LOAD(scratch + i * pitch + j));
    const int from = begin * width / VECTOR, count = (rows * width + VECTOR - 1) / VECTOR;
    for (int i = 0; i < count; i++)
        y[from + i] = finish(ROW_LOAD(joined + i * VECTOR), more + from + i);
}

KERNEL void planes_winograd_outputs(__global real *workspace, __global const real *packed,
                                    int packed_first, __global const V *more, __global V *y,
                                    int y_first, struct lk_planes a, struct lk_plane_winograd g,
                                    int filters, int each GROUP_ARGS)
{
    const int first = GROUP_ID(0) * each, sample = GROUP_ID(1);
    const size_t group = (size_t)sample * GROUP_COUNT(0) + GROUP_ID(0);
    const struct positions at = positions_of(g.m_position, sample, GROUP_COUNT(1));
    packed += packed_first;
    __global real *scratch = workspace + g.scratch + group * g.scratch_each;
    for (int k = first; k < min(first + each, filters); k++) {
        const size_t to = ((size_t)sample * filters + k) * a.in_vectors;
        restore_filter(&a, &g, workspace + g.m_first + k * g.m_plane, &at, packed[g.shift + k],
                       scratch, more + to, y + y_first / VECTOR + to);
    }
}
