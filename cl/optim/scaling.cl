/* The scale of the loss where activations are halves (src/optim/scaling.c).
 *
 *   scaling_check   notes whether one of g is infinite or NaN
 *   scaling_decide  one work-item, after all checks of a step: whether the step makes an
 * update,
 *                   and the scale of the next one
 *
 * g: real [vectors * VECTOR]; state: `scaling` of lib/update.cl. */
#include "lib/real.cl"
#include "lib/update.cl"

UPDATE_KERNEL void scaling_check(__global const V *restrict g, int vectors,
                                 __global real *restrict state)
{
    I found = 0;
    FOR_EACH (i, vectors)
        found |= g[i] - g[i] != (V)0;
#if VECTOR == 1
    if (found)
#else
    if (any(found))
#endif
        atomic_or((__global int *)(state + SCALING_FOUND), 1);
}

SINGLE_KERNEL void scaling_decide(__global real *restrict state, int every, real least,
                                  real most)
{
    __global int *found = (__global int *)(state + SCALING_FOUND);
    const bool counts = *found == 0;
    const real scale = state[SCALING_SCALE];
    const real good = counts ? state[SCALING_GOOD] + 1 : 0;
    const bool grows = every > 0 && good >= every;
    *found = 0;
    state[SCALING_INVERSE] = counts ? 1 / scale : 0;
    state[SCALING_GOOD] = grows ? 0 : good;
    if (!counts)
        state[SCALING_SKIPPED] += 1;
    if (every > 0)
        state[SCALING_SCALE] = grows    ? min(scale * 2, most)
                               : counts ? scale
                                        : max(scale / 2, least);
}
