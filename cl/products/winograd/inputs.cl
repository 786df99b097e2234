/* The inputs of a Winograd tile, transformed. Needs lib/real.cl, lib/winograd.cl.
 *
 * source: 0: x itself; 1: x where y > 0; 2: x of a 2x2 max-pool, expanded by the numbers `at`.
 * Always a constant, so that the compiler leaves out the others.
 */

/* What a tile reads: a plane of height x width, from row y0 and column x0 on. */
struct winograd_window {
    __global const S *x, *y;
    __global const B *at;
    int height, width, y0, x0;
};

/* Values of a plane that x, y and `at` hold. */
INLINE size_t winograd_plane(const struct winograd_window *from, int source)
{
    return source == 2 ? (size_t)(from->height / 2) * (from->width / 2) * PARTS
                       : (size_t)from->height * from->width * PARTS;
}

/* The same window of the plane that begins `to` values on, at (y0, x0). */
INLINE struct winograd_window winograd_window_at(struct winograd_window from, size_t to, int y0,
                                                 int x0, int source)
{
    from.x += to;
    from.y = source == 1 ? from.y + to : 0;
    from.at = source == 2 ? from.at + to : 0;
    from.y0 = y0;
    from.x0 = x0;
    return from;
}

/* An input at (i, j) of the window, which must be inside the plane. */
INLINE V winograd_input(const struct winograd_window *from, int i, int j, int source)
{
    const int whole = (i * from->width + j) * PARTS;
    const int pooled = (i / 2 * (from->width / 2) + j / 2) * PARTS;
    if (source == 2)
        return TO_I(from->at[pooled]) == (I)(i % 2 * 2 + j % 2) ? LOAD(from->x + pooled) : (V)0;
    if (source == 1)
        return LOAD(from->y + whole) > (V)0 ? LOAD(from->x + whole) : (V)0;
    return LOAD(from->x + whole);
}

INLINE bool winograd_is_inside(const struct winograd_window *from, int i, int j)
{
    return (uint)i < (uint)from->height && (uint)j < (uint)from->width;
}

/* For GPUs, which have arrays in registers only where loops are undone: v[i, j] = B' d B of the
 * window, positions `stride` apart. Outside the plane there is 0. */
INLINE void winograd_inputs(const struct winograd_window *from, __global V *v, size_t stride,
                            int source)
{
    V t[SIDE][SIDE];
    UNROLL for (int j = 0; j < SIDE; j++) {
        V column[SIDE];
#define D(i)                                                                                   \
    (winograd_is_inside(from, from->y0 + (i), from->x0 + j)                                    \
         ? winograd_input(from, from->y0 + (i), from->x0 + j, source)                          \
         : (V)0)
        WINOGRAD_BT(column, D);
#undef D
        UNROLL for (int i = 0; i < SIDE; i++)
            t[i][j] = column[i];
    }
    UNROLL for (int i = 0; i < SIDE; i++) {
        V row[SIDE];
#define D(j) t[i][j]
        WINOGRAD_BT(row, D);
#undef D
        UNROLL for (int j = 0; j < SIDE; j++)
            v[(i * SIDE + j) * stride] = row[j];
    }
}

#define STRIP 4 /* tiles */

/* A column of B' d: rows y0 + i of column j, which is inside. */
INLINE void winograd_column(const struct winograd_window *from, V column[SIDE], int j,
                            bool whole, int source)
{
    const int y0 = from->y0;
    if (whole) {
#define D(i) winograd_input(from, y0 + (i), j, source)
        WINOGRAD_BT(column, D);
#undef D
    } else {
#define D(i)                                                                                   \
    ((uint)(y0 + (i)) < (uint)from->height ? winograd_input(from, y0 + (i), j, source) : (V)0)
        WINOGRAD_BT(column, D);
#undef D
    }
}

/* For CPUs: v[i, j] of `count` tiles side by side, STRIP at most, of which the window is the
 * first; those of a position come one after another. Where two tiles overlap, columns are read
 * once. */
INLINE void winograd_strip(const struct winograd_window *from, int count, __global V *v,
                           size_t stride, int source)
{
    V t[TILE * STRIP + 2][SIDE];
    const bool whole = from->y0 >= 0 && from->y0 + SIDE <= from->height;
    for (int j = 0; j < TILE * count + 2; j++)
        if ((uint)(from->x0 + j) < (uint)from->width)
            winograd_column(from, t[j], from->x0 + j, whole, source);
        else
            UNROLL for (int i = 0; i < SIDE; i++)
                t[j][i] = (V)0;
    for (int q = 0; q < count; q++)
        UNROLL for (int i = 0; i < SIDE; i++) {
            V row[SIDE];
#define D(j) t[q * TILE + (j)][i]
            WINOGRAD_BT(row, D);
#undef D
            UNROLL for (int j = 0; j < SIDE; j++)
                v[(i * SIDE + j) * stride + q] = row[j];
        }
}

/* z[i, j] = (s A')[i, j], s being A d, likewise. */
INLINE void winograd_gradient_rows(V s[SIDE][TILE], __global V *z, size_t stride)
{
    UNROLL for (int i = 0; i < SIDE; i++) {
        V row[SIDE];
#define D(j) s[i][j]
        WINOGRAD_A(row, D);
#undef D
        UNROLL for (int j = 0; j < SIDE; j++)
            z[(i * SIDE + j) * stride] = row[j];
    }
}

/* z[i, j] = A d A' of the TILE x TILE inputs where the window begins, likewise. */
INLINE void winograd_gradients(const struct winograd_window *from, __global V *z, size_t stride,
                               int source)
{
    V s[SIDE][TILE];
    UNROLL for (int j = 0; j < TILE; j++) {
        V column[SIDE];
#define D(i)                                                                                   \
    (winograd_is_inside(from, from->y0 + (i), from->x0 + j)                                    \
         ? winograd_input(from, from->y0 + (i), from->x0 + j, source)                          \
         : (V)0)
        WINOGRAD_A(column, D);
#undef D
        UNROLL for (int i = 0; i < SIDE; i++)
            s[i][j] = column[i];
    }
    winograd_gradient_rows(s, z, stride);
}
