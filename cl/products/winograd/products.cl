/* What Winograd's weight gradient is made of on CPUs, see weights.cl. Needs
 * lib/hints.cl, lib/real.cl, lib/transpose.cl, lib/winograd.cl, inputs.cl. -D:
 * TILE; SOURCE; ROWS, COLUMNS: register block
 */
/* Where the squares of a round lie. */
struct slice {
    int q0, q1, room, shard_tiles, shard, out_h, out_w, pad_y, pad_x;
};

/* Batch tile and place of Winograd tile q of the shard. */
INLINE int tile_of(const struct slice *r, int q, int *y0, int *x0)
{
    const int across = (r->out_w + TILE - 1) / TILE;
    const int squares = (r->out_h + TILE - 1) / TILE * across;
    *y0 = q % squares / across * TILE;
    *x0 = q % squares % across * TILE;
    return r->shard * r->shard_tiles + q / squares;
}

/* v of channels [c0, c1), the first of which v is; those past the last are as the last. */
INLINE void make_v(const struct slice *r, struct winograd_window x, __global V *v,
                   size_t stride, int channels, int c0, int c1, int first, int last)
{
    const size_t plane = winograd_plane(&x, 0);
    for (int c = c0; c < c1; c++, v += r->room)
        for (int q = first; q < last; q++) {
            int y0, x0;
            const int t = tile_of(r, q, &y0, &x0);
            const size_t image = (size_t)t * channels + min(c, channels - 1);
            const struct winograd_window from =
                winograd_window_at(x, image * plane, y0 - r->pad_y, x0 - r->pad_x, 0);
            winograd_strip(&from, 1, v + q - r->q0, stride, 0);
        }
}

/* z of a vector of filters from k0 on. stage: [TILE * TILE][VECTOR] */
INLINE void make_z(const struct slice *r, struct winograd_window dz, __global V *z, int filters,
                   int k0, int first, int last, size_t stride, __local V *stage)
{
    const size_t plane = winograd_plane(&dz, SOURCE);
    for (int q = first; q < last; q++) {
        int y0, x0;
        const int t = tile_of(r, q, &y0, &x0);
        const struct winograd_window from =
            winograd_window_at(dz, ((size_t)t * filters + k0) * plane, y0, x0, SOURCE);
        for (int n = 0; n < TILE * TILE; n++) {
            const int i = y0 + n / TILE, j = x0 + n % TILE;
            const int there = winograd_is_inside(&from, i, j) ? filters - k0 : 0;
            struct winograd_window of = from;
            V d[VECTOR];
            if (there >= VECTOR)
                UNROLL for (int k = 0; k < VECTOR; k++) {
                    d[k] = winograd_input(&of, i, j, SOURCE);
                    of = winograd_window_at(of, plane, y0, x0, SOURCE);
                }
            else
                for (int k = 0; k < VECTOR; k++) {
                    d[k] = k < there ? winograd_input(&of, i, j, SOURCE) : (V)0;
                    of = winograd_window_at(of, plane, y0, x0, SOURCE);
                }
            transpose(d);
            UNROLL for (int l = 0; l < VECTOR; l++)
                stage[n * VECTOR + l] = d[l];
        }
        for (int l = 0; l < VECTOR; l++) {
            V s[SIDE][TILE];
            UNROLL for (int j = 0; j < TILE; j++) {
                V column[SIDE];
#define D(i) stage[((i) * TILE + j) * VECTOR + l]
                WINOGRAD_A(column, D);
#undef D
                UNROLL for (int i = 0; i < SIDE; i++)
                    s[i][j] = column[i];
            }
            winograd_gradient_rows(s, z + ((size_t)(q - r->q0) * VECTOR + l) * COLUMNS, stride);
        }
    }
}

/* m[ROWS][COLUMNS] of channels whose values of v are `row` apart; `left` of them are there. */
INLINE void multiply(__global const real *v, size_t row, __global const V *z, __global V *m,
                     size_t m_row, int left, int depth, bool first)
{
    V a[ROWS][COLUMNS];
    size_t rows[ROWS];
    UNROLL for (int i = 0; i < ROWS; i++) {
        rows[i] = (size_t)min(i, left - 1) * row;
        UNROLL for (int j = 0; j < COLUMNS; j++)
            a[i][j] = (V)0;
    }
    for (int n0 = 0; n0 < depth; n0 += VECTOR) {
        UNROLL for (int i = 0; i < ROWS; i++)
            PREFETCH(v + (rows[i] + ROWS * row + n0));
        _Pragma("unroll 4") for (int n = n0; n < n0 + VECTOR; n++)
            UNROLL for (int i = 0; i < ROWS; i++) {
                const V f = v[rows[i] + n];
                UNROLL for (int j = 0; j < COLUMNS; j++)
                    a[i][j] = FMA(f, z[n * COLUMNS + j], a[i][j]);
            }
    }
    UNROLL for (int i = 0; i < ROWS; i++)
        if (i < left)
            UNROLL for (int j = 0; j < COLUMNS; j++)
                m[i * m_row + j] = first ? a[i][j] : m[i * m_row + j] + a[i][j];
}

/* dw of a channel and `left` of the filters, from m of these, positions `stride` apart. */
INLINE void finish_channel(__global const V *m, size_t stride, __global real *dw, int left,
                           int filters)
{
    for (int k = 0; k < left; k += VECTOR, m++) {
        V taps[3][3];
        winograd_taps(taps, m, stride);
        UNROLL for (int r = 0; r < 9; r++) {
            const V tap = taps[r / 3][r % 3];
            __global real *to = dw + r * filters + k;
            if (k + VECTOR <= left)
                PASTE(vstore, VECTOR)(tap, 0, to);
            else
                for (int l = 0; l < left - k; l++)
                    to[l] = ((const real *)&tap)[l];
        }
    }
}
