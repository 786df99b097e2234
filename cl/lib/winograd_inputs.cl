/* The inputs of a Winograd tile, transformed. Needs lib/real.cl, lib/winograd.cl.
 * -D: SOURCE: 0: x itself; 1: x where y > 0; 2: x of a 2x2 max-pool, expanded by the numbers
 *     `at` */

/* What a tile reads: a plane of height x width, from row y0 and column x0 on. */
struct winograd_window {
    __global const V *x, *y;
    __global const B *at;
    int height, width, y0, x0;
};

/* Values of a plane that x, y and `at` hold. */
INLINE size_t winograd_plane(const struct winograd_window *from)
{
    return SOURCE == 2 ? (size_t)(from->height / 2) * (from->width / 2) * PARTS
                       : (size_t)from->height * from->width * PARTS;
}

/* The same window of the plane that begins `to` values on, at (y0, x0). */
INLINE struct winograd_window winograd_window_at(struct winograd_window from, size_t to, int y0,
                                                 int x0)
{
    from.x += to;
    from.y = SOURCE == 1 ? from.y + to : 0;
    from.at = SOURCE == 2 ? from.at + to : 0;
    from.y0 = y0;
    from.x0 = x0;
    return from;
}

INLINE V winograd_input(const struct winograd_window *from, int i, int j)
{
#if SOURCE == 2
    const int place = (i / 2 * (from->width / 2) + j / 2) * PARTS;
    return TO_I(from->at[place]) == (I)(i % 2 * 2 + j % 2) ? from->x[place] : (V)0;
#else
    const int place = (i * from->width + j) * PARTS;
#if SOURCE == 1
    return from->y[place] > (V)0 ? from->x[place] : (V)0;
#else
    return from->x[place];
#endif
#endif
}

/* v[i, j] = B' d B of the window, positions `step` apart. Outside the plane there is 0. */
INLINE void winograd_inputs(const struct winograd_window *from, __global V *v, size_t step)
{
    V t[SIDE][SIDE];
    const int y0 = from->y0, x0 = from->x0;
    if (y0 >= 0 && x0 >= 0 && y0 + SIDE <= from->height && x0 + SIDE <= from->width) {
        UNROLL for (int j = 0; j < SIDE; j++) {
            V column[SIDE];
#define D(i) winograd_input(from, y0 + (i), x0 + j)
            WINOGRAD_BT(column, D);
#undef D
            UNROLL for (int i = 0; i < SIDE; i++)
                t[i][j] = column[i];
        }
    } else {
        for (int j = 0; j < SIDE; j++) {
            V column[SIDE];
#define D(i)                                                                                   \
    ((uint)(y0 + (i)) < (uint)from->height && (uint)(x0 + j) < (uint)from->width               \
         ? winograd_input(from, y0 + (i), x0 + j)                                              \
         : (V)0)
            WINOGRAD_BT(column, D);
#undef D
            UNROLL for (int i = 0; i < SIDE; i++)
                t[i][j] = column[i];
        }
    }
    UNROLL for (int i = 0; i < SIDE; i++) {
        V row[SIDE];
#define D(j) t[i][j]
        WINOGRAD_BT(row, D);
#undef D
        UNROLL for (int j = 0; j < SIDE; j++)
            v[(i * SIDE + j) * step] = row[j];
    }
}
