/* A dense layer of samples whose numbers lie in all lanes of a vector each, as in plane tiles:
 * y[k] = max(b[k] + sum over c of w[c][k] x[c], least), one chain of FMAs, ascending c.
 *
 *   planes_matrix   lanes are units, so that few samples read each weight once or from a cache
 *
 * x: [tiles][channels][LANES], y: [tiles][units][LANES], w: [channels][units]. -D: BIAS 0 or 1.
 * Group id 0: VECTORS vectors of units, of all tiles.
 */
#include "lib/hints.cl"
#include "lib/real.cl"

#define VECTORS 4
#define ROWS_AHEAD 8 /* that are fetched */

/* Units k to k + VECTOR - 1; the last one again where there are no more. */
INLINE V load_units(__global const real *row, int k, int units)
{
    union {
        real lane[VECTOR];
        V all;
    } v;
    if (k + VECTOR <= units)
        return ROW_LOAD(row + k);
    for (int i = 0; i < VECTOR; i++)
        v.lane[i] = row[min(k + i, units - 1)];
    return v.all;
}

INLINE void store_units(V sum, __global V *y, int k, int units)
{
    union {
        V all;
        real lane[VECTOR];
    } v = {sum};
    for (int i = 0; i < min(VECTOR, units - k); i++)
        for (int part = 0; part < PARTS; part++)
            y[(k + i) * PARTS + part] = (V)v.lane[i];
}

/* VECTORS whole vectors of units. */
INLINE void sum_block(__global const real *x, __global const real *w, __global const real *bias,
                      V least, __global V *y, int channels, int units, int k)
{
    V sum[VECTORS];
    UNROLL
    for (int j = 0; j < VECTORS; j++)
        sum[j] = BIAS ? ROW_LOAD(bias + k + j * VECTOR) : (V)0;
    for (int c = 0; c < channels; c++, w += units) {
        const V factor = (V)x[c * LANES];
        UNROLL
        for (int j = 0; j < VECTORS; j++) {
            PREFETCH(w + ROWS_AHEAD * units + k + j * VECTOR);
            sum[j] = FMA(ROW_LOAD(w + k + j * VECTOR), factor, sum[j]);
        }
    }
    UNROLL
    for (int j = 0; j < VECTORS; j++)
        store_units(sum[j] < least ? least : sum[j], y, k + j * VECTOR, units);
}

INLINE void sum_vector(__global const real *x, __global const real *w,
                       __global const real *bias, V least, __global V *y, int channels,
                       int units, int k)
{
    V sum = BIAS ? load_units(bias, k, units) : (V)0;
    for (int c = 0; c < channels; c++, w += units)
        sum = FMA(load_units(w, k, units), (V)x[c * LANES], sum);
    store_units(sum < least ? least : sum, y, k, units);
}

BODY void sum_units(__global const real *x, __global const real *w, __global const real *bias,
                    V least, __global V *y, int channels, int units, int tiles, int k)
{
    for (int t = 0; t < tiles; t++) {
        if (k + VECTORS * VECTOR <= units)
            sum_block(x, w, bias, least, y, channels, units, k);
        else
            for (int j = k; j < units; j += VECTOR)
                sum_vector(x, w, bias, least, y, channels, units, j);
        x += (size_t)channels * LANES;
        y += (size_t)units * PARTS;
    }
}

KERNEL void planes_matrix(__global const real *restrict x, __global const real *restrict w,
                          __global const real *restrict bias, __global V *restrict y,
                          real least, int channels, int units, int tiles GROUP_ARGS)
{
    sum_units(x, w, bias, (V)least, y, channels, units, tiles,
              GROUP_ID(0) * VECTORS * VECTOR);
}
