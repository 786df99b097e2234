/* Weight gradient by Winograd's algorithm on CPUs, 3x3 taps on every pixel: the steps of
 * weights.cl in one, for layers whose sums fit in a second-level cache.
 *
 *   out[part][c, k] = G' m[c, k] G, m[p][c, k] = sum over Winograd tiles q of the part and
 *   lanes of v[p][c, q] * z[p][k, q], v = B' x B, z = A dz A'
 *
 * A part is an equal share of a shard's Winograd tiles. The lanes of one make a chain, and the
 * chains' sums are added in order, whatever else is blocked.
 *
 *   x: [tiles][channels][in_h][in_w]; dz: [tiles][filters][out_h][out_w], or what SOURCE says
 *   out: [parts] out_stride apart, [channels][3][3][filters]
 *
 * Groups have equal parts of all (part, block of block_channels, block of PANELS * COLUMNS
 * vectors of filters). A group keeps v[p][block_channels], z[p][PANELS][lane][COLUMNS] and
 * m[p][block_channels][PANELS * COLUMNS] in scratch of its own. The next tile's inputs are
 * fetched beside the products.
 *
 * Group ids: 0: of any number of groups.
 * -D: TILE; SOURCE, as inputs.cl has it; ROWS, COLUMNS: register block; PANELS
 */
#include "lib/hints.cl"
#include "lib/real.cl"
#include "products/kernel/args.h"
#include "products/winograd/args.h"
#include "lib/transpose.cl"
#include "lib/winograd.cl"
#include "products/winograd/inputs.cl"
#include "products/winograd/products.cl"

#define PAD 4 /* keeps positions from sharing sets of a cache */
#define VECTORS (PANELS * COLUMNS)

struct sizes {
    struct winograd_window x, dz;
    int channels, filters, block_channels, parts;
    struct slice slice; /* but for its tiles and shard */
};

struct scratch {
    __global V *v, *z, *m;
    size_t v_step, z_step, m_step;
    __local V *stage;
};

/* A block of channels and of filters. */
struct block {
    int c0, c1, k0, k1;
};

/* Fetches `rows` rows from row y0 on, each `columns` values, of planes [n0, n1). */
INLINE void fetch(const struct winograd_window *from, size_t first, size_t plane, int y0,
                  int x0, int rows, int columns, int n0, int n1, int source)
{
    for (int n = n0; n < n1; n++)
        for (int i = max(y0, 0); i < min(y0 + rows, from->height); i++)
            for (int j = max(x0, 0); j < min(x0 + columns, from->width); j++) {
                const size_t at = (first + n) * plane + i * from->width + j;
                PREFETCH(from->x + at);
                if (source == 1)
                    PREFETCH(from->y + at);
            }
}

/* Share p of POSITIONS of what tile r.q0 reads. */
INLINE void fetch_share(const struct sizes *s, const struct block *b, const struct slice *r,
                        int p)
{
    int y0, x0;
    const size_t t = tile_of(r, r->q0, &y0, &x0);
    const int channels = b->c1 - b->c0, filters = b->k1 - b->k0;
    fetch(&s->x, t * s->channels + b->c0, winograd_plane(&s->x, 0), y0 - r->pad_y,
          x0 - r->pad_x, SIDE, SIDE, channels * p / POSITIONS, channels * (p + 1) / POSITIONS,
          0);
#if SOURCE != 2
    fetch(&s->dz, t * s->filters + b->k0, winograd_plane(&s->dz, SOURCE), y0, x0, TILE, TILE,
          filters * p / POSITIONS, filters * (p + 1) / POSITIONS, SOURCE);
#endif
}

/* m += v * z of the tile of a slice; `next`: the one after it, or null. */
INLINE void add_slice(const struct sizes *s, const struct block *b, const struct slice *r,
                      const struct slice *next, const struct scratch *own, bool first)
{
    make_v(r, s->x, own->v, own->v_step, s->channels, b->c0,
           b->c0 + (b->c1 - b->c0 + ROWS - 1) / ROWS * ROWS, r->q0, r->q1);
    for (int n = 0; n < VECTORS; n++)
        make_z(r, s->dz, own->z + (size_t)(n / COLUMNS) * (VECTOR * COLUMNS) + n % COLUMNS,
               s->filters, b->k0 + n * VECTOR, r->q0, r->q1, own->z_step, own->stage);
    for (int p = 0; p < POSITIONS; p++) {
        if (next)
            fetch_share(s, b, next, p);
        for (int panel = 0; panel < PANELS; panel++)
            for (int c = 0; c < b->c1 - b->c0; c += ROWS)
                multiply((__global const real *)(own->v + p * own->v_step + c), VECTOR,
                         own->z + p * own->z_step + panel * (VECTOR * COLUMNS),
                         own->m + p * own->m_step + c * VECTORS + panel * COLUMNS, VECTORS,
                         ROWS, VECTOR, first);
    }
}

BODY void fused_group(struct sizes s, __global real *restrict out, int out_stride,
                      struct scratch own, int shards, int group_0, int groups_0)
{
    const int c_blocks = (s.channels + s.block_channels - 1) / s.block_channels;
    const int blocks = c_blocks * ((s.filters + VECTORS * VECTOR - 1) / (VECTORS * VECTOR));
    const long all = (long)shards * s.parts * blocks;
    const int down = (s.slice.out_h + TILE - 1) / TILE;
    const int squares = s.slice.shard_tiles * down * ((s.slice.out_w + TILE - 1) / TILE);
    own.v += group_0 * (POSITIONS * (own.v_step + own.z_step + own.m_step));
    own.z = own.v + POSITIONS * own.v_step;
    own.m = own.z + POSITIONS * own.z_step;
    for (long n = all * group_0 / groups_0; n < all * (group_0 + 1) / groups_0; n++) {
        const int part = (int)(n / blocks), at = (int)(n % blocks);
        struct block b = {at % c_blocks * s.block_channels, 0,
                          at / c_blocks * (VECTORS * VECTOR)};
        struct slice r = s.slice;
        const int first = (int)((long)squares * (part % s.parts) / s.parts);
        const int last = (int)((long)squares * (part % s.parts + 1) / s.parts);
        b.c1 = min(b.c0 + s.block_channels, s.channels);
        b.k1 = min(b.k0 + VECTORS * VECTOR, s.filters);
        r.shard = part / s.parts;
        for (r.q0 = first; r.q0 < last; r.q0++) {
            r.q1 = r.q0 + 1;
            struct slice next = r;
            next.q0++;
            add_slice(&s, &b, &r, r.q1 < last ? &next : 0, &own, r.q0 == first);
        }
        __global real *to = out + (size_t)part * out_stride + b.k0;
        for (int c = b.c0; c < b.c1; c++)
            finish_channel(own.m + (size_t)(c - b.c0) * VECTORS, own.m_step,
                           to + (size_t)c * 9 * s.filters, b.k1 - b.k0, s.filters);
    }
}

KERNEL void conv2d_winograd_fused(__global const S *restrict x, __global const S *restrict dz,
                                  int dz_first, __global const S *restrict gate,
                                  __global const B *restrict won, __global real *restrict out,
                                  int out_first, int out_stride, __global V *restrict scratch,
                                  int scratch_first, struct lk_winograd_parts a,
                                  struct lk_geometry of, __local V *stage)
{
    const struct sizes s = {
        {.x = x, .height = of.in_h, .width = of.in_w},
        {dz + dz_first / VECTOR, gate, won, .height = of.out_h, .width = of.out_w},
        a.channels,
        a.filters,
        a.block_channels,
        a.parts,
        {0, 0, 1, a.shard_tiles, 0, of.out_h, of.out_w, of.pad_y, of.pad_x}};
    const struct scratch own = {.v = scratch + scratch_first / VECTOR,
                                .v_step = (size_t)a.block_channels + PAD,
                                .z_step = PANELS * VECTOR * COLUMNS + PAD,
                                .m_step = (size_t)a.block_channels * VECTORS + PAD,
                                .stage = stage};
    fused_group(s, out + out_first, out_stride, own, a.shards, get_group_id(0),
                get_num_groups(0));
}
