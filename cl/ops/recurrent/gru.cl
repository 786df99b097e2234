/* What the products over all time steps of a GRU need beside the walk.
 *
 *   gru_reset      turns dz of the candidate, of the sum with x, to that of what comes from h:
 *                  times r, where the reset gate comes after the product
 *   gru_keep       copies dz of the candidate to saved, where the part from h was, or `back`
 *   gru_candidate  dU[k][candidate] = sum of r[k] h[k] dz, where it comes before: steps and
 *                  tiles of a shard in turn in each lane, then over lanes
 *
 * What they make behind the longest sample of a tile nobody reads, but of gru_candidate.
 * saved and dz: state.cl and backward.cl; du: [units][GATES][units] of every shard, `stride`
 * apart. scratch: LANES reals.
 * -D, further: ROWS: units that gru_candidate sums at once.
 * Group ids: reset, keep: 0: step, 1: tile; candidate: 0: block of ROWS units of h, 1: shard.
 */
#include "lib/real.cl"
#include "lib/sum.cl"
#include "ops/recurrent/state.cl"

KERNEL void gru_reset(__global const S *restrict saved, __global S *restrict dz,
                      struct lk_recurrent a)
{
    const struct walk w = {a, 0, 0, get_group_id(1)};
    const size_t r = kept_at(&w, 0, get_group_id(0), 1);
    const size_t at = at_step(&w, 0, get_group_id(0), GATES, 2);
    for (int u = 0; u < a.units; u++)
        STORE(dz + at + u * PARTS, LOAD(dz + at + u * PARTS) * LOAD(saved + r + u * PARTS));
}

KERNEL void gru_keep(__global S *restrict saved, __global S *restrict dz, struct lk_recurrent a,
                     int back)
{
    const struct walk w = {a, 0, 0, get_group_id(1)};
    const size_t to = kept_at(&w, 0, get_group_id(0), 3);
    const size_t at = at_step(&w, 0, get_group_id(0), GATES, 2);
    for (int u = 0; u < a.units; u++)
        if (back)
            STORE(dz + at + u * PARTS, LOAD(saved + to + u * PARTS));
        else
            STORE(saved + to + u * PARTS, LOAD(dz + at + u * PARTS));
}

KERNEL void gru_candidate(__global const S *restrict saved, __global const S *restrict dz,
                          __global real *restrict du, int stride, int shard_tiles,
                          struct lk_recurrent a, __local V *scratch)
{
    const int shard = get_group_id(1), first = (int)get_group_id(0) * ROWS;
    for (int u = 0; u < a.units; u += ROWS) {
        V s[ROWS][ROWS];
        UNROLL for (int i = 0; i < ROWS; i++) UNROLL for (int k = 0; k < ROWS; k++) s[i][k] =
            (V)0;
        for (int tile = shard * shard_tiles; tile < (shard + 1) * shard_tiles; tile++)
            for (int t = 0; t < a.steps; t++) {
                const struct walk w = {a, 0, 0, tile};
                V row[ROWS];
                UNROLL for (int k = 0; k < ROWS; k++) row[k] =
                    LOAD(dz + at_step(&w, 0, t, GATES, 2) + min(u + k, a.units - 1) * PARTS);
                UNROLL for (int i = 0; i < ROWS; i++)
                {
                    const int from = min(first + i, a.units - 1) * PARTS;
                    const V rh = LOAD(saved + at_step(&w, 0, t, 1, 0) + from) *
                                 LOAD(saved + kept_at(&w, 0, t, 1) + from);
                    UNROLL for (int k = 0; k < ROWS; k++) s[i][k] = FMA(rh, row[k], s[i][k]);
                }
            }
        for (int i = 0; i < ROWS; i++)
            for (int k = 0; k < ROWS; k++) {
                const real sum = sum_lanes(s[i][k], scratch);
                if (PART == 0 && first + i < a.units && u + k < a.units)
                    du[(size_t)shard * stride + ((size_t)(first + i) * GATES + 2) * a.units +
                       u + k] = sum;
            }
    }
}
