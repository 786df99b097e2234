/* Functions of every element.
 *
 *   eltwise_forward   y = f(x)               -D SELECTED=FUNCTION_<name>: the row of f
 *   eltwise_backward  dx = dy * f'(x)        from kept: x or y, as the row reads
 *
 * Tensors: stored [rows][LANES], `tile_rows` of each tile. Group id 0: `each` rows. Work-items:
 * PARTS of a row. -D MASKED: dead lanes get 0, since f is not finite everywhere.
 */
#include "lib/real.cl"
#include "ops/eltwise_table.h"

#if MASKED
#include "lib/alive.cl"
#endif

#define ZERO ((V)0)
#define ONE ((V)1)
#define SIGMOID(x) (ONE / (ONE + exp(-(x))))
#define SOFTPLUS(x) ((x < ZERO ? ZERO : x) + log1p(exp(-fabs(x))))
/* Of gelu_tanh: x / 2 (1 + tanh(u)) is x sigmoid(2 u); 2 u, and its slope. */
#define GELU(x) (NUMBER(1.5957691216057308) * ((x) + NUMBER(0.044715) * (x) * (x) * (x)))
#define GELU_SLOPE(x) (NUMBER(1.5957691216057308) * (ONE + NUMBER(0.134145) * (x) * (x)))
/* Of gelu: e^(-x^2 / 2), and the derivative of x normal(x, density). */
#define DENSITY(x) exp(-NUMBER(0.5) * (x) * (x))
#define NORMAL_SLOPE(x, density)                                                               \
    (normal(x, density) + (x)*NUMBER(0.3989422804014327) * (density))
#define SELU_SCALE NUMBER(LK_SELU_SCALE)
#define SELU_ALPHA NUMBER(LK_SELU_ALPHA)
#define LINE(x) (alpha * x + beta)

#if VECTOR > 1 && REAL_BYTES == 4
/* exp(x) - 1 for x <= 0, on CPUs in vectors where libraries go lane by lane: with
 * x = n log 2 + r it is 2^n (exp(r) - 1) + 2^n - 1, and exp(r) - 1 a polynomial. */
INLINE V decay(V x)
{
    const V least = x < (V)(-80.0f) ? (V)(-80.0f) : x, above = least > (V)0 ? (V)0 : least;
    const V n = rint(above * 1.44269504f);
    const V r = FMA(n, (V)(1.90465421e-9f), FMA(n, (V)(-0.693147182f), above));
    V p = FMA(r, (V)(1.98412698e-4f), (V)(1.38888889e-3f));
    p = FMA(r, p, (V)(8.33333333e-3f));
    p = FMA(r, p, (V)(4.16666667e-2f));
    p = FMA(r, p, (V)(1.66666667e-1f));
    p = FMA(r, p, (V)(0.5f));
    p = FMA(r * r, p, r);
    const V power = OF_BITS((TO_I(n) + 127) << 23);
    return FMA(power, p, power - ONE);
}

/* The normal distribution's cumulative function, given density = e^(-x^2 / 2):
 * 1/2 + x P(x^2) where |x| < sqrt(2), to 7e-8; else, of t = 1 / (1 + 0.3 |x|), density t Q(t)
 * or 1 less that, whose relative error is 8e-7 down to x = -5.6, and further on that of the
 * density (4e-6 at -13). PoCL's erf() goes lane by lane. P, Q: minimax fits to erf(x / sqrt(2))
 * / (2 x) and erfcx(|x| / sqrt(2)) / (2 t). */
INLINE V normal(V x, V density)
{
    const V q = x * x, t = ONE / FMA((V)(0.3f), fabs(x), ONE);
    V near = FMA(q, (V)(4.35816474e-07f), (V)(-8.86186172e-06f));
    near = FMA(q, near, (V)(1.14673618e-04f));
    near = FMA(q, near, (V)(-1.18680997e-03f));
    near = FMA(q, near, (V)(9.97338817e-03f));
    near = FMA(q, near, (V)(-6.64903596e-02f));
    near = FMA(q, near, (V)(0.398942292f));
    near = FMA(x, near, (V)(0.5f));
    V tail = FMA(t, (V)(-0.0471116975f), (V)(0.0652272105f));
    tail = FMA(t, tail, (V)(0.0434190631f));
    tail = FMA(t, tail, (V)(0.0899569467f));
    tail = FMA(t, tail, (V)(0.108754739f));
    tail = FMA(t, tail, (V)(0.119676709f));
    tail = FMA(t, tail, (V)(0.119683072f));
    tail = density * (t * tail);
    const V far = x < ZERO ? tail : ONE - tail;
    return q < (V)(2.0f) ? near : far;
}
#else
#define decay(x) expm1(x)
#define normal(x, density) (NUMBER(0.5) * (ONE + erf((x)*NUMBER(0.7071067811865476))))
#endif

/* Numbers the rows of the table. All arguments are named, since OpenCL has no variadic
 * macros. */
#define NUMBERED(name, reads, options, exact, check, low, high, value, slope, c, slope_c)      \
    FUNCTION_##name,
#define VALUE(name, reads, options, exact, check, low, high, value, slope, c, slope_c)         \
    case FUNCTION_##name:                                                                      \
        return value;
#define SLOPE(name, reads, options, exact, check, low, high, value, slope, c, slope_c)         \
    case FUNCTION_##name:                                                                      \
        return slope;

INLINE V value_of(V x, real alpha, real beta)
{
    enum { LK_FUNCTIONS(NUMBERED) };
    switch (SELECTED) {
        LK_FUNCTIONS(VALUE)
    }
    return x;
}

/* The derivative; `kept` is x or y, whichever the row reads. */
INLINE V slope_of(V kept, real alpha, real beta)
{
    enum { LK_FUNCTIONS(NUMBERED) };
    const V x = kept, y = kept;
    switch (SELECTED) {
        LK_FUNCTIONS(SLOPE)
    }
    return x;
}

KERNEL void eltwise_forward(__global const S *restrict x, __global S *restrict y, int rows,
                            int each, real alpha, real beta, int tile_rows, int samples,
                            int shard_samples, int shard_tiles GROUP_ARGS)
{
    const int first = GROUP_ID(0) * each, last = min(rows, first + each);
#if MASKED
    int tile = first / tile_rows;
    V alive = alive_lanes(tile, samples, shard_samples, shard_tiles);
#endif
    for (int row = first; row < last; row++) {
        const size_t at = (size_t)row * PARTS + PART;
        V v = value_of(LOAD(x + at), alpha, beta);
#if MASKED
        if (row == (tile + 1) * tile_rows)
            alive = alive_lanes(++tile, samples, shard_samples, shard_tiles);
        v = alive > ZERO ? v : ZERO;
#endif
        STORE(y + at, v);
    }
}

KERNEL void eltwise_backward(__global const S *restrict kept, __global const S *restrict dy,
                             __global S *restrict dx, int rows, int each, real alpha, real beta)
{
    const int first = get_group_id(0) * each, last = min(rows, first + each);
    for (int row = first; row < last; row++) {
        const size_t at = (size_t)row * PARTS + PART;
        const V v = LOAD(kept + at);
        STORE(dx + at, LOAD(dy + at) * slope_of(v, alpha, beta));
    }
}
