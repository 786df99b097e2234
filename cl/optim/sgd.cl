/* Stochastic gradient descent (src/optim/sgd.c).
 *
 *   d = g * scale + decay * w;  m = momentum * m + d
 *   w = w - rate * (MOMENTUM ? NESTEROV ? d + momentum * m : m : d)
 *
 * w, g: real [vectors * VECTOR], w and state from vector `first` on; state: m, the same.
 * -D: MOMENTUM, NESTEROV: 0 or 1.
 */
#include "lib/real.cl"
#include "lib/update.cl"

UPDATE_KERNEL void sgd_update(__global V *restrict w, __global const V *restrict g,
                              __global V *restrict state, int first, int vectors, int stride,
                              real scale, __global const real *scaling, real rate,
                              real momentum, real decay ADJUSTMENTS LAZINESS)
{
    const real times = CLIPPED_NORM(UNSCALED(scale, scaling));
    if (IS_SKIPPED(scaling))
        return;
    w += first;
    state += first;
    g += FROM;
    FOR_EACH(k, vectors)
    {
        IF_TOUCHED(i, k)
        V d = PENALIZED(CLIPPED(GRADIENT(k) * times), w[i], i) + DECAY(decay, i) * w[i];
#if MOMENTUM
        const V m = momentum * state[i] + d;
        state[i] = MOVED(m, state[i]);
        d = NESTEROV ? d + momentum * m : m;
#endif
        w[i] = MOVED(w[i] - RATE(rate, i) * d, w[i]);
    }
}
