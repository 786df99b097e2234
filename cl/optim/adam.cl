/* Adam and AdamW (src/optim/adam.c).
 *
 *   m = beta_1 * m + rest_1 * d;  v = beta_2 * v + rest_2 * d^2;  d = g * scale
 *   w = w * keep - rate * (m / (sqrt(v) * root + epsilon))
 *
 * with rate = lr / (1 - beta_1^t), root = 1 / sqrt(1 - beta_2^t), keep = 1 - lr * weight_decay.
 * w, g: real [vectors * VECTOR], w and state from vector `first` on; state: m, then v, `stride`
 * vectors apart.
 */
#include "lib/real.cl"
#include "lib/update.cl"

UPDATE_KERNEL void adam_update(__global V *restrict w, __global const V *restrict g,
                               __global V *restrict state, int first, int vectors, int stride,
                               real scale, __global const real *scaling, real rate, real root,
                               real beta_1, real rest_1, real beta_2, real rest_2, real epsilon,
                               real keep ADJUSTMENTS LAZINESS)
{
    const real times = CLIPPED_NORM(UNSCALED(scale, scaling));
    if (IS_SKIPPED(scaling))
        return;
    w += first;
    state += first;
    g += FROM;
    __global V *restrict squares = state + (size_t)stride;
    FOR_EACH(k, vectors)
    {
        IF_TOUCHED(i, k)
        const V d = PENALIZED(CLIPPED(GRADIENT(k) * times), w[i], i);
        const V m = beta_1 * state[i] + rest_1 * d;
        const V v = beta_2 * squares[i] + rest_2 * (d * d);
        state[i] = MOVED(m, state[i]);
        squares[i] = MOVED(v, squares[i]);
        w[i] = MOVED(
            w[i] * KEEP(keep, i) - RATE(rate, i) * (m / (sqrt(v) * root + epsilon)), w[i]);
    }
}
