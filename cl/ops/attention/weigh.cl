/* What the kernels of attention weigh keys with: e^x, which time steps count, which keys are
 * dropped. The -D names are those of attention.cl. Needs lib/real.cl, lib/steps.cl,
 * lib/drop.cl. */

#define LOOP(count) _Pragma(LOOP_TEXT(unroll count))
#define LOOP_TEXT(text) #text

#define LOWEST ((V)(-NUMBER(1e30)))

/* e^x of x <= 0, to two units in the last place; not less than e^-87. Adding 1.5 2^23 rounds to
 * a whole number and leaves it in the low bits: PoCL makes ten instructions of rint().
 * source: Moshier, Cephes */
#if REAL_BYTES == 4
INLINE V power(V x)
{
    const float rounder = 12582912.0f;
    x = x < (V)-87.0f ? (V)-87.0f : x;
    const V t = x * 1.44269504f + rounder;
    const V n = t - rounder;
    const V r = FMA(n, (V)2.12194440e-4f, FMA(n, (V)-0.693359375f, x));
    V p = FMA(r, (V)1.9875691500e-4f, (V)1.3981999507e-3f);
    p = FMA(p, r, (V)8.3334519073e-3f);
    p = FMA(p, r, (V)4.1665795894e-2f);
    p = FMA(p, r, (V)1.6666665459e-1f);
    p = FMA(p, r, (V)5.0000001201e-1f);
    p = FMA(p, r * r, r) + 1.0f;
    return p * OF_BITS((BITS(t) << 23) + (127 << 23));
}
#else
#define power(x) exp(x)
#endif

/* --- masks ------------------------------------------------------------------------------ */

/* The least and the largest length of the work-item's lanes. */
struct span {
    int least, most;
};

INLINE struct span span_of(I length, int steps)
{
    struct span span = {steps, steps};
#if LENGTHS
    union {
        I all;
        whole lane[VECTOR];
    } each = {length};
    span.most = 0;
    for (int v = 0; v < VECTOR; v++) {
        span.least = min(span.least, (int)each.lane[v]);
        span.most = max(span.most, (int)each.lane[v]);
    }
#endif
    return span;
}

/* Whether a query that sees keys 0 .. keys - 1 sees key j; always so where nothing is hidden.
 */
#if LENGTHS || CAUSAL
#define SEES(j, keys) ((I)(j) < (keys))
#else
#define SEES(j, keys) ((I)(0) == (I)(0))
#endif

/* --- what a work-group computes ---------------------------------------------------------- */

/* The keys that query t sees. */
INLINE I keys_of(I length, int t)
{
#if CAUSAL
    return length < (I)(t + 1) ? length : (I)(t + 1);
#else
    return length;
#endif
}

struct ids {
    int from, head, slice, tile; /* from: the first of SETS ROWS queries or keys */
    struct lk_drop drop;         /* what is left out there */
};

INLINE I counts_query(I length, int t)
{
#if SELF && LENGTHS
    return (I)(t) < length;
#else
    return (I)(0) == (I)(0);
#endif
}

/* --- dropout ---------------------------------------------------------------------------- */

/* Whether query t keeps its weights for the keys from 4 quad on. */
INLINE void kept_keys(I kept[4], struct ids at, int t, int quad)
{
    draw_kept(kept, at.drop, at.tile, (uint)quad, (uint)at.head << 20 | (uint)t);
}

/* kept[k], without an array that a GPU would have to keep in memory. */
INLINE I pick(const I kept[4], int k)
{
    I picked = kept[0];
    for (int i = 1; i < 4; i++)
        if (k == i)
            picked = kept[i];
    return picked;
}
