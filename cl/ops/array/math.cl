/* Functions of one to three numbers, element by element.
 *
 *   math_forward   y = f(a, b, c)
 *   math_backward  da = dy df/da, db = dy df/db, dc = dy df/dc; null pointers are not wanted
 *
 * -D SELECTED=FUNCTION_<name>: the row of f. Tensors: stored [tiles][count][LANES]. Group id 0:
 * `each` elements, 1: tile. Dead lanes get 0. Work-items: PARTS of a row.
 */
#include "lib/real.cl"

#include "lib/alive.cl"
#include "ops/array/math_table.h"

#define ZERO ((V)0)
#define ONE ((V)1)
#define SIGN(a) ((a) > ZERO ? ONE : (a) < ZERO ? -ONE : (a) == ZERO ? ZERO : (a))
#define MODULO(r, b) ((r) * (b) < ZERO ? (r) + (b) : (r))
#if REAL_BYTES == 8
#define MOST ((V)1.7976931348623157e308)
#else
#define MOST ((V)3.402823466e38f)
#endif

#define NUMBERED(name, inputs, low, high, value, da, db, dc, truth) FUNCTION_##name,
#define VALUE(name, inputs, low, high, value, da, db, dc, truth)                               \
    case FUNCTION_##name:                                                                      \
        return value;
#define SLOPE(name, inputs, low, high, value, da, db, dc, truth)                               \
    case FUNCTION_##name:                                                                      \
        if (input == 0)                                                                        \
            return da;                                                                         \
        if (input == 1)                                                                        \
            return db;                                                                         \
        return dc;
INLINE V value_of(V a, V b, V c, real alpha, real beta)
{
    enum { LK_MATH_ROWS(NUMBERED) };
    switch (SELECTED) {
        LK_MATH_ROWS(VALUE)
    }
    return a;
}

/* df by input 0, 1 or 2. */
INLINE V slope_of(int input, V a, V b, V c, V y, real alpha, real beta)
{
    enum { LK_MATH_ROWS(NUMBERED) };
    switch (SELECTED) {
        LK_MATH_ROWS(SLOPE)
    }
    return a;
}

KERNEL void math_forward(__global const S *restrict a, __global const S *restrict b,
                         __global const S *restrict c, __global S *restrict y, int count,
                         int each, real alpha, real beta, int samples, int shard_samples,
                         int shard_tiles)
{
    const int first = get_group_id(0) * each, last = min(count, first + each);
    const int tile = get_group_id(1);
    const V alive = alive_lanes(tile, samples, shard_samples, shard_tiles);
    for (int i = first; i < last; i++) {
        const size_t at = ((size_t)tile * count + i) * PARTS + PART;
        const V va = LOAD(a + at), vb = b ? LOAD(b + at) : ZERO, vc = c ? LOAD(c + at) : ZERO;
        STORE(y + at, alive > ZERO ? value_of(va, vb, vc, alpha, beta) : ZERO);
    }
}

KERNEL void math_backward(__global const S *restrict a, __global const S *restrict b,
                          __global const S *restrict c, __global const S *restrict y,
                          __global const S *restrict dy, __global S *restrict da,
                          __global S *restrict db, __global S *restrict dc, int count, int each,
                          real alpha, real beta, int samples, int shard_samples,
                          int shard_tiles)
{
    const int first = get_group_id(0) * each, last = min(count, first + each);
    const int tile = get_group_id(1);
    const V alive = alive_lanes(tile, samples, shard_samples, shard_tiles);
    for (int i = first; i < last; i++) {
        const size_t at = ((size_t)tile * count + i) * PARTS + PART;
        const V va = LOAD(a + at), vb = b ? LOAD(b + at) : ZERO, vc = c ? LOAD(c + at) : ZERO;
        const V vy = LOAD(y + at), slope = LOAD(dy + at);
        if (da)
            STORE(da + at,
                  alive > ZERO ? slope * slope_of(0, va, vb, vc, vy, alpha, beta) : ZERO);
        if (db)
            STORE(db + at,
                  alive > ZERO ? slope * slope_of(1, va, vb, vc, vy, alpha, beta) : ZERO);
        if (dc)
            STORE(dc + at,
                  alive > ZERO ? slope * slope_of(2, va, vb, vc, vy, alpha, beta) : ZERO);
    }
}
