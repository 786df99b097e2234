/* A batch normalization behind a product, folded into its packed weights. Needs lib/real.cl.
 * -D: NORM: 0 or 1. Returns the factor a of the weights of filter k and writes the shift b:
 * a = gamma / sqrt(variance + epsilon), b = (bias - mean) a + beta; without NORM 1 and the
 * bias, or 0.
 */
INLINE real fold_norm(int k, __global const real *bias, __global const real *gamma,
                      __global const real *beta, __global const real *mean,
                      __global const real *variance, real epsilon, __global real *shift)
{
    const real b = bias ? bias[k] : 0;
#if NORM
    const real factor = gamma[k] / sqrt(variance[k] + epsilon);
    *shift = (b - mean[k]) * factor + beta[k];
    return factor;
#else
    *shift = b;
    return 1;
#endif
}
