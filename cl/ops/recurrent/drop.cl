/* Dropout of recurrent layers: each sample has one mask, which is the same at all time steps.
 *
 *   recurrent_drop_inputs   y[t][c] = x[t][c] * factor of channel c; y may be x
 *   recurrent_drop_states   slot FACTORS of the state = factor of each unit
 *
 * A factor is `scale` where the element is kept, else 0. Channel c is in the quadruple
 * (c / 4, 0) of lib/drop.cl, unit u in (u / 4, 1).
 * Group ids: 0: quadruple of channels or units; 1: tile, or group of tiles as in state.cl.
 */
#include "lib/real.cl"
#include "lib/random.cl"
#include "ops/recurrent/state.cl"
#include "lib/drop.cl"

/* The factors of quadruple `quad` of the samples of a tile. */
INLINE void draw(V factors[4], struct lk_drop d, real scale, int tile, int quad, int is_state)
{
    I kept[4];
    draw_kept(kept, d, tile, (uint)quad, (uint)is_state);
    for (int k = 0; k < 4; k++)
        factors[k] = kept[k] ? (V)scale : (V)0;
}

KERNEL void recurrent_drop_inputs(__global const S *x, __global S *y, int steps, int channels,
                                  struct lk_drop d, real scale)
{
    const int quad = get_group_id(0), tile = get_group_id(1);
    const size_t begin = (size_t)tile * steps * channels * PARTS + PART;
    V factors[4];
    draw(factors, d, scale, tile, quad, 0);
    for (int t = 0; t < steps; t++)
        for (int k = 0; k < min(4, channels - 4 * quad); k++) {
            const size_t at = begin + ((size_t)t * channels + 4 * quad + k) * PARTS;
            STORE(y + at, LOAD(x + at) * factors[k]);
        }
}

KERNEL void recurrent_drop_states(__global real *workspace, struct lk_recurrent a,
                                  struct lk_drop d, real scale)
{
    const int quad = get_group_id(0);
    const struct walk w = walk_of(a, workspace, 0, get_group_id(1));
    for (int j = 0; j < COLUMNS; j++) {
        V factors[4];
        draw(factors, d, scale, tile_of(&w, j), quad, 1);
        for (int k = 0; k < min(4, a.units - 4 * quad); k++)
            slot(&w, FACTORS)[in_slot(4 * quad + k, j)] = factors[k];
    }
}
