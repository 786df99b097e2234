/* Kernels that measure a device's peak rates (src/bench/peaks.c).
 *
 *   bench_fma    16 * rounds times: v[i] = v[i] * a + b, CHAINS independent v in registers;
 *                y[group] = their sum, so that no compiler can leave the work out
 *   bench_copy   y = x
 *   bench_triad  y = x + a * z
 *
 * x, y, z: real [vectors * VECTOR]; groups of copy and triad: GROUP vectors.
 * -D: CHAINS, ITEMS, GROUP (lib/update.cl). */
#include "lib/hints.cl"
#include "lib/real.cl"
#include "lib/update.cl"

/* A plain store to memory first reads what was there; a streaming store need not. */
#define STREAM (VECTOR > 1)
#include "lib/put.cl"

/* a and b are arguments, so that nothing is computed at compile time; |a| < 1 keeps v in range
 * for ever. */
UPDATE_KERNEL void bench_fma(__global V *restrict y, int rounds, real a, real b)
{
    const V factor = (V)a, summand = (V)b;
    V v[CHAINS];
    UNROLL for (int i = 0; i < CHAINS; i++)
        v[i] = (V)((real)(get_local_id(0) + i));
    for (int r = 0; r < rounds; r++) {
        UNROLL for (int j = 0; j < 16; j++)
            UNROLL for (int i = 0; i < CHAINS; i++)
                v[i] = FMA(v[i], factor, summand);
    }
    V sum = v[0];
    UNROLL for (int i = 1; i < CHAINS; i++)
        sum += v[i];
    y[get_global_id(0)] = sum;
}

UPDATE_KERNEL void bench_copy(__global const V *restrict x, __global V *restrict y, int vectors)
{
    FOR_EACH (i, vectors)
        PUT(y + i, x[i]);
}

UPDATE_KERNEL void bench_triad(__global const V *restrict x, __global const V *restrict z,
                               __global V *restrict y, int vectors, real a)
{
    FOR_EACH (i, vectors)
        PUT(y + i, x[i] + a * z[i]);
}
