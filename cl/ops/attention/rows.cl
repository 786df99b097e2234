/* What the kernels of attention are made of: e^x, which time steps count, and products of some
 * rows kept in registers or the first-level cache with rows that are walked. The -D names are
 * those of attention.cl. Needs lib/real.cl, lib/steps.cl, lib/drop.cl. */

#define LOWEST ((V)(-NUMBER(1e30)))
#define LOOP(count) _Pragma(LOOP_TEXT(unroll count))
#define LOOP_TEXT(text) #text

/* e^x of x <= 0, to two units in the last place; not less than e^-87. source: Moshier, Cephes
 */
#if REAL_BYTES == 4
INLINE V power(V x)
{
    x = x < (V)-87.0f ? (V)-87.0f : x;
    const V n = rint(x * 1.44269504f);
    const V r = FMA(n, (V)2.12194440e-4f, FMA(n, (V)-0.693359375f, x));
    V p = FMA(r, (V)1.9875691500e-4f, (V)1.3981999507e-3f);
    p = FMA(p, r, (V)8.3334519073e-3f);
    p = FMA(p, r, (V)4.1665795894e-2f);
    p = FMA(p, r, (V)1.6666665459e-1f);
    p = FMA(p, r, (V)5.0000001201e-1f);
    p = FMA(p, r * r, r) + 1.0f;
#if VECTOR == 1
    return p * as_float((TO_I(n) + 127) << 23);
#else
    return p * PASTE(as_float, VECTOR)((TO_I(n) + 127) << 23);
#endif
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
    int from, head, slice, tile; /* from: the first of ROWS queries or keys */
    struct lk_drop drop;         /* what is left out there */
};

INLINE struct ids ids_here(const int slices, struct lk_drop drop)
{
    return (struct ids){get_group_id(0) * ROWS, get_group_id(1) / slices,
                        get_group_id(1) % slices, get_group_id(2), drop};
}

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

/* Of query t: zeros for w[u] where key `from` + u is dropped; from: a multiple of 4. */
INLINE void drop_keys(V *w, struct ids at, int t, int from, int count)
{
    for (int u = 0; DROP && u < count; u += 4) {
        I kept[4];
        kept_keys(kept, at, t, (from + u) / 4);
        UNROLL for (int b = 0; b < 4; b++) w[u + b] = kept[b] ? w[u + b] : (V)(0);
    }
}

/* --- products of rows ------------------------------------------------------------------- */

/* Rows of a tile: of step 0 the numbers of one head, and how far apart steps are. */
struct rows {
    __global const S *first;
    size_t apart;
};

INLINE struct rows rows_of(__global const S *x, size_t tile, int steps, int row, int at)
{
    return (struct rows){x + (tile * steps * row + at) * PARTS + PART, (size_t)row * PARTS};
}

/* The rows without the numbers before a slice of `wide`. */
INLINE struct rows slice_of(struct rows rows, struct ids at, const int wide)
{
    return (struct rows){rows.first + at.slice * wide * PARTS, rows.apart};
}

/* The ROWS rows that a work-item multiplies with all others, times `factor`; rows past the
 * last repeat it. A GPU reads them again and again, since its registers hold the sums. */
struct own {
    struct rows rows;
    int from, last;
    real factor;
    const V *kept; /* [ROWS][n], of a CPU */
};

#define KEEPS_ROWS (VECTOR > 1)
#define KEPT(n) (KEEPS_ROWS ? ROWS * (n) : 1)

INLINE V read_own(struct own own, int i, int d)
{
    return LOAD(own.rows.first + min(own.from + i, own.last) * own.rows.apart + d * PARTS) *
           own.factor;
}

INLINE struct own own_rows(V *kept, const int n, struct rows rows, int from, int last,
                           real factor)
{
    const struct own own = {rows, from, last, factor, kept};
    for (int i = 0; KEEPS_ROWS && i < ROWS; i++)
        for (int d = 0; d < n; d++)
            kept[i * n + d] = read_own(own, i, d);
    return own;
}

/* Numbers of a row of w, which has room for a whole number of AT_ONCE. */
#define W_ROW ((BLOCK + AT_ONCE - 1) / AT_ONCE * AT_ONCE)

/* w[i][u] = own row i . row `from` + u, of `count` rows; further ones up to a multiple of
 * AT_ONCE repeat the last. */
INLINE void multiply(V *w, struct own own, const int n, struct rows rows, int from, int count)
{
    for (int u = 0; u < count; u += AT_ONCE) {
        V sum[ROWS][AT_ONCE];
        __global const S *row[AT_ONCE];
        UNROLL for (int b = 0; b < AT_ONCE; b++)
        {
            row[b] = rows.first + (from + min(u + b, count - 1)) * rows.apart;
            UNROLL for (int i = 0; i < ROWS; i++) sum[i][b] = (V)(0);
        }
        LOOP(UNROLLED)
        for (int d = 0; d < n; d++) {
            V r[AT_ONCE];
            UNROLL for (int b = 0; b < AT_ONCE; b++) r[b] = LOAD(row[b] + d * PARTS);
            UNROLL for (int i = 0; i < ROWS; i++)
            {
                const V v = KEEPS_ROWS ? own.kept[i * n + d] : read_own(own, i, d);
                UNROLL for (int b = 0; b < AT_ONCE; b++) sum[i][b] = FMA(v, r[b], sum[i][b]);
            }
        }
        UNROLL for (int i = 0; i < ROWS; i++)
        {
            UNROLL for (int b = 0; b < AT_ONCE; b++) w[i * W_ROW + u + b] = sum[i][b];
        }
    }
}

/* The part of gather() for `wide` numbers from d on, a constant. */
INLINE void gather_some(V *sum, const V *w, const V *shrink, const int n, struct rows rows,
                        int from, int count, I length, const int masked, int d, const int wide)
{
    V s[ROWS][AT_ONCE];
    UNROLL for (int i = 0; i < ROWS; i++)
    {
        UNROLL for (int b = 0; b < wide; b++) s[i][b] = sum[i * n + d + b] * shrink[i];
    }
    for (int u = 0; u < count; u++) {
        __global const S *row = rows.first + (from + u) * rows.apart + d * PARTS;
        V r[AT_ONCE];
        UNROLL for (int b = 0; b < wide; b++)
        {
            r[b] = LOAD(row + b * PARTS);
            if (masked)
                r[b] = (I)(from + u) < length ? r[b] : (V)(0);
        }
        UNROLL for (int i = 0; i < ROWS; i++)
        {
            const V v = w[i * W_ROW + u];
            UNROLL for (int b = 0; b < wide; b++) s[i][b] = FMA(v, r[b], s[i][b]);
        }
    }
    UNROLL for (int i = 0; i < ROWS; i++)
    {
        UNROLL for (int b = 0; b < wide; b++) sum[i * n + d + b] = s[i][b];
    }
}

/* sum[i] = sum[i] shrink[i] + sum_u w[i][u] row `from` + u, of `count` rows. masked: a lane's
 * rows from its length on are 0, whatever they hold. */
INLINE void gather(V *sum, const V *w, const V *shrink, const int n, struct rows rows, int from,
                   int count, I length, const int masked)
{
    for (int d = 0; d < n / AT_ONCE * AT_ONCE; d += AT_ONCE)
        gather_some(sum, w, shrink, n, rows, from, count, length, masked, d, AT_ONCE);
    if (n % AT_ONCE > 0)
        gather_some(sum, w, shrink, n, rows, from, count, length, masked,
                    n / AT_ONCE * AT_ONCE, n % AT_ONCE);
}

/* Two copies of gather(), since nearly all blocks need no mask. */
INLINE void gather_block(V *sum, const V *w, const V *shrink, const int n, struct rows rows,
                         int from, int count, I length, int least)
{
#if LENGTHS
    if (from + count > least) {
        gather(sum, w, shrink, n, rows, from, count, length, 1);
        return;
    }
#endif
    gather(sum, w, shrink, n, rows, from, count, length, 0);
}

INLINE void write_row(__global S *to, const V *x, const int n, V factor, I counts)
{
    for (int d = 0; d < n; d++)
        STORE(to + d * PARTS, counts ? x[d] * factor : (V)(0));
}
