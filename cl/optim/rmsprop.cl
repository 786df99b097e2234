/* RMSprop (src/optim/rmsprop.c).
 *
 *   v = rho * v + rest * d^2;  CENTERED: a = rho * a + rest * d, r = v - a^2, else r = v
 *   d = d / (sqrt(r) + epsilon), d = g * scale;  MOMENTUM: m = momentum * m + d, d = m
 *   w = w - rate * d
 *
 * w, g: real [vectors * VECTOR], w and state from vector `first` on; state: v, then a, then m,
 * as far as they are there, `stride` vectors apart. -D: CENTERED, MOMENTUM: 0 or 1.
 */
#include "lib/real.cl"
#include "lib/update.cl"

UPDATE_KERNEL void rmsprop_update(__global V *restrict w, __global const V *restrict g,
                                  __global V *restrict state, int first, int vectors,
                                  int stride, real scale, __global const real *scaling,
                                  real rate, real rho, real rest, real momentum,
                                  real epsilon ADJUSTMENTS LAZINESS)
{
    const real times = CLIPPED_NORM(UNSCALED(scale, scaling));
    if (IS_SKIPPED(scaling))
        return;
    w += first;
    state += first;
    g += FROM;
    __global V *restrict means = state + (size_t)stride;
    __global V *restrict directions = state + (size_t)stride * (1 + CENTERED);
    FOR_EACH(k, vectors)
    {
        IF_TOUCHED(i, k)
        V d = PENALIZED(CLIPPED(GRADIENT(k) * times), w[i], i);
        V r = rho * state[i] + rest * (d * d);
        state[i] = MOVED(r, state[i]);
#if CENTERED
        const V a = rho * means[i] + rest * d;
        means[i] = MOVED(a, means[i]);
        r = r - a * a;
        r = r < (V)0 ? (V)0 : r;
#endif
        d = d / (sqrt(r) + epsilon);
#if MOMENTUM
        d = momentum * directions[i] + d;
        directions[i] = MOVED(d, directions[i]);
#endif
        w[i] = MOVED(w[i] - RATE(rate, i) * d, w[i]);
    }
}
