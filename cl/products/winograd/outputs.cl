/* The outputs of a Winograd tile. Needs lib/put.cl, lib/greatest.cl, lib/winograd.cl,
 * lib/finish.cl.
 * -D: POOL: a 2x2 max-pool follows; TRANSPOSED, as fused.cl has it */

/* A plane of outputs, before the pool height x width. least: 0 with relu, else -INFINITY.
 * stream: outputs are written past the caches. */
struct plane {
    __global S *y;
    __global B *at; /* or null */
    __global const S *gate; /* as y, where GATED or ADDS */
    int height, width;
    V bias, least;
    bool stream;
    __global const real *norm; /* of the filter, where NORMS */
};

INLINE void write(const struct plane *to, int at, V v)
{
    if (to->stream) {
        APART;
        PUT_PAST(to->y + at, v);
        APART;
    } else {
        STORE(to->y + at, v);
    }
}

#if TRANSPOSED
/* Of a tile of SIDE x SIDE outputs at (y0, x0): what it shares with neighbouring tiles. */
struct overlap {
    bool above, left, below, right; /* which are there */
    __global V *sums;               /* of the plane, so far */
};

/* y += B m B', positions of m `stride` apart: y is written with the last tile that
 * adds to it. */
INLINE void scatter_tile(const struct plane *to, const struct overlap *with,
                         __global const V *m, size_t stride, int y0, int x0)
{
    V t[SIDE][SIDE];
    UNROLL for (int j = 0; j < SIDE; j++) {
        V column[SIDE];
#define M(i) m[((i) * SIDE + j) * stride]
        WINOGRAD_B(column, M);
#undef M
        UNROLL for (int i = 0; i < SIDE; i++)
            t[i][j] = column[i];
    }
    UNROLL for (int i = 0; i < SIDE; i++)
        if ((uint)(y0 + i) < (uint)to->height) {
            const bool begun = i < 2 && with->above, left = i >= TILE && with->below;
            V row[SIDE];
#define M(j) t[i][j]
            WINOGRAD_B(row, M);
#undef M
            UNROLL for (int j = 0; j < SIDE; j++)
                if ((uint)(x0 + j) < (uint)to->width) {
                    const int at = (y0 + i) * to->width + x0 + j;
                    V sum = row[j];
                    if (begun || (j < 2 && with->left))
                        sum += with->sums[at];
                    if (left || (j >= TILE && with->right))
                        with->sums[at] = sum;
                    else
                        write(to, at, GATE(to->gate + at, sum));
                }
        }
}
#endif

/* Two rows of a tile, row y0 and column x0 of the plane. */
INLINE void store_rows(const struct plane *to, V r[2][TILE], int y0, int x0, bool whole)
{
#if POOL
    if (whole || y0 < to->height)
        UNROLL for (int j = 0; j < TILE; j += 2)
            if (whole || x0 + j < to->width) {
                const int at = (y0 / 2 * (to->width / 2) + (x0 + j) / 2) * PARTS;
                I which;
                const V most = greatest(r[0][j], r[0][j + 1], r[1][j], r[1][j + 1], &which);
                write(to, at, most < to->least ? to->least : most);
                if (to->at)
                    to->at[at] = TO_B(most <= to->least ? (I)4 : which);
            }
#else
    UNROLL for (int i = 0; i < 2; i++)
        if (whole || y0 + i < to->height)
            UNROLL for (int j = 0; j < TILE; j++)
                if (whole || x0 + j < to->width) {
                    const int at = ((y0 + i) * to->width + x0 + j) * PARTS;
                    const V v = finish_norm(r[i][j], to->norm, to->gate + at);
                    write(to, at, GATE(to->gate + at, v < to->least ? to->least : v));
                }
#endif
}

/* y = A' m A + bias, positions of m `stride` apart. */
INLINE void store_tile(const struct plane *to, __global const V *m, size_t stride, int y0,
                       int x0)
{
    V t[TILE][SIDE];
    const bool whole = y0 + TILE <= to->height && x0 + TILE <= to->width;
    UNROLL for (int j = 0; j < SIDE; j++) {
        V column[TILE];
#define M(i) m[((i) * SIDE + j) * stride]
        WINOGRAD_AT(column, M);
#undef M
        UNROLL for (int i = 0; i < TILE; i++)
            t[i][j] = column[i];
    }
    UNROLL for (int i = 0; i < TILE; i += 2) {
        V r[2][TILE];
        UNROLL for (int h = 0; h < 2; h++) {
#define M(j) t[i + h][j]
            WINOGRAD_AT(r[h], M);
#undef M
            UNROLL for (int j = 0; j < TILE; j++)
                r[h][j] += to->bias;
        }
        store_rows(to, r, y0 + i, x0, whole);
    }
}
