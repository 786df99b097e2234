/* Areas of the gradients of a convolution's outputs, and how they are turned: from filters x
 * lanes, as they lie in memory, to lanes x filters. Needs lib/real.cl,
 * lib/transpose.cl, filter_blocks.cl and GRADIENT, see turned_weights.cl. */

/* x: columns, y: rows */
struct sizes {
    int channels, filters, all_filters, groups;
    int2 taps, stride, gap, pad, in, dz;
};

/* Outputs of an image: rows i0 to i1, columns j0 to j1. */
struct area {
    __global const V *x, *dy, *y; /* of the image, channel and filter 0 */
    __global const B *at;
    int i0, i1, j0, j1;
};

/* The gradient of a filter and pixel, in all lanes of the work-item. */
INLINE V gradient(const struct area *area, int k, int i, int j, const struct sizes *s)
{
#if GRADIENT == 2
    const int from = (k * (s->dz.y / 2) + i / 2) * (s->dz.x / 2) + j / 2;
    return TO_I(area->at[from]) == (I)(i % 2 * 2 + j % 2) ? area->dy[from] : (V)0;
#else
    const int from = (k * s->dz.y + i) * s->dz.x + j;
#if GRADIENT == 1
    return area->y[from] > (V)0 ? area->dy[from] : (V)0;
#else
    return area->dy[from];
#endif
#endif
}

/* Transposes one block of an area; filters past the last are 0. */
INLINE void transpose_block(__local V *to, const struct area *area, struct block block,
                            const struct sizes *s)
{
    for (int i = area->i0; i < area->i1; i++)
        for (int j = area->j0; j < area->j1; j++, to += VECTOR * block.n)
            for (int v = 0; v < block.n; v++) {
                const int k = (block.v + v) * VECTOR;
                V t[VECTOR];
                if (k + VECTOR <= s->filters)
                    UNROLL for (int m = 0; m < VECTOR; m++)
                        t[m] = gradient(area, k + m, i, j, s);
                else
                    UNROLL for (int m = 0; m < VECTOR; m++)
                        t[m] = k + m < s->filters ? gradient(area, k + m, i, j, s) : (V)0;
                transpose(t);
                UNROLL for (int m = 0; m < VECTOR; m++)
                    to[m * block.n + v] = t[m];
            }
}
