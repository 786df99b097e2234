/* Blocks of the matrix [queries, keys], which warps compute in registers and leave in local
 * memory, and sums of rows that they weigh. The -D names are those of group.cl. TALL: rows of a
 * warp's block. Needs ops/attention/weigh.cl, ops/attention/warps.cl.
 *
 * A row is one head's numbers of a time step, and rows are a constant apart, so that compilers
 * make one address of several. So a block of rows that would end behind the last one begins
 * earlier, at rows that another block has as well. */

INLINE __global const S *row_of(__global const S *x, size_t tile, int steps, int step,
                                const int numbers, int at)
{
    return x + ((tile * steps + step) * numbers + at) * PARTS + PART;
}

/* s[i][b] = row i of x . row b of z, of n numbers; how far apart their rows are. Compilers
 * begin to read within AHEAD turns of a loop what they have registers for. */
#define COLUMNS 4
INLINE void multiply(V s[TALL][COLUMNS], __global const S *x, const int x_apart,
                     __global const S *z, const int z_apart, const int n)
{
    UNROLL for (int i = 0; i < TALL; i++)
    {
        UNROLL for (int b = 0; b < COLUMNS; b++) s[i][b] = (V)(0);
    }
    LOOP(AHEAD)
    for (int d = 0; d < n; d++) {
        V left[TALL], right[COLUMNS];
        UNROLL for (int b = 0; b < COLUMNS; b++) right[b] = LOAD(z + b * z_apart + d * PARTS);
        UNROLL for (int i = 0; i < TALL; i++) left[i] = LOAD(x + i * x_apart + d * PARTS);
        UNROLL for (int i = 0; i < TALL; i++)
        {
            UNROLL for (int b = 0; b < COLUMNS; b++) s[i][b] = FMA(left[i], right[b], s[i][b]);
        }
    }
}

/* --- sums of rows ------------------------------------------------------------------------ */

/* The warps divide the n numbers of a row: each has SHARE(n), the last ones perhaps fewer. */
#define SHARE(n) (((n) + WARPS - 1) / WARPS)
#define FIRST_OF(n) (WARP * SHARE(n))
#define MOST_SHARE (DIM > VALUES ? SHARE(DIM) : SHARE(VALUES))

/* Number b of a warp's share; behind the last one: that again. */
INLINE int number_of(const int n, int b)
{
    return n % WARPS ? min(FIRST_OF(n) + b, n - 1) : FIRST_OF(n) + b;
}

/* Rows of n numbers, z_apart from each other, that are walked: from `from` on, of which the
 * last is `last`. If `hides`, they are 0 from `length` on, whatever they hold. */
struct walk {
    __global const S *z;
    int apart, n, from, last;
    I length;
    int hides;
};

/* What weighs them for each of `rows` results; of row i and the one walked first: i apart. If
 * marked, those with a minus sign are 0. */
struct weights {
    const __local V *first;
    int rows, apart, marked;
};

/* sums[i] += sum_u w[i][u] z[from + u], of BLOCK rows. */
#define BLOCK 16
INLINE void add_rows(V *sums, struct weights w, struct walk walk)
{
    const int share = SHARE(walk.n);
    LOOP(AHEAD)
    for (int u = 0; u < BLOCK; u++) {
        __global const S *row = walk.z + (size_t)min(walk.from + u, walk.last) * walk.apart;
        V r[MOST_SHARE];
        UNROLL for (int b = 0; b < share; b++)
        {
            r[b] = LOAD(row + number_of(walk.n, b) * PARTS);
            if (walk.hides)
                r[b] = (I)(walk.from + u) < walk.length ? r[b] : (V)(0);
        }
        UNROLL for (int i = 0; i < w.rows; i++)
        {
            V p = w.first[i * w.apart + u * PARTS];
            if (w.marked)
                p = p > (V)(0) ? p : (V)(0);
            UNROLL for (int b = 0; b < share; b++) sums[i * share + b] =
                FMA(p, r[b], sums[i * share + b]);
        }
    }
}

INLINE void clear(V *sums, const int count)
{
    UNROLL for (int i = 0; i < count; i++) sums[i] = (V)(0);
}

/* Writes a warp's share of a row of n numbers: sums times `factor` where the lane counts,
 * otherwise 0. */
INLINE void write_share(__global S *to, const V *sums, const int n, V factor, I counts)
{
    UNROLL for (int b = 0; b < SHARE(n); b++)
    {
        if (FIRST_OF(n) + b < n)
            STORE(to + (FIRST_OF(n) + b) * PARTS, counts ? sums[b] * factor : (V)(0));
    }
}

/* --- what a work-group computes ---------------------------------------------------------- */

/* The greatest length of the tile's samples. */
INLINE int most_of(__global const int *lengths, int tile, int steps)
{
    int most = LENGTHS ? 0 : steps;
    for (int lane = 0; LENGTHS && lane < LANES; lane++)
        most = max(most, valid_steps(lengths, tile, lane, steps));
    return most;
}

/* QUERIES queries, or KEYS keys where OWNS_KEYS, from step `first` on, and those between `from`
 * and `first`, which others have as well. They meet steps before `end`: no lane has more. */
struct work {
    int first, from, end;
    I length;
    struct ids at;
};

INLINE struct work work_here(__global const int *lengths, const struct lk_attention *a,
                             struct lk_drop drop)
{
    const int tile = get_group_id(2), most = most_of(lengths, tile, a->keys);
    struct work work;
#if OWNS_KEYS
    work.first = get_group_id(0) * KEYS;
    work.from = min(work.first, a->keys - KEYS);
    work.end = work.first >= most ? 0 : SELF ? most : a->queries;
#else
    work.first = (CAUSAL ? get_num_groups(0) - 1 - get_group_id(0) : get_group_id(0)) * QUERIES;
    work.from = min(work.first, a->queries - QUERIES);
    work.end = CAUSAL ? min(most, work.from + QUERIES) : most;
    work.end = SELF && work.first >= most ? 0 : work.end;
#endif
    work.length = valid_steps_here(lengths, tile, a->keys);
    work.at = (struct ids){work.from, get_group_id(1), 0, tile, drop};
    return work;
}

/* A warp's block: from row `row` and column `column` on, of those that the work-group has in
 * local memory; what is multiplied begins so many columns earlier. */
struct block {
    int row, column, skipped;
};

INLINE struct block block_at(int number, const int columns, int step, int steps)
{
    struct block block;
    block.row = number / (columns / COLUMNS) * TALL;
    block.column = number % (columns / COLUMNS) * COLUMNS;
    block.skipped = max(step + block.column - (steps - COLUMNS), 0);
    return block;
}
