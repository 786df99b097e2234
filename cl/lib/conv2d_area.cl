/* Areas of the gradients of a convolution's outputs, and how they are turned: from filters x
 * lanes, as they lie in memory, to lanes x filters. Needs lib/real.cl and GRADIENT, see
 * conv2d_products.cl. */

/* x: columns, y: rows */
struct sizes {
    int channels, filters, all_filters, groups;
    int2 taps, step, gap, pad, in, dz;
};

/* Vectors v to v + n of filters. */
struct block {
    int v, n;
};

INLINE struct block block_at(int b, int threes)
{
    const struct block block = {b < threes ? 3 * b : 3 * threes + 2 * (b - threes),
                                b < threes ? 3 : 2};
    return block;
}

/* Outputs of an image: rows i0 to i1, columns j0 to j1. */
struct area {
    __global const V *x, *dy, *y; /* of the image, channel and filter 0 */
    __global const B *at;
    int i0, i1, j0, j1;
};

/* The V of a filter and pixel. */
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

/* VECTOR vectors of lanes, one a filter, become as many of filters, one a lane: each round
 * shuffles them as a pack of cards. */
INLINE void transpose(V t[VECTOR])
{
    UNROLL for (int round = 1; round < VECTOR; round *= 2) {
        V u[VECTOR];
        UNROLL for (int i = 0; i < VECTOR / 2; i++) {
            u[2 * i].even = t[i].lo;
            u[2 * i].odd = t[i + VECTOR / 2].lo;
            u[2 * i + 1].even = t[i].hi;
            u[2 * i + 1].odd = t[i + VECTOR / 2].hi;
        }
        UNROLL for (int i = 0; i < VECTOR; i++)
            t[i] = u[i];
    }
}

/* One block of an area, filters past the last being 0. */
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
