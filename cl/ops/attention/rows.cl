/* Products of rows that a work-group keeps in caches with rows that are walked. The -D names
 * are those of attention.cl. Needs lib/hints.cl, ops/attention/weigh.cl. */

INLINE struct ids ids_here(const int slices, struct lk_drop drop)
{
    return (struct ids){get_group_id(0) * SETS * ROWS, get_group_id(1) / slices,
                        get_group_id(1) % slices, get_group_id(2), drop};
}

/* Of query t: zeros for w[u ROWS] where key `from` + u is dropped; from: a multiple of 4. */
INLINE void drop_keys(V *w, struct ids at, int t, int from, int count)
{
    for (int u = 0; DROP && u < count; u += 4) {
        I kept[4];
        kept_keys(kept, at, t, (from + u) / 4);
        UNROLL for (int b = 0; b < 4; b++)
        {
            V *of = w + (u + b) * ROWS;
            *of = kept[b] ? *of : (V)(0);
        }
    }
}

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

/* The rows that a work-group multiplies with all others: sets of ROWS, from row `from` on; rows
 * past the last repeat it. A GPU reads them again and again, since its registers hold the sums;
 * a CPU keeps them side by side, since rows are a power of two apart or near it, so that few
 * of them fit into a cache at once. */
struct own {
    struct rows rows;
    int from, last, sets;
    const V *kept; /* [sets][n][ROWS], of a CPU */
};

#define KEEPS_ROWS (VECTOR > 1)
#define KEPT(n) (KEEPS_ROWS ? SETS * ROWS * (n) : 1)

INLINE V read_own(struct own own, int row, int d)
{
    return LOAD(own.rows.first + min(own.from + row, own.last) * own.rows.apart + d * PARTS);
}

INLINE struct own own_rows(V *kept, const int n, struct rows rows, int from, int last)
{
    const int sets = SETS == 1 ? 1 : min(SETS, (last - from) / ROWS + 1);
    const struct own own = {rows, from, last, sets, kept};
    for (int row = 0; KEEPS_ROWS && row < sets * ROWS; row++)
        for (int d = 0; d < n; d++)
            kept[(row / ROWS * n + d) * ROWS + row % ROWS] = read_own(own, row, d);
    return own;
}

/* Products of own rows with a block of others are w[sets][W_ROW][ROWS]. */
#define W_ROW ((BLOCK + AT_ONCE - 1) / AT_ONCE * AT_ONCE)
#define W_SET (W_ROW * ROWS)

/* A block of the rows that are walked. masked: a lane's rows from its length on are 0, whatever
 * they hold. Where CAUSAL, the first set meets its rows from `skips` on and before `sees`, each
 * further set those ROWS later; others would add 0. */
struct block {
    struct rows rows;
    int from, count;
    I length;
    int masked, skips, sees;
};

/* So low that no set skips rows, of up to SETS or BLOCK / ROWS sets. */
#define NO_SKIPS (-SETS * ROWS - BLOCK)
#define SEES_ALL BLOCK
#define HAS_BOUNDS (CAUSAL && KEEPS_ROWS)

INLINE int begin_of(struct block block, int set)
{
    return HAS_BOUNDS ? clamp(block.skips + set * ROWS, 0, block.count) : 0;
}

INLINE int end_of(struct block block, int set)
{
    return HAS_BOUNDS ? clamp(block.sees + set * ROWS, 0, block.count) : block.count;
}

/* The same numbers of other rows. */
INLINE struct block block_of(struct block block, struct rows rows)
{
    block.rows = rows;
    return block;
}

/* w[u][i] = own row i of a set . row u of a block, of AT_ONCE rows from u on; rows past the
 * last repeat it. */
INLINE void multiply_some(V *w, struct own own, int set, const int n, struct block block, int u)
{
    V sum[ROWS][AT_ONCE];
    __global const S *row[AT_ONCE];
    UNROLL for (int b = 0; b < AT_ONCE; b++)
    {
        row[b] =
            block.rows.first + (block.from + min(u + b, block.count - 1)) * block.rows.apart;
        UNROLL for (int i = 0; i < ROWS; i++) sum[i][b] = (V)(0);
    }
    const V *kept = own.kept + set * n * ROWS;
    LOOP(UNROLLED)
    for (int d = 0; d < n; d++) {
        V r[AT_ONCE];
        UNROLL for (int b = 0; b < AT_ONCE; b++) r[b] = LOAD(row[b] + d * PARTS);
        UNROLL for (int i = 0; i < ROWS; i++)
        {
            const V v = KEEPS_ROWS ? kept[d * ROWS + i] : read_own(own, i, d);
            UNROLL for (int b = 0; b < AT_ONCE; b++) sum[i][b] = FMA(v, r[b], sum[i][b]);
        }
    }
    UNROLL for (int b = 0; b < AT_ONCE; b++)
    {
        UNROLL for (int i = 0; i < ROWS; i++) w[(u + b) * ROWS + i] = sum[i][b];
    }
}

/* All sets with a block. AT_ONCE of its rows meet all sets, so that they stay in the
 * first-level cache, and own rows are read in the order in which they lie. */
INLINE void multiply(V *w, struct own own, const int n, struct block block)
{
    for (int u = 0; u < block.count; u += AT_ONCE)
        for (int set = 0; set < own.sets; set++)
            if (u < end_of(block, set) && u + AT_ONCE > begin_of(block, set))
                multiply_some(w + set * W_SET, own, set, n, block, u);
}

/* A CPU packs some numbers of a block, [PACKED][BLOCK]: they are walked once a set, in the
 * first-level cache, of which they take 16 KB. */
#define PACKED (KEEPS_ROWS ? (1 << 14) / (BLOCK * VECTOR * REAL_BYTES) : AT_ONCE * 8)
#define PACK (KEEPS_ROWS ? PACKED * BLOCK : 1)

INLINE V read_block(struct block block, int u, int d)
{
    const V x = LOAD(block.rows.first + (block.from + u) * block.rows.apart + d * PARTS);
#if LENGTHS
    if (block.masked)
        return (I)(block.from + u) < block.length ? x : (V)(0);
#endif
    return x;
}

INLINE void pack_block(V *pack, struct block block, int d, int wide)
{
    for (int u = 0; KEEPS_ROWS && u < block.count; u++)
        for (int e = 0; e < wide; e++)
            pack[e * BLOCK + u] = read_block(block, u, d + e);
}

/* s[i][b] += sum_u w[u][i] row[u][d + b], for `wide` numbers, a constant. */
INLINE void gather_some(V s[ROWS][AT_ONCE], const V *w, const V *pack, struct block block,
                        int set, int d, const int wide)
{
    const int end = end_of(block, set);
    for (int u = begin_of(block, set); u < end; u++) {
        V r[AT_ONCE];
        UNROLL for (int b = 0; b < AT_ONCE; b++) if (b < wide) r[b] =
            KEEPS_ROWS ? pack[b * BLOCK + u] : read_block(block, u, d + b);
        UNROLL for (int i = 0; i < ROWS; i++)
        {
            const V v = w[u * ROWS + i];
            UNROLL for (int b = 0; b < AT_ONCE; b++) if (b < wide) s[i][b] =
                FMA(v, r[b], s[i][b]);
        }
    }
}

/* Sums of rows of n numbers: of a work-item, [sets][n][ROWS], or else in memory, [rows][n]. */
struct sums {
    V *own;
    __global V *far;
};

/* Of one set: sum[i] = sum[i] shrink[i] + sum_u w[u][i] row[u], for `wide` numbers from d on.
 * shrink: of the set, or null. */
INLINE void gather_set(struct sums sums, int set, const V *w, const V *shrink, const int n,
                       const V *pack, struct block block, int d, const int wide)
{
    V s[ROWS][AT_ONCE];
    V *own = sums.own + (set * n + d) * ROWS;
    __global V *far = sums.far + (set * ROWS * n + d) * PARTS;
    UNROLL for (int i = 0; i < ROWS; i++)
    {
        UNROLL for (int b = 0; b < wide; b++)
        {
            s[i][b] = sums.own ? own[b * ROWS + i] : far[(i * n + b) * PARTS];
            s[i][b] = shrink ? s[i][b] * shrink[i] : s[i][b];
        }
    }
    gather_some(s, w, pack, block, set, d, wide);
    UNROLL for (int i = 0; i < ROWS; i++)
    {
        UNROLL for (int b = 0; b < wide; b++)
        {
            if (sums.own)
                own[b * ROWS + i] = s[i][b];
            else
                far[(i * n + b) * PARTS] = s[i][b];
        }
    }
}

/* The same for all numbers of `sets` sets, but those that meet no row of the block. */
INLINE void gather(struct sums sums, const V *w, const V *shrink, const int n, int sets,
                   struct block block)
{
    V pack[PACK];
    for (int from = 0; from < n; from += PACKED) {
        const int to = min(from + PACKED, n);
        pack_block(pack, block, from, to - from);
        for (int set = 0; set < sets; set++) {
            if (begin_of(block, set) >= end_of(block, set))
                continue;
            const V *of = w + set * W_SET, *more = shrink ? shrink + set * ROWS : shrink;
            int d = from;
            for (; d + AT_ONCE <= to; d += AT_ONCE)
                gather_set(sums, set, of, more, n, pack + (d - from) * BLOCK, block, d,
                           AT_ONCE);
            if (n % AT_ONCE > 0 && d < to)
                gather_set(sums, set, of, more, n, pack + (d - from) * BLOCK, block, d,
                           n % AT_ONCE);
        }
    }
}

/* Brings part `part` of `parts` of a block's rows of n numbers into a CPU's caches. */
INLINE void fetch_block(struct block block, const int n, int part, int parts)
{
    const int each = (block.count * n + parts - 1) / parts;
    for (int k = part * each; KEEPS_ROWS && k < min((part + 1) * each, block.count * n); k++)
        PREFETCH(block.rows.first + (block.from + k / n) * block.rows.apart + k % n * PARTS);
}

/* Row i of a work-item's sums of n numbers, a number every ROWS. */
INLINE const V *sums_of(const V *sums, int i, const int n)
{
    return sums + i / ROWS * ROWS * n + i % ROWS;
}

/* Writes such a row times `factor` where the lane counts, otherwise 0. */
INLINE void write_row(__global S *to, const V *x, const int n, V factor, I counts)
{
    for (int d = 0; d < n; d++)
        STORE(to + d * PARTS, counts ? x[d * ROWS] * factor : (V)(0));
}
