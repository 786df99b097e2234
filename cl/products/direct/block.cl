/* The register block of conv2d_weights: ROWS channels, COLUMNS filters and one row of taps, its
 * operands and the order of its sums. Needs lib/real.cl, lib/sum.cl, taps.cl and the names
 * that staged_weights.cl defines. */

/* Rows [i0, i1) and columns [j0, j1) of the outputs of one tile. */
struct area {
    int i0, i1, j0, j1;
};

/* The operands of a register block: those of channel and filter 0. */
struct block {
    __global const S *x[ROWS];
    __global const S *dy, *y;
    __global const B *at;
    __local const V *dz;
    int filters;
};

INLINE V gradient(__global const S *dy, __global const S *y, __global const B *at, int i, int j)
{
#if GRADIENT == 2
    const int from = (i / 2 * (OUT_W / 2) + j / 2) * PARTS;
    return TO_I(at[from]) == (I)(i % 2 * 2 + j % 2) ? LOAD(dy + from) : (V)0;
#elif GRADIENT == 1
    const int from = (i * OUT_W + j) * PARTS;
    return LOAD(y + from) > (V)0 ? LOAD(dy + from) : (V)0;
#else
    return LOAD(dy + (i * OUT_W + j) * PARTS);
#endif
}

#define X_AT(j, s) (((j) * STRIDE_X + (s) * GAP_X - PAD_X) * PARTS)

/* One output pixel. The operands that are fewer stay in registers. xs: column 0 of the input
 * row of each channel. */
INLINE void add_pixel(V a[ROWS][COLUMNS][TAPS_X], const struct block *b,
                      __global const S *xs[ROWS], __local const V *dz, int i, int j, bool edge)
{
    V d[COLUMNS];
    UNROLL for (int m = 0; m < COLUMNS; m++)
#if STAGED
        d[m] = dz[m];
#else
        d[m] = m < b->filters ? gradient(b->dy + (size_t)m * DY_PLANE * PARTS,
                                         b->y + (size_t)m * DY_PLANE * PARTS,
                                         b->at + (size_t)m * DY_PLANE * PARTS, i, j)
                              : (V)0;
#endif
#if COLUMNS > ROWS * TAPS_X
    UNROLL for (int m = 0; m < COLUMNS; m++)
        UNROLL for (int c = 0; c < ROWS; c++)
            UNROLL for (int s = 0; s < TAPS_X; s++)
                if (!edge || inside(j, s))
                    a[c][m][s] = FMA(d[m], LOAD(xs[c] + X_AT(j, s)), a[c][m][s]);
#else
    UNROLL for (int c = 0; c < ROWS; c++)
        UNROLL for (int s = 0; s < TAPS_X; s++)
            if (!edge || inside(j, s))
                UNROLL for (int m = 0; m < COLUMNS; m++)
                    a[c][m][s] = FMA(d[m], LOAD(xs[c] + X_AT(j, s)), a[c][m][s]);
#endif
}

/* Adds the products of an area with tap row r. */
INLINE void add_area(V a[ROWS][COLUMNS][TAPS_X], const struct block *b, struct area area, int r)
{
    const int top = PAD_Y - r * GAP_Y, bottom = IN_H - 1 + top;
    const int i0 = max(area.i0, top > 0 ? (top + STRIDE_Y - 1) / STRIDE_Y : 0);
    const int i1 = min(area.i1, bottom < 0 ? 0 : bottom / STRIDE_Y + 1);
    __global const S *xs[ROWS];
    UNROLL for (int c = 0; c < ROWS; c++)
        xs[c] = b->x[c] + (i0 * STRIDE_Y - top) * (IN_W * PARTS);
    __local const V *row = b->dz + (i0 - area.i0) * (STRIP * COLUMNS);
    for (int i = i0; i < i1; i++) {
        __local const V *dz = row;
        const bool left = WHOLE || area.j0 == 0, right = WHOLE || area.j1 == OUT_W;
        const int j0 = left ? LEFT : area.j0, j1 = right ? OUT_W - RIGHT : area.j1;
        if (LEFT > 0 && left)
            UNROLL for (int j = 0; j < LEFT; j++)
                add_pixel(a, b, xs, dz + j * COLUMNS, i, j, true);
        dz += (j0 - (WHOLE ? 0 : area.j0)) * COLUMNS;
        for (int j = j0; j < j1; j++, dz += COLUMNS)
            add_pixel(a, b, xs, dz, i, j, CHECK);
        if (RIGHT > 0 && right)
            UNROLL for (int j = 0; j < RIGHT; j++)
                add_pixel(a, b, xs, dz + j * COLUMNS, i, OUT_W - RIGHT + j, true);
        row += STRIP * COLUMNS;
        UNROLL for (int c = 0; c < ROWS; c++)
            xs[c] += STRIDE_Y * IN_W * PARTS;
    }
}

/* Operands of channel c and filter k of a tile; channels past the last are read as the last. */
INLINE struct block block_at(struct block tile, int c, int k, int channels, int filters)
{
    __global const S *x = tile.x[0];
    UNROLL for (int m = 0; m < ROWS; m++)
        tile.x[m] = x + (size_t)min(c + m, channels - 1) * (IN_PLANE * PARTS);
    const size_t to = (size_t)k * (DY_PLANE * PARTS);
    tile.dy += to;
    tile.y = GRADIENT == 1 ? tile.y + to : 0;
    tile.at = GRADIENT == 2 ? tile.at + to : 0;
    tile.filters = filters - k;
    return tile;
}

/* Operands of the first channel and filter of a group in a tile. */
INLINE struct block tile_at(__global const S *x, __global const S *dy, __global const S *y,
                            __global const B *at, size_t image, int channels, int filters)
{
    const size_t to = image * filters * (DY_PLANE * PARTS) + PART;
    struct block tile;
    UNROLL for (int c = 0; c < ROWS; c++) /* each one set by itself: Clover's compiler dies of a
                                           * structure initialized in part */
        tile.x[c] = x + image * channels * (IN_PLANE * PARTS) + PART;
    tile.dy = dy + to;
    tile.y = GRADIENT == 1 ? y + to : 0;
    tile.at = GRADIENT == 2 ? at + to : 0;
    return tile;
}

#define TILE_AT(t) tile_at(x, dy, y, at, (size_t)(t)*GROUPS + g, channels, filters)

/* Adds the lanes of a block's sums. */
INLINE void store(const V a[ROWS][COLUMNS][TAPS_X], __global real *out, int c, int k, int r,
                  int channels, int filters, int all_filters, __local V *scratch)
{
    UNROLL for (int m = 0; m < ROWS; m++)
        UNROLL for (int s = 0; s < TAPS_X; s++)
            UNROLL for (int i = 0; i < COLUMNS; i++) {
                const real sum = sum_lanes(a[m][i][s], scratch);
                const int tap = ((c + m) * TAPS_Y + r) * TAPS_X + s;
                if (PART == 0 && c + m < channels && k + i < filters)
                    out[(size_t)tap * all_filters + k + i] = sum;
            }
}
