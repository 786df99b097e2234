/* The average of weights over steps (src/optim/average.c).
 *
 *   average_update  average = keep * average + rest * w
 *   average_swap    exchanges both
 *
 * w: real [vectors * VECTOR], from vector `first` on; average: the same of array number `array`
 * of the optimizer's state, whose arrays lie `stride` vectors apart. */
#include "lib/real.cl"
#include "lib/update.cl"

UPDATE_KERNEL void average_update(__global const V *restrict w, __global V *restrict state,
                                  int array, int stride, int first, int vectors, real keep,
                                  real rest)
{
    __global V *restrict average = state + (size_t)stride * array;
    FOR_EACH(i, vectors)
    average[first + i] = keep * average[first + i] + rest * w[first + i];
}

UPDATE_KERNEL void average_swap(__global V *restrict w, __global V *restrict state, int array,
                                int stride, int vectors)
{
    __global V *restrict average = state + (size_t)stride * array;
    FOR_EACH(i, vectors)
    {
        const V kept = w[i];
        w[i] = average[i];
        average[i] = kept;
    }
}
