/* What comes behind the sums of a layer outside training, where no kernel of sums has it done.
 *
 *   ending_norms   norms[k] = mean, gamma / sqrt(variance + epsilon), beta: what finish.cl
 *                  takes of a batch normalization by moving averages
 *   ending_finish  y = act(norm(y) + more), in place
 *
 * y, more: stored [tiles][filters][pixels][LANES]; norms: [filters][3]. Group ids: of norms 0:
 * `each` filters; of finish 0: `each` pixels, 1: filter, 2: tile. -D: as finish.cl.
 */
#include "lib/real.cl"
#include "lib/finish.cl"

KERNEL void ending_norms(__global const real *restrict gamma,
                         __global const real *restrict beta, __global const real *restrict mean,
                         __global const real *restrict variance, real epsilon,
                         __global real *restrict norms, int filters, int each)
{
    const int first = get_group_id(0) * each;
    for (int k = first + PART; k < min(first + each, filters); k += PARTS) {
        norms[3 * k] = mean[k];
        norms[3 * k + 1] = gamma[k] * ((real)1 / sqrt(variance[k] + epsilon));
        norms[3 * k + 2] = beta[k];
    }
}

KERNEL void ending_finish(__global S *restrict y, __global const real *restrict norms,
                          __global const S *restrict more, int pixels, int each GROUP_ARGS)
{
    const int k = GROUP_ID(1), first = GROUP_ID(0) * each;
    const size_t plane = ((size_t)GROUP_ID(2) * GROUP_COUNT(1) + k) * pixels;
    for (int p = first; p < min(first + each, pixels); p++) {
        const size_t at = (plane + p) * PARTS + PART;
        STORE(y + at, finish_norm(LOAD(y + at), norms + 3 * k, more + at));
    }
}
