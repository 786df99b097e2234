/* What sums of weights bring into a CPU's first-level cache before they read it. Needs
 * lib/real.cl, ROWS, WIDTH. */
#include "lib/hints.cl"

/* Brings ROWS channels of a tile, which are pages away from those of the tile before it. */
INLINE void fetch_channels(__global const stored *x)
{
    enum { BYTES = LANES * sizeof(stored), A_LINE = BYTES < 64 ? 64 / BYTES : 1 };
    UNROLL for (int i = 0; i < ROWS; i += A_LINE) PREFETCH(x + i * LANES);
}

/* Brings part `part` of `parts` of what z holds of the panel that is turned next, if there is
 * one: its tiles are pages apart too. */
INLINE void fetch_panel(__global const S *panel, int units, int tiles, int part, int parts)
{
    enum { BYTES = WIDTH * LANES * sizeof(stored), LINES = BYTES > 64 ? BYTES / 64 : 1 };
    const int end = panel ? tiles * LINES * (part + 1) / parts : 0;
    for (int i = tiles * LINES * part / parts; i < end; i++)
        PREFETCH((__global const stored *)(panel + (size_t)(i / LINES) * units * PARTS) +
                 i % LINES * (WIDTH * LANES / LINES));
}
