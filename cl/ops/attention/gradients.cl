/* What attention_group_queries and attention_group_keys have in common. Needs
 * ops/attention/blocks.cl.
 *
 * A block of local memory first holds p, with a minus sign where it is dropped, and then ds: a
 * warp that turns one into the other finds its own. */

/* What forward and attention_group_queries have left of the queries of a head. */
struct kept {
    __global const V *saved, *dots;
};

/* Where those of a head begin, in [tiles][heads][queries][PARTS]. */
INLINE size_t first_query(struct work work, const struct lk_attention *a)
{
    return ((size_t)work.at.tile * HEADS + work.at.head) * a->queries * PARTS;
}

INLINE struct kept kept_of(struct work work, __global const V *saved, __global const V *dots,
                           const struct lk_attention *a)
{
    const size_t first = first_query(work, a);
    return (struct kept){saved + 2 * first + PART, dots + first + PART};
}

/* The weight of a score, of the query whose most and root are at `saved`. */
INLINE V weight_of(V score, real scale, __global const V *saved)
{
    return power(score * scale - saved[0]) * saved[PARTS];
}

/* Gives those of four weights, `apart` from each other, of query t and the keys of a quadruple
 * a minus sign that are dropped. */
INLINE void mark_dropped(__local V *p, const int apart, struct work work, int t, int quad)
{
    I kept[4];
    kept_keys(kept, work.at, t, quad);
    UNROLL for (int b = 0; b < 4; b++)
    {
        const V w = p[b * apart];
        p[b * apart] = kept[b] ? w : -w;
    }
}

/* ds of a marked weight, where dy . v is dp and dy . y is dot. A weight of 0 may be hidden, and
 * dp then anything. */
INLINE V slope_of(V marked, V dp, V dot, real keep)
{
    const V p = fabs(marked), of_v = DROP && marked < (V)(0) ? (V)(0) : dp * keep;
    return p != (V)(0) ? p * (of_v - dot) : (V)(0);
}

/* Of a warp's block that nothing is seen of; apart: of rows. */
INLINE void put_zeros(__local V *block, const int apart)
{
    UNROLL for (int e = 0; e < TALL * COLUMNS; e++)
        block[e / COLUMNS * apart + e % COLUMNS * PARTS] = (V)(0);
}
