/* Parameters that no optimizer moves (src/optim/optimizer.c): w = w - g * scale.
 * w, g: real [vectors * VECTOR], from the vectors w_first and g_first on. */
#include "lib/real.cl"
#include "lib/update.cl"

UPDATE_KERNEL void tracked_update(__global V *restrict w, int w_first,
                                  __global const V *restrict g, int g_first, int vectors,
                                  real scale, __global const real *scaling)
{
    const real times = UNSCALED(scale, scaling);
    if (IS_SKIPPED(scaling))
        return;
    FOR_EACH(i, vectors)
    w[w_first + i] = w[w_first + i] - g[g_first + i] * times;
}
