/* Panels of conv2d_gather: the inputs of single taps, brought together for many filters. Needs
 * lib/real.cl and the names that conv2d.cl defines. */
#define COLUMNS (SPAN * NV)
#define PANELS ((OUT_W + COLUMNS - 1) / COLUMNS) /* of a row */

/* Channels c0 to c1 of the n columns of inputs from x on. */
struct panel {
    __global const V *x;
    int c0, c1, n;
};

INLINE void copy_panel(__local V *to, struct panel p, int depth)
{
    for (int c = p.c0; c < p.c1; c++, to += NV) {
        __global const V *from = p.x + c * (IN_H * IN_W);
        if (p.n == COLUMNS)
            UNROLL for (int j = 0; j < COLUMNS; j++)
                to[j / NV * NV * depth + j % NV] = from[j * STEP_X];
        else
            for (int j = 0; j < p.n; j++)
                to[j / NV * NV * depth + j % NV] = from[j * STEP_X];
    }
}

/* Fetches a share of a panel, part of `parts`. */
INLINE void fetch_panel(struct panel p, int part, int parts)
{
    const int each = (p.c1 - p.c0 + parts - 1) / parts;
    const int c0 = p.c0 + part * each, c1 = min(c0 + each, p.c1);
    for (int c = c0; c < c1; c++)
        UNROLL for (int j = 0; j < COLUMNS; j++)
            PREFETCH(p.x + c * (IN_H * IN_W) + j * STEP_X);
}

/* Panel n of the image at x: a run of columns has several, one behind the other. */
INLINE struct panel panel_at(__global const V *x, int n, int channels, int depth)
{
    const int deep = (channels + depth - 1) / depth, run = n / deep, c0 = n % deep * depth;
    const int i = run / PANELS, x0 = run % PANELS * COLUMNS;
    const struct panel panel = {x + (i * STEP_Y * IN_W + x0 * STEP_X), c0,
                                min(c0 + depth, channels), min(COLUMNS, OUT_W - x0)};
    return panel;
}
