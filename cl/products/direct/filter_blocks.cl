/* Blocks of filters whose sums a weight gradient makes at once. Needs lib/real.cl and COLUMNS,
 * the most vectors of filters in a block. */

/* Vectors v to v + n of filters: the first `wide` blocks have COLUMNS vectors, the others
 * two. */
struct block {
    int v, n;
};

INLINE struct block block_at(int b, int wide)
{
    const struct block block = {b < wide ? COLUMNS * b : COLUMNS * wide + 2 * (b - wide),
                                b < wide ? COLUMNS : 2};
    return block;
}

/* Stores the sums of a vector of filters, of which `count` are there. */
INLINE void store_filters(__global real *to, __local const V *sums, int count)
{
    __local const real *from = (__local const real *)sums;
    if (count >= VECTOR)
        UNROLL for (int l = 0; l < VECTOR; l++)
            to[l] = from[l];
    else
        for (int l = 0; l < count; l++)
            to[l] = from[l];
}
