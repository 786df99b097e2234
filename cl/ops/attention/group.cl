/* attention_forward of attention.cl for GPUs: a work-group of WARPS warps computes QUERIES
 * queries of a head. It walks the keys, KEYS at a time, in three steps: warps compute scores in
 * blocks of TALL queries x 4 keys and leave them in local memory; each turns those of its
 * queries into weights; each sums up its share of the values, for all queries, in registers.
 *
 * The softmax takes BLOCK keys at once and blocks begin at multiples of BLOCK, whatever KEYS,
 * QUERIES and WARPS are: these change no bit.
 *
 * The formula, the shapes, CAUSAL, LENGTHS, SELF and DROP are those of attention.cl. -D
 * besides: DIM, VALUES, HEADS; QUERIES: 16, 8 or 4, and no more than there are; KEYS: a
 * multiple of BLOCK; WARPS; Q_ROW, K_ROW, V_ROW: numbers of a time step; AHEAD: see
 * ops/attention/blocks.cl. There are 4 keys at least.
 *
 * Group ids: 0: QUERIES queries, the last of them first where CAUSAL, since they see most keys;
 * 1: head; 2: tile.
 */
#include "lib/real.cl"
#include "ops/attention/warps.cl"
#include "lib/random.cl"
#include "lib/steps.cl"
#include "ops/args.h"
#include "lib/drop.cl"
#include "ops/attention/weigh.cl"
#define TALL (QUERIES < 8 ? QUERIES : 8)
#define OWNS_KEYS 0
#include "ops/attention/blocks.cl"

#define BLOCKS (KEYS / BLOCK)
#define OWN ((QUERIES + WARPS - 1) / WARPS) /* queries whose softmax a warp computes */

/* Local memory: of lane 0 of query i and key u. */
#define WEIGHT(i, u) (((i)*KEYS + (u)) * PARTS)
#define SHRINK(block, i) (((block)*QUERIES + (i)) * PARTS)

/* What a query has met so far. */
struct softmax {
    V most, sum;
};

/* The scores of keys j .. j + KEYS - 1, but those behind all that are seen. */
INLINE void put_scores(__local V *weights, struct work work, __global const S *q,
                       __global const S *k, int j, int keys)
{
    for (int b = WARP; b < QUERIES / TALL * (KEYS / COLUMNS); b += WARPS) {
        const struct block at = block_at(b, KEYS, j, keys);
        V s[TALL][COLUMNS];
        if (j + at.column >= (CAUSAL ? min(work.end, work.from + at.row + TALL) : work.end))
            continue;
        multiply(s, q + (size_t)at.row * Q_ROW * PARTS, Q_ROW * PARTS,
                 k + (size_t)(j + at.column - at.skipped) * K_ROW * PARTS, K_ROW * PARTS, DIM);
        UNROLL for (int c = 0; c < COLUMNS; c++)
        {
            UNROLL for (int r = 0; r < TALL; r++) if (c >= at.skipped)
                weights[WEIGHT(at.row + r, at.column + c - at.skipped) + PART] = s[r][c];
        }
    }
}

/* Turns the scores of query t for the keys from `from` on into weights, with the most of all
 * keys so far; hidden ones become 0. Returns what earlier sums shrink by. */
INLINE V add_block(struct softmax *so_far, __local V *scores, struct work work, real scale,
                   int from, int t)
{
    const I seen = keys_of(work.length, t) - from;
    V w[BLOCK], most = so_far->most;
    UNROLL for (int u = 0; u < BLOCK; u++)
    {
        const V s = scores[u * PARTS] * scale;
        w[u] = (I)(u) < seen ? s : LOWEST;
        most = fmax(most, w[u]);
    }
    const V shrink = power(so_far->most - most);
    V sum = so_far->sum * shrink;
    UNROLL for (int u = 0; u < BLOCK; u++)
    {
        const V p = power(w[u] - most);
        w[u] = (I)(u) < seen ? p : (V)(0);
        sum += w[u];
    }
    UNROLL for (int u = 0; u < BLOCK; u++) if (DROP && u % 4 == 0)
    {
        I kept[4];
        kept_keys(kept, work.at, t, (from + u) / 4);
        UNROLL for (int b = 0; b < 4; b++) w[u + b] = kept[b] ? w[u + b] : (V)(0);
    }
    UNROLL for (int u = 0; u < BLOCK; u++) scores[u * PARTS] = w[u];
    so_far->most = most;
    so_far->sum = sum;
    return shrink;
}

INLINE void weigh(struct softmax softmax[OWN], __local V *weights, __local V *shrink,
                  struct work work, real scale, int j)
{
    UNROLL for (int o = 0; o < OWN; o++)
    {
        const int i = WARP + o * WARPS;
        UNROLL for (int b = 0; b < BLOCKS; b++) if (i < QUERIES) shrink[SHRINK(b, i) + PART] =
            add_block(softmax + o, weights + WEIGHT(i, b * BLOCK) + PART, work, scale,
                      j + b * BLOCK, work.from + i);
    }
}

/* y[i] = y[i] shrink[i] + sum_u weights[i][u] v[u], of a block of the softmax. */
INLINE void add_values(V *y, const __local V *weights, const __local V *shrink,
                       struct walk walk)
{
    UNROLL for (int i = 0; i < QUERIES; i++)
    {
        const V s = shrink[i * PARTS + PART];
        UNROLL for (int b = 0; b < SHARE(VALUES); b++) y[i * SHARE(VALUES) + b] *= s;
    }
    add_rows(y, (struct weights){weights + PART, QUERIES, KEYS * PARTS, 0}, walk);
}

/* Leaves what sums are multiplied with in `factor`, [QUERIES][PARTS]: 0 where a query does not
 * count, so that its y is 0 whatever its sums are. */
INLINE void finish(const struct softmax softmax[OWN], __local V *factor, __global V *saved,
                   struct work work, real keep, const struct lk_attention *a)
{
    UNROLL for (int o = 0; o < OWN; o++)
    {
        const int i = WARP + o * WARPS, t = work.from + i;
        const I counts = softmax[o].sum != (V)(0) && counts_query(work.length, t);
        const V root = counts ? (V)(1) / softmax[o].sum : (V)(0);
        if (i < QUERIES)
            factor[i * PARTS + PART] = root * keep;
        if (saved && i < QUERIES && t >= work.first) {
            const size_t row = ((size_t)work.at.tile * HEADS + work.at.head) * a->queries + t;
            saved[row * 2 * PARTS + PART] = softmax[o].most;
            saved[(row * 2 + 1) * PARTS + PART] = root;
        }
    }
}

GROUP_KERNEL void
attention_group_forward(__global const S *restrict q, __global const S *restrict k,
                        __global const S *restrict v, __global const int *restrict lengths,
                        __global S *restrict y, __global V *restrict saved, real scale,
                        real keep, struct lk_attention a, struct lk_drop drop)
{
    __local V weights[QUERIES * KEYS * PARTS], shrink[BLOCKS * QUERIES * PARTS];
    const struct work work = work_here(lengths, &a, drop);
    const int tile = work.at.tile, head = work.at.head;
    q = row_of(q, tile, a.queries, work.from, Q_ROW, head * DIM);
    k = row_of(k, tile, a.keys, 0, K_ROW, a.k_at + head * DIM);
    v = row_of(v, tile, a.keys, 0, V_ROW, a.v_at + head * VALUES);
    y += (((size_t)tile * a.queries + work.from) * HEADS + head) * VALUES * PARTS + PART;
    struct softmax softmax[OWN];
    V sums[QUERIES * SHARE(VALUES)];
    UNROLL for (int o = 0; o < OWN; o++) softmax[o] = (struct softmax){LOWEST, (V)(0)};
    clear(sums, QUERIES * SHARE(VALUES));
    for (int j = 0; j < work.end; j += KEYS) {
        put_scores(weights, work, q, k, j, a.keys);
        TOGETHER;
        weigh(softmax, weights, shrink, work, scale, j);
        TOGETHER;
        ROLLED for (int b = 0; b < BLOCKS && j + b * BLOCK < work.end; b++)
            add_values(sums, weights + WEIGHT(0, b * BLOCK), shrink + SHRINK(b, 0),
                       (struct walk){v, V_ROW * PARTS, VALUES, j + b * BLOCK, a.keys - 1,
                                     work.length, LENGTHS});
        TOGETHER;
    }
    finish(softmax, shrink, saved, work, keep, &a);
    TOGETHER;
    UNROLL for (int i = 0; i < QUERIES; i++)
    {
        const V factor = shrink[i * PARTS + PART];
        if (work.from + i >= work.first)
            write_share(y + (size_t)i * HEADS * VALUES * PARTS, sums + i * SHARE(VALUES),
                        VALUES, factor, factor != (V)(0));
    }
}
